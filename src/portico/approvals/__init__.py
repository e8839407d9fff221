"""Which calls pass without asking a person: rules over command lines and files. May import the core and `workspace`."""

"""Projects: folders with one conversation for each agent. May import the core and `workspace`."""

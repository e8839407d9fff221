"""Decides which calls need no approval: rules for command lines and files. May import the core and `workspace`."""

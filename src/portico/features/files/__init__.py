"""Files that people and editors change through the host, inside the jail. May import the core and `workspace`."""

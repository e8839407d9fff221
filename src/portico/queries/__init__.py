"""What is read from sessions and the log: search, the board, usage, suggestions. May import the core, `workspace`."""

"""What is read from sessions and the log: search, the board, suggestions. May import the core, `workspace`."""

"""The conversations of a session: their order, and where they belong. May import the core."""

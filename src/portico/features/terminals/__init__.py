"""Terminals of the host: what they are, who may use them. May import the core and `workspace`."""

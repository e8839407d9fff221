"""The agents: each a plugin of the entry-point group `portico.agents`, our own included.

An agent talks to the host's public surface only (`portico.agents.agent`); it never sees the log or a door.
"""

"""The host as AHP clients see it: events become actions, states become snapshots. Functions without effects; what needs
an answer from git asks for it. May import `wire` and the host's state.
"""

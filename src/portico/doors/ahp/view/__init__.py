"""The host as AHP clients see it: events become actions, states become snapshots. Functions without side effects,
except reads from git. May import `wire` and the host's state.
"""

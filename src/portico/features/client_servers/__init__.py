"""MCP servers of sessions: those that a client brings for one session, and requests of clients to any of them.

The servers of clients are in memory only: they contain secrets, and the client sends them again when it opens the
session.
"""

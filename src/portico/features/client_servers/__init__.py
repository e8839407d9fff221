"""MCP servers that a client brings for one session, such as those of an editor.

They are in memory only: they contain secrets, and the client sends them again when it opens the session. Imports only
the host.
"""

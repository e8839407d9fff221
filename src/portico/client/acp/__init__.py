"""Portico as an ACP agent: an editor that speaks the Agent Client Protocol drives the sessions of a running host.

It is a client of the REST door, so its sessions live beside those of all other doors: what is said or answered anywhere
is seen here, and a turn goes on when the editor is closed.
"""

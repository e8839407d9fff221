"""Portico as an ACP agent: an editor that speaks the Agent Client Protocol drives the sessions of a running host.

It is a client of the REST door, so its sessions are shared with all other doors: messages and answers from any door
are visible here, and a turn continues when the editor is closed.
"""

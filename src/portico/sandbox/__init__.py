"""Sandboxes: what a confined process may see, write and reach, and how bubblewrap or a container enforces it.

A `Policy` is plain data and every function that turns it into arguments is pure. Imports nothing above it: `workspace`
starts processes with it, `sandboxes` creates the policies of sessions.
"""

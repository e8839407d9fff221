"""The tools of the built-in agent beside files and commands: one file for each, and `choice.py` with the choice.

A tool declares its arguments, plans a call (`PlannedCall`) and performs it, as those of `tools.py` do. Imports
`tools.py`, the terminals and the host's turn; the run and the conversation use it.
"""

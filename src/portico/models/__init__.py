"""Models that run on this machine: which ones we know, how they get here, and the child process that serves them.

Imports errors, home and the workspace's child processes only.
"""

"""The sandboxes of sessions: which sandbox a session has, its running processes, and what it was granted.

`feature.py` is the feature. Processes are started with what `Sandboxes.confine` returns. Imports the host, the
settings, the workspace and `sandbox`.
"""

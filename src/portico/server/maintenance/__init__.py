"""Maintenance of the log's files: backup, examination, repair, copy. May import the log."""

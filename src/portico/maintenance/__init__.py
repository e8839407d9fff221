"""The log's files beside a running host: backup, examination, repair. May import the log."""

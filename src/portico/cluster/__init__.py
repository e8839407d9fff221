"""Several equal hosts on one log in PostgreSQL: who owns which session, commands for those of another host, takeover.

Imported only where `log.url` is set. May import log, host and settings; no door."""

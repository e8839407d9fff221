"""The log on PostgreSQL, for several hosts on one log (`portico[cluster]`). Imported only where `log.url` is set."""

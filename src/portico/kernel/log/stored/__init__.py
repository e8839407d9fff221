"""What the logs on SQLite and on PostgreSQL have in common. The core knows a log by its interface (`log/log.py`)."""

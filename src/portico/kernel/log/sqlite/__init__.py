"""The log in one SQLite file: the engine behind the log's interface on one machine."""

from portico.kernel.log.sqlite.log import WATCH_SECONDS, SqliteLog

__all__ = ["WATCH_SECONDS", "SqliteLog"]

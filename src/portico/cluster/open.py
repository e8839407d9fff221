"""The log in PostgreSQL, opened as the settings say."""

import socket
from pathlib import Path

from portico.log.postgres.log import Opening, PostgresLog
from portico.settings import Settings


async def open_log(settings: Settings, folder: Path) -> PostgresLog:
    name = settings.cluster.host or socket.gethostname()
    place = settings.cluster.place or socket.gethostname()
    return await PostgresLog.open(Opening(settings.log.url, folder, name, place, settings.cluster.lease_seconds))

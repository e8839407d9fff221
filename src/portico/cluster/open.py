"""Opens the log in PostgreSQL and registers this host in the cluster, according to the settings."""

import socket
from pathlib import Path

from portico.cluster.agreement import agree
from portico.cluster.cluster import Cluster
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import OWNED, PostgresOpening
from portico.cluster.shared_files import SharedFiles
from portico.server.settings import Settings

START_SECONDS = 60.0
"""Lease during the start. It takes a second or two, and many times that on a busy machine. A takeover by another host
in that time would end the start."""

__all__ = ["Cluster", "SharedFiles", "open_log"]


async def open_log(settings: Settings, folder: Path) -> PostgresLog:
    name = settings.cluster.host or socket.gethostname()
    place = settings.cluster.place or socket.gethostname()
    lease = settings.cluster.lease_seconds
    # With Temporal every host of a place works on the same job, so the database assigns the positions of its events.
    shared = ("job/",) if settings.jobs.engine == "temporal" else ()
    owned = tuple(each for each in OWNED if each not in shared)
    log = await PostgresLog.open(PostgresOpening(settings.log.url, folder, name, place, lease, owned=owned))
    log.starting_seconds = START_SECONDS
    try:
        await log.renew_now()
        await agree(log, settings)
    except BaseException:  # also a cancel: no other code closes it
        await log.close()
        raise
    return log

"""The log in PostgreSQL and this host's place among the others, as the settings say."""

import socket
from pathlib import Path

from portico.cluster.agreement import agree
from portico.cluster.cluster import Cluster
from portico.cluster.shared_files import SharedFiles
from portico.log.postgres.log import PostgresLog
from portico.log.postgres.opening import OWNED, PostgresOpening
from portico.settings import Settings

START_SECONDS = 60.0
"""A start takes a second or two, and many times that on a machine that has much to do; others must not take over in the
middle of it, for then it ends."""

__all__ = ["Cluster", "SharedFiles", "open_log"]


async def open_log(settings: Settings, folder: Path) -> PostgresLog:
    name = settings.cluster.host or socket.gethostname()
    place = settings.cluster.place or socket.gethostname()
    lease = settings.cluster.lease_seconds
    # On Temporal every host of a place works at the same job, so the database gives the positions of its events.
    shared = ("job/",) if settings.jobs.engine == "temporal" else ()
    owned = tuple(each for each in OWNED if each not in shared)
    log = await PostgresLog.open(PostgresOpening(settings.log.url, folder, name, place, lease, owned=owned))
    log.starting_seconds = START_SECONDS
    try:
        await log.renew_now()
        await agree(log, settings)
    except BaseException:
        await log.close()
        raise
    return log

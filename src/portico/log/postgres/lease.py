"""A host's row in the database: its id, its epoch and its lease. Time is the database's.

The epoch is the fencing token: every commit contains it, and a takeover increments it. An expired lease only permits a
takeover; a host that wakes up before one continues. `conn` fences off an old connection of the same host.
"""

import os
import socket
from pathlib import Path
from typing import Any

from msgspec import Struct

from portico.errors import HomeInUse, LogTooNew
from portico.log.postgres.error_text import Fenced
from portico.log.postgres.schema import VERSION

LEASE_SECONDS = 10.0


class ChannelLease(Struct):
    host: int
    epoch: int
    conn: int
    batch: int
    """The last batch that was committed."""


def folder_of(path: Path) -> str:
    """Which folder this is, on which machine: its lock lets one host run on it, so a row with the same is an earlier
    run of ours."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        boot = ""
    found = os.stat(path)
    return f"{socket.gethostname()}:{boot}:{found.st_dev}:{found.st_ino}"


async def claim(connection: Any, name: str, folder: str, place: str, info: str, seconds: float) -> ChannelLease:
    row = await connection.fetchrow("SELECT * FROM claim_host($1, $2, $3, $4, $5)", name, folder, place, info, seconds)
    if row is None:
        raise HomeInUse(
            f"A host {name!r} runs on this log already, from another folder or machine. Give this one a name "
            f"of its own (cluster.host); or, when that one is dead, wait {seconds:g} seconds."
        )
    return ChannelLease(*row)


async def renew(connection: Any, lease: ChannelLease, seconds: float, info: str) -> None:
    """Renew the lease. Raises `Fenced` after a takeover, and `LogTooNew` if a newer host has migrated the tables."""
    version, known = await connection.fetchrow(
        "WITH me AS (UPDATE hosts SET expires = clock_timestamp() + $3 * interval '1 second', seen = clock_timestamp(),"
        " info = $4 WHERE id = $1 AND epoch = $2 RETURNING 1)"
        " SELECT (SELECT value::int FROM meta WHERE key = 'version'), EXISTS (SELECT 1 FROM me)",
        lease.host,
        lease.epoch,
        seconds,
        info,
    )
    if version > VERSION:
        raise LogTooNew(
            f"Another host has brought the database to schema version {version}; this Portico knows {VERSION}. "
            "Install the newer version and start again."
        )
    if not known:
        raise Fenced("Another host has taken over the sessions of this one, which did not answer for a while.")
    await connection.execute("DELETE FROM batches WHERE host = $1 AND batch < $2", lease.host, lease.batch)


async def reconnect(connection: Any, lease: ChannelLease) -> int:
    """Shuts the connection before this one out, waiting for what it still does; then the last batch that is committed.
    Two statements: a look alone may come before the old connection commits."""
    sql = "UPDATE hosts SET conn = conn + 1 WHERE id = $1 AND epoch = $2 RETURNING conn"
    await connection.execute("BEGIN READ WRITE")  # also where the database was made read-only: an outcome is wanted
    conn = await connection.fetchval(sql, lease.host, lease.epoch)
    await connection.execute("COMMIT")
    if conn is None:
        raise Fenced("Another host has taken over the sessions of this one, which did not answer for a while.")
    lease.conn = conn
    return int(await connection.fetchval("SELECT coalesce(max(batch), 0) FROM batches WHERE host = $1", lease.host))


async def release(connection: Any, lease: ChannelLease) -> None:
    """An orderly end: others need not wait for the lease."""
    sql = "UPDATE hosts SET expires = clock_timestamp(), seen = clock_timestamp(), state = 'stopped'"
    await connection.execute(f"{sql} WHERE id = $1 AND epoch = $2", lease.host, lease.epoch)

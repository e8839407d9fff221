"""A host's row in the database: its id, its epoch and its lease. Times are those of the database clock.

The epoch is the fencing token: every commit contains it, and a takeover increments it. An expired lease only permits a
takeover; a host that wakes up before one continues. `conn` fences off an old connection of the same host.
"""

import os
import socket
from pathlib import Path
from typing import Any

from msgspec import Struct

from portico.cluster.postgres.error_text import Fenced
from portico.cluster.postgres.schema import VERSION
from portico.kernel.errors import HomeInUse, LogTooNew

LEASE_SECONDS = 10.0


class ChannelLease(Struct):
    host: int
    epoch: int
    conn: int
    batch: int
    """The last batch that was committed."""


def folder_of(path: Path) -> str:
    """Identify the folder and its machine. Its lock permits only one host, so a row with the same value is from an
    earlier run of this host."""
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
    """Fence off the previous connection, wait for its statement, and return the last committed batch.
    Two statements: a query alone could run before the old connection commits."""
    sql = "UPDATE hosts SET conn = conn + 1 WHERE id = $1 AND epoch = $2 RETURNING conn"
    await connection.execute("BEGIN READ WRITE")  # also if the database is read-only by default: the outcome is needed
    conn = await connection.fetchval(sql, lease.host, lease.epoch)
    await connection.execute("COMMIT")
    if conn is None:
        raise Fenced("Another host has taken over the sessions of this one, which did not answer for a while.")
    lease.conn = conn
    return int(await connection.fetchval("SELECT coalesce(max(batch), 0) FROM batches WHERE host = $1", lease.host))


async def release(connection: Any, lease: ChannelLease) -> None:
    """Release the lease at an orderly exit, so that others need not wait for it to expire."""
    sql = "UPDATE hosts SET expires = clock_timestamp(), seen = clock_timestamp(), state = 'stopped'"
    await connection.execute(f"{sql} WHERE id = $1 AND epoch = $2", lease.host, lease.epoch)

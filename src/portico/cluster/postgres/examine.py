"""Can a host run on this database, and who does? For `portico doctor`: nothing is written."""

from typing import Any

import asyncpg

from portico.cluster.postgres.connect import connect
from portico.cluster.postgres.error_text import check_url, translate
from portico.cluster.postgres.schema import version_of
from portico.kernel.errors import LogUnavailable

_THEN = "then start the host"
_LOG = """
SELECT (SELECT coalesce(max(seq), 0) FROM events), pg_database_size(current_database()),
  (SELECT count(*) FROM owners o JOIN hosts h ON h.id = o.host
    WHERE o.channel LIKE 'session/%' AND h.expires < clock_timestamp())
"""


async def examine(url: str) -> str:
    """What is there, in words. Raises `LogUnavailable` with what to do."""
    address = check_url(url)
    try:
        connection = await connect(url, "doctor")
        try:
            return f"{address}: {await _found(connection, address)}"
        finally:
            connection.terminate()
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError, ValueError) as error:
        raise translate(error, address, _THEN) from error


async def _found(connection: Any, address: str) -> str:
    if await connection.fetchval("SELECT current_setting('transaction_read_only')::bool"):
        raise translate(asyncpg.ReadOnlySQLTransactionError("read-only"), address, _THEN)
    if await version_of(connection) == 0:
        if not await connection.fetchval("SELECT has_database_privilege(current_database(), 'CREATE')"):
            raise LogUnavailable(
                f"The database {address!r} has no log, and its user may make none: grant CREATE on it."
            )
        return "no log yet; the first host makes it"
    rows = await connection.fetch("SELECT name FROM hosts WHERE expires > clock_timestamp() ORDER BY name")
    names = [name for (name,) in rows]
    hosts = f"{len(names)} hosts ({', '.join(names)})" if names else "no host runs"
    last, size, left = await connection.fetchrow(_LOG)
    gone = f"; {left} sessions belong to hosts that do not run" if left else ""
    return f"{hosts}; last event {last:,}, {size // 1_000_000:,} MB{gone}"

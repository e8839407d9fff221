"""Settings that must be equal on all hosts of a log are recorded in it, and a host with others does not start.

A host with another engine for jobs would take over the jobs of the next host that dies, and run them a second time.
The record can change when no other host is there, and no job runs.
"""

from typing import Any

import msgspec

from portico.cluster.cluster import STRIDE
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.schema import AGREEMENT
from portico.kernel.errors import BadRequest
from portico.server.settings import Settings

_KEY = "settings"
_JOBS = ("jobs.engine", "jobs.namespace")
_OTHERS = "SELECT count(*) FROM hosts WHERE id != $1 AND expires > clock_timestamp()"
_SAME_NUMBERS = (
    f"SELECT name FROM hosts WHERE id != $1 AND (id - $1) % {STRIDE} = 0 AND expires > clock_timestamp() LIMIT 1"
)
_LAST = "SELECT e.data FROM events e WHERE e.channel = c.id ORDER BY e.pos DESC LIMIT 1"
_UNFINISHED = (
    f"SELECT count(*) FROM channels c WHERE c.name LIKE 'job/%' AND position('\"job.ended\"' IN ({_LAST})) = 0"
)


def equal_settings(settings: Settings) -> dict[str, str]:
    """What all hosts must have alike, by setting. The address of Temporal may differ: names depend on the network."""
    jobs = settings.jobs
    return {
        "jobs.engine": jobs.engine,
        "jobs.namespace": jobs.namespace if jobs.engine == "temporal" else "",
        "cluster.tls_cert": "set" if settings.cluster.tls_cert else "",
    }


async def agree(log: PostgresLog, settings: Settings) -> None:
    """Records the settings of the first host; raises `BadRequest` for another one."""
    mine = equal_settings(settings)

    async def check(connection: Any) -> BadRequest | None:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", AGREEMENT)
            if (other := await connection.fetchval(_SAME_NUMBERS, log.lease.host)) is not None:
                return _same_numbers(log.opening.host, other)
            found = await connection.fetchval("SELECT value FROM meta WHERE key = $1", _KEY)
            recorded = msgspec.json.decode(found, type=dict[str, str]) if found else {}
            for name in [name for name in mine if recorded.get(name, mine[name]) != mine[name]]:
                others = await connection.fetchval(_OTHERS, log.lease.host)
                running = await connection.fetchval(_UNFINISHED) if name in _JOBS else 0
                if others or running:
                    return _different(name, mine[name], recorded[name], others, running)
            sql = "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2"
            await connection.execute(sql, _KEY, msgspec.json.encode({**recorded, **mine}).decode())
        return None

    if (different := await log.run(check)) is not None:
        raise different


def _same_numbers(name: str, other: str) -> BadRequest:
    return BadRequest(
        f"The hosts {name!r} and {other!r} would give the same numbers to sessions: the log has had over {STRIDE} "
        "names of hosts. Start this host with another name, or with that of a host that is gone.",
        field="cluster.host",
    )


def _different(name: str, mine: str, recorded: str, others: int, running: int) -> BadRequest:
    ways = [f"stop the other hosts ({others})"] * bool(others) + [f"let the jobs end ({running})"] * bool(running)
    return BadRequest(
        f"{name} is {mine or 'not set'!r} here, and {recorded or 'not set'!r} for the log, which all hosts have alike. "
        f"Set it so; to change it, first {' and '.join(ways)}.",
        field=name,
    )

"""Which log is in this database? A restored dump, a copy or a replica that was behind gets a new epoch, so that no
cursor points at an event that its reader has not seen, and gives no number twice."""

import secrets
from pathlib import Path
from typing import Any

from portico.cluster.postgres.schema import LOCK
from portico.kernel.errors import LogDamaged
from portico.kernel.log.identity import Identity
from portico.kernel.log.sqlite.watermark import LogFiles, Mark, Marked

_NOWHERE = LogFiles(0, 0, 0)


async def identify(connection: Any, mark: Mark) -> Identity:
    """One short transaction under the lock of the commits."""
    marked = mark.read()
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
        stored = dict(await connection.fetch("SELECT key, value FROM meta"))
        if "copying" in stored:
            raise LogDamaged(
                "This database holds a copy that was not finished. Finish it with: portico log copy FROM TO"
            )
        system = await system_of(connection)
        last = int(await connection.fetchval("SELECT coalesce(max(seq), 0) FROM events"))
        given, called = await connection.fetchrow("SELECT last_value, is_called FROM seq")
        seq = max(last, given if called else 0)
        epoch, salt = stored.get("epoch", ""), int(stored.get("salt", secrets.randbits(32)))
        missing = max(0, marked.seq - seq) if marked is not None and marked.epoch == epoch else 0
        why = _reason(stored, system, missing)
        lost = int(stored.get("lost", "0")) + missing
        if why:
            values = {"epoch": secrets.token_hex(4), "salt": str(salt), "lost": str(lost), "system": system}
            for key, value in values.items():
                upsert = "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2"
                await connection.execute(upsert, key, value)
            epoch = values["epoch"]
        if missing:  # no position and no number is given a second time
            head = "coalesce((SELECT max(e.pos) FROM events e WHERE e.channel = c.id), 0)"
            await connection.execute(f"UPDATE channels c SET pos = greatest(pos, {head}) + $1", missing)
        seq += missing
        if seq and seq != (given if called else 0):  # a logical copy may leave the sequence behind
            await connection.execute("SELECT setval('seq', $1)", seq)
    mark.begin(Marked(epoch, salt, seq, _NOWHERE))
    return Identity(epoch, salt, lost, missing, seq, why if stored.get("epoch") else "")


def _reason(stored: dict[str, str], system: str, missing: int) -> str:
    if not stored.get("epoch"):
        return "it is new"
    if missing:
        return f"its last {missing} events are gone"
    return "it was copied or restored" if stored.get("system") != system else ""


async def system_of(connection: Any) -> str:
    """Which database of which server; it stays over restarts and the promotion of a physical replica."""
    sql = "SELECT s.system_identifier || '/' || d.oid FROM pg_control_system() s, pg_database d WHERE d.datname = "
    return str(await connection.fetchval(f"{sql} current_database()"))


def mark_of(folder: Path) -> Mark:
    return Mark(folder / "log.postgres")

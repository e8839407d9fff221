"""The log in PostgreSQL as rows, for `portico log copy`: pages go in by COPY."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any

import asyncpg

from portico.cluster.postgres.connect import connect
from portico.cluster.postgres.error_text import check_url, translate
from portico.cluster.postgres.identity import system_of
from portico.cluster.postgres.schema import SCHEMA, prepare
from portico.cluster.postgres.store import stored_sum
from portico.kernel.errors import BadRequest, Conflict
from portico.kernel.log.sqlite.checksum import kv_sum
from portico.server.maintenance.copy import COPYING, Channel, CopiedRow, Note, fits, stated

_HEAD = "(SELECT e.pos FROM events e WHERE e.channel = c.id ORDER BY e.pos DESC LIMIT 1)"


class PostgresSide:
    def __init__(self, address: str, db: Any) -> None:
        self.name = f"The database {address!r}"
        self._db = db

    @classmethod
    @contextlib.asynccontextmanager
    async def opened(cls, url: str, *, new: bool) -> AsyncIterator["PostgresSide"]:
        address = check_url(url)
        try:
            db = await connect(url, "log copy")
        except Exception as error:  # asyncpg's, the socket's and TLS's have no common base
            raise translate(error, address, "then try again") from error
        try:
            if not new and await db.fetchval("SELECT to_regclass($1)", f"{SCHEMA}.events") is None:
                raise BadRequest(f"The database {address!r} has no log.", field="from")
            await prepare(db)
            running = await db.fetchval("SELECT name FROM hosts WHERE expires > clock_timestamp() LIMIT 1")
            if running is not None:
                raise Conflict(f"The host {running!r} runs on the database {address!r}. Stop it first.")
            yield cls(address, db)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise translate(error, address, "then try again: the copy goes on where it was") from error
        finally:
            await db.close()

    async def meta(self) -> dict[str, str]:
        return dict(await self._db.fetch("SELECT key, value FROM meta WHERE key != 'version'"))

    async def put_meta(self, values: dict[str, str | None]) -> None:
        for key, value in values.items():
            if value is None:
                await self._db.execute("DELETE FROM meta WHERE key = $1", key)
            else:
                upsert = "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2"
                await self._db.execute(upsert, key, value)

    async def seq(self) -> int:
        given, called = await self._db.fetchrow("SELECT last_value, is_called FROM seq")
        return max(int(given) if called else 0, await self.last())

    async def last(self) -> int:
        return int(await self._db.fetchval("SELECT coalesce(max(seq), 0) FROM events"))

    async def count(self) -> int:
        return int(await self._db.fetchval("SELECT count(*) FROM events"))

    async def channels(self) -> list[Channel]:
        sql = f"SELECT id, name, greatest(pos, coalesce({_HEAD}, 0)) FROM channels c ORDER BY id"
        return [Channel(*row) for row in await self._db.fetch(sql)]

    async def put_channels(self, channels: list[Channel], seq: int) -> None:
        sql = (
            "INSERT INTO channels (id, name, pos) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET pos = excluded.pos"
        )
        await self._db.executemany(sql, channels)
        highest = max((each.id for each in channels), default=0)
        if highest:
            await self._db.execute("SELECT setval(pg_get_serial_sequence('channels', 'id'), $1)", highest)
        if seq:
            await self._db.execute("SELECT setval('seq', $1)", seq)

    async def _salt(self) -> int:
        return int((await self.meta())["salt"])

    async def events(self, after: int, limit: int) -> list[CopiedRow]:
        salt = await self._salt()
        sql = "SELECT seq, channel, pos, time, delta, data, sum FROM events WHERE seq > $1 ORDER BY seq LIMIT $2"
        return [
            CopiedRow(seq, channel, pos, time, delta, data, fits(sum_, stored_sum(salt, channel, data)))
            for seq, channel, pos, time, delta, data, sum_ in await self._db.fetch(sql, after, limit)
        ]

    async def put_events(self, rows: list[CopiedRow]) -> None:
        salt = await self._salt()
        columns = ["seq", "channel", "pos", "time", "delta", "data", "sum"]
        records = [(*row[:6], stated(row.whole, stored_sum(salt, row.channel, row.data))) for row in rows]
        await self._db.copy_records_to_table("events", columns=columns, records=records)

    async def notes(self) -> list[Note]:
        return [Note(*row) for row in await self._db.fetch("SELECT channel, key, data, time FROM notes")]

    async def put_notes(self, notes: list[Note]) -> None:
        sql = "INSERT INTO notes (channel, key, data, time, sum) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
        await self._db.executemany(sql, [(*note, kv_sum(*note[:3])) for note in notes])

    async def digests(self) -> set[str]:
        return {digest for (digest,) in await self._db.fetch("SELECT digest FROM blobs")}

    async def blobs(self, digests: list[str]) -> list[tuple[str, bytes]]:
        rows = await self._db.fetch("SELECT digest, data FROM blobs WHERE digest = ANY($1)", digests)
        return [(digest, data) for digest, data in rows]

    async def put_blobs(self, blobs: list[tuple[str, bytes]]) -> None:
        sql = "INSERT INTO blobs (digest, host, data) VALUES ($1, 0, $2) ON CONFLICT DO NOTHING"
        await self._db.executemany(sql, blobs)

    async def users(self) -> set[tuple[str, int]]:
        return {(digest, channel) for digest, channel in await self._db.fetch("SELECT digest, channel FROM blob_users")}

    async def put_users(self, users: Iterable[tuple[str, int]]) -> None:
        sql = "INSERT INTO blob_users (digest, channel) VALUES ($1, $2) ON CONFLICT DO NOTHING"
        await self._db.executemany(sql, list(users))

    async def finish(self, epoch: str, salt: int, seq: int) -> None:
        await self.put_meta({"epoch": epoch, "system": await system_of(self._db), COPYING: None})

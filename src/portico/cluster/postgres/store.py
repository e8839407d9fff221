"""The stored rows in PostgreSQL: reading, notes, blobs, compaction and deletion, over a small pool of connections.

A read that meets a lost connection is tried again for a few seconds: readers need not know that a database was
restarted. What writes is not: whether it was done is for the caller to find out.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec

from portico.cluster.postgres.error_text import READ_ONLY, is_lost, translate
from portico.cluster.postgres.schema import COMPACTION
from portico.cluster.postgres.text import from_text, parameter, to_text
from portico.kernel import faults, limits
from portico.kernel.errors import LogDamaged, LogUnavailable
from portico.kernel.events import Channel, Record, Unreadable, encode
from portico.kernel.log.sqlite.checksum import event_sum, kv_sum
from portico.kernel.log.stored.log import compacted_key

logger = logging.getLogger("portico.log")
T = TypeVar("T")

READ_AGAIN_SECONDS = 5.0
"""Retry time for a read on a lost connection: a server restarts in two seconds."""
_DROP_ROWS = 2_000
"""Deltas dropped in one statement: 6 ms."""
_BLOB_GRACE = "10 minutes"
"""An event that references a blob just stored by another host may follow."""
_COLUMNS = "seq, channel, pos, time, data, sum"
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_UNREADABLE = encode(Unreadable(reason="checksum"))
_TEXT = "part.delta"


class _Piece(msgspec.Struct):
    type: str
    part: str = ""
    text: str = ""


_piece = msgspec.json.Decoder(_Piece)


def stored_sum(salt: int, channel: int, data: bytes) -> int:
    """Compute the checksum without seq, position and time: the database assigns them in the same statement."""
    return event_sum(salt, 0, channel, 0, 0, data)


class PostgresStore:
    def __init__(self, pool: Any, address: str, salt: int) -> None:
        self._pool = pool
        self._address = address
        self._salt = salt
        self.host = 0
        """The id of the host that stores blobs; set with the lease."""
        self.known_ids: dict[Channel, int] = {}
        self.names: dict[int, Channel] = {}

    # -- channels ----------------------------------------------------------------------------------------------

    async def heads(self) -> dict[Channel, int]:
        """The last position of every channel, from the index; `channels.pos` is what deletion and compaction left."""
        last = "(SELECT e.pos FROM events e WHERE e.channel = c.id ORDER BY e.pos DESC LIMIT 1)"
        rows = await self.fetch(
            f"SELECT c.id, c.name, greatest(c.pos, coalesce({last}, 0)) FROM channels c ORDER BY c.id"
        )
        for ident, name, _ in rows:
            self._know(ident, name)
        return {from_text(name): pos for _, name, pos in rows}

    def _know(self, ident: int, name: Channel) -> None:
        name = from_text(name)
        self.known_ids[name], self.names[ident] = ident, name

    async def ids(self, channels: Iterable[Channel]) -> dict[Channel, int]:
        """Return the ids of channels and create missing ones, outside of the commit; all hosts use the same ids."""
        new = sorted({channel for channel in channels if channel not in self.known_ids})
        if new:
            await self._done("INSERT INTO channels (name) SELECT * FROM unnest($1::text[]) ON CONFLICT DO NOTHING", new)
            for ident, name in await self.fetch("SELECT id, name FROM channels WHERE name = ANY($1)", new):
                self._know(ident, name)
        return self.known_ids

    async def learn(self, channels: set[int]) -> None:
        """Load the names of channels that other hosts have created."""
        unknown = channels - self.names.keys()
        if unknown:
            for ident, name in await self.fetch("SELECT id, name FROM channels WHERE id = ANY($1)", list(unknown)):
                self._know(ident, name)
            self.names.update(dict.fromkeys(unknown - self.names.keys(), "damaged"))

    def channel_in(self, detail: str) -> Channel:
        """Return the channel in a database error: Key (channel, pos)=(5, 7) already exists."""
        found = re.search(r"=\((\d+),", detail)
        return self.names.get(int(found[1]), "") if found else ""

    async def _id(self, channel: Channel) -> int | None:
        if channel not in self.known_ids:
            for ident, name in await self.fetch("SELECT id, name FROM channels WHERE name = $1", channel):
                self._know(ident, name)
        return self.known_ids.get(channel)

    # -- events ------------------------------------------------------------------------------------------------

    async def read(self, channel: Channel, after: int, upto: int, limit: int, size: int = 0) -> list[Record]:
        where = "channel = $1 AND pos > $2 AND pos <= $3 ORDER BY pos"
        return await self._records(where, [await self._id(channel), after, upto], limit, size)

    async def read_all(
        self, channels: tuple[Channel, ...], after: int, upto: int, limit: int, whole: bool, size: int = 0
    ) -> list[Record]:
        where = "seq > $1 AND seq <= $2" + (" AND NOT delta" if whole else "")
        if not channels:
            return await self._records(f"{where} ORDER BY seq", [after, upto], limit, size)
        ids = [await self._id(channel) for channel in channels]
        known = [ident for ident in ids if ident is not None]
        return await self._records(f"{where} AND channel = ANY($3) ORDER BY seq", [after, upto, known], limit, size)

    async def _records(self, where: str, args: list[Any], limit: int, size: int) -> list[Record]:
        """Bounded by bytes, too: rows are fetched in portions, so that one of megabytes does not bring a thousand."""
        most, found, total = size or limits.READ_BYTES, list[Record](), 0
        portion = min(limit, max(100, most // 512))
        sql = f"SELECT {_COLUMNS} FROM events WHERE {where} LIMIT {{}} OFFSET {{}}"
        while len(found) < limit:
            rows = await self.fetch(sql.format(min(portion, limit - len(found)), len(found)), *args)
            await self.learn({row[1] for row in rows})
            for row in rows:
                found.append(self._record(row))
                total += len(row[4])
                if total > most:
                    return found
            if len(rows) < portion:
                break
        return found

    def _record(self, row: Any) -> Record:
        seq, channel, pos, time, data, checksum = row
        if checksum is not None and checksum != stored_sum(self._salt, channel, data):
            logger.error("the log is damaged: event %d is unreadable", seq)
            data = _UNREADABLE
        return Record(seq, self.names[channel], pos, time, data)

    async def places(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """Return seq, position and time of the events of our commit whose answer was lost."""
        rows = await self.fetch(
            "SELECT seq, pos, time FROM events WHERE seq >= $1 AND seq <= $2 ORDER BY seq", first, last
        )
        return [(seq, pos, time) for seq, pos, time in rows]

    async def last(self) -> int:
        found: int = await self._value("SELECT coalesce(max(seq), 0) FROM events")
        return found

    async def expire_packs(self, upto: int) -> None:
        """Delete the packs of commits that every host has read, or reads from the rows."""
        if upto:
            await self._done("DELETE FROM packs WHERE last <= $1", upto)

    async def drop_wrong_packs(self) -> None:
        """Delete packs without events, which the restore of a backup can leave."""
        await self._done("DELETE FROM packs WHERE last > (SELECT coalesce(max(seq), 0) FROM events)")

    async def size(self, channel: Channel) -> int:
        sql = "SELECT coalesce(sum(length(data)), 0)::bigint FROM events WHERE channel = $1"
        return int(await self._value(sql, await self._id(channel)))

    async def disk(self) -> int:
        return int(await self._value("SELECT pg_database_size(current_database())"))

    # -- notes and blobs ---------------------------------------------------------------------------------------

    async def list_kv(self, key: str) -> dict[Channel, bytes]:
        sql = (
            "SELECT c.name, n.channel, n.data, n.sum FROM notes n JOIN channels c ON c.id = n.channel WHERE n.key = $1"
        )
        rows = await self.fetch(sql, key)
        whole = [row for row in rows if _is_whole(row[1], key, row[2], row[3])]
        return {from_text(name): data for name, _, data, _ in whole}

    async def get_kv(self, channel: Channel, key: str) -> bytes | None:
        ident = await self._id(channel)
        for data, checksum in await self.fetch(
            "SELECT data, sum FROM notes WHERE channel = $1 AND key = $2", ident, key
        ):
            if ident is not None and _is_whole(ident, key, data, checksum):
                return bytes(data)
        return None

    async def replace_kv(self, channel: Channel, key: str, old: bytes | None, new: bytes | None) -> bool:
        """Compare and swap in one statement. If `new` is already stored, the answer of an earlier try was lost."""
        ident = (await self.ids([channel]))[channel]
        if new is None:
            await self._done("DELETE FROM notes WHERE channel = $1 AND key = $2 AND data = $3", ident, key, old)
            return await self.get_kv(channel, key) is None
        values = [ident, key, new, kv_sum(ident, key, new)]
        if old is None:
            sql = f"INSERT INTO notes (channel, key, data, sum, time) VALUES ($1, $2, $3, $4, {_NOW})"
            sql += " ON CONFLICT (key, channel) DO UPDATE SET time = excluded.time WHERE notes.data = excluded.data"
            return bool(await self._done(sql, *values))
        sql = f"UPDATE notes SET data = $3, sum = $4, time = {_NOW} WHERE channel = $1 AND key = $2"
        return bool(await self._done(f"{sql} AND data IN ($3, $5)", *values, old))

    async def expire_kv(self, prefix: str, before: int) -> int:
        return await self._done("DELETE FROM notes WHERE starts_with(key, $1) AND time < $2", prefix, before)

    async def put_blob(self, digest: str, data: bytes) -> None:
        sql = "INSERT INTO blobs (digest, host, data) VALUES ($1, $2, $3) ON CONFLICT (digest) DO UPDATE"
        await self._done(f"{sql} SET stored = clock_timestamp(), host = excluded.host", digest, self.host, data)

    async def blob(self, digest: str) -> bytes | None:
        data = await self._value("SELECT data FROM blobs WHERE digest = $1", digest)
        if data is not None and hashlib.sha256(data).hexdigest() != digest:
            raise LogDamaged(f"The blob {digest!r} is damaged in the database; its content is lost.")
        return data if data is None else bytes(data)

    async def blob_users(self, digest: str) -> list[Channel]:
        sql = "SELECT c.name FROM blob_users u JOIN channels c ON c.id = u.channel WHERE u.digest = $1"
        return [from_text(name) for (name,) in await self.fetch(sql, digest)]

    async def own_blobs(self, channel: Channel) -> set[str]:
        others = "SELECT 1 FROM blob_users o WHERE o.digest = u.digest AND o.channel != u.channel"
        sql = f"SELECT digest FROM blob_users u WHERE channel = $1 AND NOT EXISTS ({others})"
        return {digest for (digest,) in await self.fetch(sql, await self._id(channel))}

    # -- housekeeping ------------------------------------------------------------------------------------------

    async def drop_deltas(self, before: int, keep: dict[Channel, int]) -> int:
        """One step. Commits are in the order of their times (to within clocks), so it ends at the first young one."""
        floors = {await self._id(channel): pos for channel, pos in keep.items()}
        after = 0
        while True:
            sql = "SELECT seq, channel, pos, time, data FROM events WHERE delta AND seq > $1 ORDER BY seq LIMIT $2"
            rows = await self.fetch(sql, after, _DROP_ROWS)
            old = [row for row in rows if row[3] < before]
            doomed = [row for row in old if row[1] not in floors or row[2] < floors[row[1]]]
            if doomed:
                await self._drop(doomed)
                return len(doomed)
            if len(old) < _DROP_ROWS:
                return 0
            after = rows[-1][0]

    async def _drop(self, doomed: list[Any]) -> None:
        """With the trail of what went, in one transaction that does not take the lock of the commits. Another host may
        compact at the same time: they take turns, and each counts only what it has deleted itself."""

        async def drop(connection: Any) -> None:
            async with connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock($1)", COMPACTION)
                sql = "SELECT seq, channel, data FROM events WHERE seq = ANY($1) ORDER BY seq"
                rows = await connection.fetch(sql, [row[0] for row in doomed])
                await self._forget(connection, "seq = ANY($1)", [row[0] for row in rows])
                for (channel, key), offsets in _trails(rows).items():
                    await _lengthen(connection, channel, key, offsets)
                faults.reach("compaction-write")

        await self.with_connection(drop, again=False)

    @staticmethod
    async def _forget(connection: Any, where: str, *args: Any) -> int:
        """Delete events; the position of a channel's deleted last event is not reused."""
        gone = f"WITH gone AS (DELETE FROM events WHERE {where} RETURNING channel, pos)"
        last = "SELECT channel, max(pos) AS pos, count(*) AS n FROM gone GROUP BY channel"
        kept = "UPDATE channels c SET pos = m.pos FROM m WHERE c.id = m.channel AND c.pos < m.pos RETURNING 1"
        sql = f"{gone}, m AS ({last}), kept AS ({kept}) SELECT coalesce(sum(n), 0)::bigint FROM m"
        return int(await connection.fetchval(sql, *args))

    async def drop_channel_deltas(self, channel: Channel, below: int) -> int:
        ident = await self._id(channel)
        chosen = "SELECT seq FROM events WHERE channel = $1 AND pos < $2 AND delta LIMIT $3"

        async def drop(connection: Any) -> int:
            return await self._forget(connection, f"seq IN ({chosen})", ident, below, _DROP_ROWS)

        return await self.with_connection(drop, again=False)

    async def delete(self, channel: Channel, blobs: Iterable[str]) -> None:
        """Not as thorough as in a file: the rows' bytes stay in the tables until they are used again, and in the
        write-ahead log and backups of the database (docs/guide/cluster.md)."""
        ident = await self._id(channel)

        async def delete(connection: Any) -> None:
            async with connection.transaction():
                await self._forget(connection, "channel = $1", ident)
                await connection.execute("DELETE FROM notes WHERE channel = $1", ident)
                await connection.execute("DELETE FROM blob_users WHERE channel = $1", ident)
                young = f"host != $2 AND stored > clock_timestamp() - interval '{_BLOB_GRACE}'"
                await connection.execute(
                    f"DELETE FROM blobs WHERE digest = ANY($1) AND NOT ({young})", list(blobs), self.host
                )

        await self.with_connection(delete, again=False)

    # -- connections -------------------------------------------------------------------------------------------

    async def fetch(self, sql: str, *given: Any) -> list[Any]:
        args = [parameter(each) for each in given]
        found: list[Any] = await self.with_connection(lambda connection: connection.fetch(sql, *args))
        return found

    async def _value(self, sql: str, *given: Any) -> Any:
        args = [parameter(each) for each in given]
        return await self.with_connection(lambda connection: connection.fetchval(sql, *args))

    async def _done(self, sql: str, *given: Any) -> int:
        """Execute an idempotent statement and return the number of rows."""
        args = [parameter(each) for each in given]
        status: str = await self.with_connection(lambda connection: connection.execute(sql, *args))
        return int(status.rpartition(" ")[2])

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self._pool.close(), 2)
        except TimeoutError:
            self._pool.terminate()

    def use(self, pool: Any) -> None:
        """Replace the connection pool; queries without an answer are retried on the new connections."""
        self._pool.terminate()
        self._pool = pool

    async def with_connection(self, work: Callable[[Any], Awaitable[T]], *, again: bool = True) -> T:
        loop = asyncio.get_running_loop()
        until = loop.time() + READ_AGAIN_SECONDS
        while True:
            try:
                async with self._pool.acquire() as connection:
                    return await work(connection)
            except LogUnavailable:
                raise
            except Exception as error:  # asyncpg's, the socket's and TLS's have no common base
                if getattr(error, "sqlstate", "") == READ_ONLY:
                    await self._pool.expire_connections()  # otherwise they stay read-only after it is writable
                if not (again and is_lost(error)) or loop.time() > until or self._pool.is_closing():
                    raise translate(error, self._address) from error
            await asyncio.sleep(0.1)


def _trails(rows: list[Any]) -> dict[tuple[int, str], list[int]]:
    """Return seq and length of the deleted pieces, by the note of their part."""
    trails: dict[tuple[int, str], list[int]] = {}
    for seq, channel, data in rows:
        piece = _piece.decode(data)
        if piece.type == _TEXT:
            trails.setdefault((channel, compacted_key(piece.part)), []).extend((seq, len(piece.text)))
    return trails


async def _lengthen(connection: Any, channel: int, key: str, offsets: list[int]) -> None:
    sql = "SELECT data FROM notes WHERE channel = $1 AND key = $2"
    found = await connection.fetchval(sql, channel, to_text(key))
    data = msgspec.msgpack.encode((msgspec.msgpack.decode(found, type=list[int]) if found else []) + offsets)
    await connection.execute(
        f"INSERT INTO notes (time, sum, channel, key, data) VALUES ({_NOW}, $1, $2, $3, $4)"
        " ON CONFLICT (key, channel) DO UPDATE SET time = excluded.time, sum = excluded.sum, data = excluded.data",
        kv_sum(channel, key, data),
        channel,
        to_text(key),
        data,
    )


def _is_whole(channel: int, key: str, data: bytes, checksum: int | None) -> bool:
    """Whether a note is intact. A damaged one counts as missing: it is derived from the events, or requested again."""
    whole = checksum in (None, kv_sum(channel, key, data))
    if not whole:
        logger.error("the note %r of channel %d is damaged", key, channel)
    return whole

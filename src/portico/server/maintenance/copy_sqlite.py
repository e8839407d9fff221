"""A log file as rows, for `portico log copy`."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from portico.kernel.log.sqlite.checksum import channel_sum, event_sum, kv_sum
from portico.kernel.log.sqlite.database import Database
from portico.kernel.log.sqlite.watermark import LogFiles, Mark, Marked
from portico.server.maintenance.copy import COPYING, Channel, CopiedRow, Note, fits, stated


class _Part(msgspec.Struct):
    part: str = ""


class SqliteSide:
    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.name = str(path)
        self._path = path
        self._db = db

    @classmethod
    @contextlib.contextmanager
    def opened(cls, path: Path) -> Iterator["SqliteSide"]:
        Database.open(path, full=True).close()  # makes or migrates it, and finds out what is wrong with it
        db = sqlite3.connect(path, isolation_level=None)
        try:
            yield cls(path, db)
        finally:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.close()

    def _all(self, sql: str, *args: object) -> list[Any]:
        return self._db.execute(sql, args).fetchall()

    def _write(self, sql: str, rows: Iterable[Any]) -> None:
        self._db.execute("BEGIN")
        self._db.executemany(sql, rows)
        self._db.execute("COMMIT")

    async def meta(self) -> dict[str, str]:
        return dict(self._all("SELECT key, value FROM meta"))

    async def put_meta(self, values: dict[str, str | None]) -> None:
        self._write("DELETE FROM meta WHERE key = ?", [(key,) for key in values])
        rows = [(key, value) for key, value in values.items() if value is not None]
        self._write("INSERT INTO meta VALUES (?, ?)", rows)

    async def seq(self) -> int:
        return max(int(self._all("SELECT pos FROM channels WHERE id = 0")[0][0]), await self.last())

    async def last(self) -> int:
        return int(self._all("SELECT coalesce(max(seq), 0) FROM events")[0][0])

    async def count(self) -> int:
        return int(self._all("SELECT count(*) FROM events")[0][0])

    async def channels(self) -> list[Channel]:
        return [Channel(*row) for row in self._all("SELECT id, name, pos FROM channels WHERE id != 0 ORDER BY id")]

    async def put_channels(self, channels: list[Channel], seq: int) -> None:
        rows = [*channels, Channel(0, "", seq)]
        sql = "INSERT OR REPLACE INTO channels (id, name, pos, sum) VALUES (?, ?, ?, ?)"
        self._write(sql, [(*row, channel_sum(*row)) for row in rows])

    async def _salt(self) -> int:
        return int((await self.meta())["salt"])

    async def events(self, after: int, limit: int) -> list[CopiedRow]:
        salt = await self._salt()
        sql = "SELECT seq, channel, pos, time, delta, data, sum FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        return [
            CopiedRow(
                seq,
                channel,
                pos,
                time,
                delta is not None,
                data,
                fits(sum_, event_sum(salt, seq, channel, pos, time, data)),
            )
            for seq, channel, pos, time, delta, data, sum_ in self._all(sql, after, limit)
        ]

    async def put_events(self, rows: list[CopiedRow]) -> None:
        salt = await self._salt()
        self._write(
            "INSERT INTO events (seq, channel, pos, time, delta, data, sum) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(*row[:4], _part(row), row.data, stated(row.whole, event_sum(salt, *row[:4], row.data))) for row in rows],
        )

    async def notes(self) -> list[Note]:
        return [Note(*row) for row in self._all("SELECT channel, key, data, time FROM notes")]

    async def put_notes(self, notes: list[Note]) -> None:
        rows = [(*note[:3], kv_sum(*note[:3]), note.time) for note in notes]
        self._write("INSERT OR REPLACE INTO notes (channel, key, data, sum, time) VALUES (?, ?, ?, ?, ?)", rows)

    async def digests(self) -> set[str]:
        return {digest for (digest,) in self._all("SELECT digest FROM blobs")}

    async def blobs(self, digests: list[str]) -> list[tuple[str, bytes]]:
        return [row for each in digests for row in self._all("SELECT digest, data FROM blobs WHERE digest = ?", each)]

    async def put_blobs(self, blobs: list[tuple[str, bytes]]) -> None:
        self._write("INSERT OR IGNORE INTO blobs (digest, data) VALUES (?, ?)", blobs)

    async def users(self) -> set[tuple[str, int]]:
        return set(self._all("SELECT digest, channel FROM blob_users"))

    async def put_users(self, users: Iterable[tuple[str, int]]) -> None:
        self._write("INSERT OR IGNORE INTO blob_users VALUES (?, ?)", users)

    async def finish(self, epoch: str, salt: int, seq: int) -> None:
        await self.put_meta({COPYING: None, "epoch": epoch})
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with contextlib.closing(Mark(self._path)) as mark:  # or the next start would take it for another log
            files = LogFiles.of(self._path)
            mark.begin(Marked(epoch, salt, seq, files._replace(wal=0)))


def _part(row: CopiedRow) -> str | None:
    return msgspec.json.decode(row.data, type=_Part).part if row.delta else None

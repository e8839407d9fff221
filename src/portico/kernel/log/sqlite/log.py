"""The log on SQLite: one writer thread; numbers are assigned before the commit and reset if it fails."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, TypeVar

from portico.kernel import limits
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Channel, Record
from portico.kernel.log.group_commit import CommittedBatch, Done
from portico.kernel.log.log import DiskUse
from portico.kernel.log.notes import KeyValue
from portico.kernel.log.page import Page
from portico.kernel.log.pending import Pending, compactable_part
from portico.kernel.log.sqlite.checkpoints import Checkpoints
from portico.kernel.log.sqlite.database import Batch, Database
from portico.kernel.log.sqlite.worker import Workers
from portico.kernel.log.stored.log import StoredLog

Durability = Literal["normal", "full"]
T = TypeVar("T")

WATCH_SECONDS = 0.5
"""Time between two checks that the log's file still exists."""


class _Threads:
    """The database, for the event loop: one thread writes, others read."""

    def __init__(self, log: "SqliteLog", database: Database) -> None:
        self._log = log
        self._database = database
        self.writer = Workers(1, "portico-log")
        self.readers = Workers(2, "portico-read")

    async def _read(self, function: Callable[..., T], *args: object) -> T:
        return await self.readers.run(function, *args)

    async def _write(self, function: Callable[..., T], *args: object) -> T:
        self._log.check_open()
        return await self.writer.run(function, *args)

    async def read(self, channel: Channel, after: int, upto: int, limit: int, size: int = 0) -> list[Record]:
        return await self._read(self._database.read, channel, after, upto, limit, size)

    async def read_all(
        self, channels: tuple[Channel, ...], after: int, upto: int, limit: int, whole: bool, size: int = 0
    ) -> list[Record]:
        return await self._read(self._database.read_all, channels, after, upto, limit, whole, size)

    async def list_kv(self, key: str) -> dict[Channel, bytes]:
        return await self._read(self._database.list_kv, key)

    async def get_kv(self, channel: Channel, key: str) -> bytes | None:
        return await self._read(self._database.get_kv, channel, key)

    async def replace_kv(self, channel: Channel, key: str, old: bytes | None, new: bytes | None) -> bool:
        return await self._write(self._database.replace_kv, channel, key, old, new)

    async def expire_kv(self, prefix: str, before: int) -> int:
        return await self._write(self._database.expire_kv, prefix, before)

    async def put_blob(self, digest: str, data: bytes) -> None:
        await self._write(self._database.put_blob, digest, data)

    async def blob(self, digest: str) -> bytes | None:
        return await self._read(self._database.blob, digest)

    async def blob_users(self, digest: str) -> list[Channel]:
        return await self._read(self._database.blob_users, digest)

    async def own_blobs(self, channel: Channel) -> set[str]:
        return await self._read(self._database.own_blobs, channel)

    async def drop_deltas(self, before: int, keep: dict[Channel, int]) -> int:
        return await self._write(self._database.drop_deltas, before, keep)

    async def drop_channel_deltas(self, channel: Channel, below: int) -> int:
        return await self._write(self._database.drop_channel_deltas, channel, below)

    async def size(self, channel: Channel) -> int:
        return await self._read(self._database.size, channel)

    async def delete(self, channel: Channel, blobs: Iterable[str]) -> None:
        await self._write(self._database.delete, channel, blobs)

    def close(self) -> None:
        self.writer.shutdown()
        self.readers.shutdown()


class SqliteLog(StoredLog):
    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = database.clock = clock
        self._threads = _Threads(self, database)
        super().__init__(self._threads, database.identity, *database.heads())
        self._checkpoints = Checkpoints(database.checkpoint, self._threads.writer)
        self._watching = self._loop.call_later(WATCH_SECONDS, self._watch)
        self._moved: LogUnavailable | None = None
        """The error if the file was moved: writes to it are not acknowledged any more."""

    @classmethod
    async def open(
        cls, path: Path, *, durability: Durability = "normal", clock: Callable[[], float] = time.time
    ) -> "SqliteLog":
        database = await asyncio.to_thread(Database.open, path, durability == "full")
        with contextlib.ExitStack() as failing:
            failing.callback(database.close)
            log = cls(database, clock)
            failing.pop_all()
        return log

    # -- writing -----------------------------------------------------------------------------------------------

    def _write(self, taken: list[Pending], values: list[KeyValue], done: Done) -> None:
        heads: dict[Channel, int] = {}
        now, seq = int(self._clock() * 1000), self._seq
        records, rows = Page(), []
        for pending in taken:
            event, data = pending.whole()
            channel, seq = pending.channel, seq + 1
            pos = heads[channel] = (heads.get(channel) or self._heads.get(channel, 0)) + 1
            records.append(Record(seq, channel, pos, now, data, event))
            rows.append((seq, channel, pos, now, compactable_part(event) if event.piece_of else None, data))
        committed = CommittedBatch(records, heads)
        self._threads.writer.call(done, self._put, Batch(rows, heads, values), committed)

    def _put(self, batch: Batch, committed: CommittedBatch) -> CommittedBatch:
        self._database.write(batch)
        return committed

    def journal(self, channel: Channel, key: str, data: bytes | None) -> None:
        self.check_open()
        try:
            self._database.journal.put(channel, key, data)
        except OSError as error:
            raise LogUnavailable(f"The log's journal cannot be written: {error.strerror}.") from error
        self._notes.put_lazy((channel, key), data)

    def _after_commit(self, records: Page) -> None:
        if self._moved is not None:
            self._fail(self._moved, [])
        if not self._notes.lazy:
            self._database.journal.committed()
        self._checkpoints.waiting += limits.COMMIT_BYTES + sum(len(record.data) for record in records)
        if self._checkpoints.waiting > limits.CHECKPOINT_BYTES:
            self._checkpoints.start()

    def _watch(self) -> None:
        """Detect a moved file also while nothing is written: within a second the log reports itself as unavailable."""
        if self._closed:
            return
        self._watching = self._loop.call_later(WATCH_SECONDS, self._watch)
        if self._down is None:
            try:
                self._database.check()
            except LogUnavailable as error:
                self._moved = error
                if not self._busy:  # otherwise after the current write: it is in the moved file
                    self._fail(error, [])
                return
            if self._database.truncate_due:
                self._threads.writer.run(self._database.truncate)

    def _probe(self) -> "asyncio.Future[None]":
        return self._threads.writer.run(self._database.probe)

    def _probed(self, future: "asyncio.Future[None]") -> None:
        if future.exception() is None:
            self._moved = None
        super()._probed(future)

    # -- housekeeping ------------------------------------------------------------------------------------------

    def disk(self) -> DiskUse:
        return self._database.disk()

    async def _shut(self) -> None:
        self._watching.cancel()
        self._checkpoints.stop()
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        self._threads.close()
        self._checkpoints.shutdown()
        self._database.close()

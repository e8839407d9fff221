"""The log on SQLite: one writer thread, group commit, deliver after commit.

The way of an event: `append` or `post` puts it into `_pending`; when the writer is free, everything pending gets its
numbers and becomes one transaction; when that is durable the batch goes to the taps and to the followers. Deltas
merge while they wait. There is one batch in flight at a time, so a failed one leaves no hole: its numbers are
taken back and given to the next.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from portico import faults, limits
from portico.errors import BadRequest, LogUnavailable, NotFound, TooLarge
from portico.events import Channel, Delta, Event, Record
from portico.log.database import Batch, Database, KeyValue, Row, compacted_key
from portico.log.hub import Follower, Hub
from portico.log.log import CommitListener, FailureListener
from portico.log.pending import Pending

Durability = Literal["normal", "full"]
T = TypeVar("T")

_PROBE_SECONDS = 0.5
"""Between two tries to write again after a failure: soon enough for a person who just freed some space."""


class SqliteLog:
    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._writer = ThreadPoolExecutor(1, "portico-log")
        self._readers = ThreadPoolExecutor(2, "portico-read")
        self._checkpointer = ThreadPoolExecutor(1, "portico-checkpoint")
        self._checkpointing = False
        self._uncheckpointed = 0
        self._hub = Hub()
        self._commit_listeners: list[CommitListener] = []
        self._listeners: list[FailureListener] = []
        self._seq, self._heads = database.heads()
        self._pending: list[Pending] = []
        self._last: dict[Channel, Pending] = {}
        self._notes: dict[tuple[Channel, str], tuple[int, bytes | None]] = {}
        self._pending_bytes = 0
        self._ticket = 0
        self._settled = 0
        self._urgent = False
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._committed_at = 0.0
        self._changed: set[asyncio.Future[None]] = set()
        self._kept: set[str] = set()
        """Blobs that were stored since the last deletion began."""
        self._down: LogUnavailable | None = None
        self._closed = False
        self.commits = 0

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

    @property
    def seq(self) -> int:
        return self._seq

    @property
    def down(self) -> LogUnavailable | None:
        return self._down

    @property
    def followers(self) -> int:
        return self._hub.followers

    def head(self, channel: Channel) -> int:
        return self._heads.get(channel, 0)

    def channels(self, prefix: str) -> list[Channel]:
        return [name for name, pos in self._heads.items() if pos and name.startswith(prefix)]

    async def append(self, channel: Channel, *events: Event) -> int:
        return await self.append_all(*[(channel, event) for event in events])

    async def append_all(self, *events: tuple[Channel, Event]) -> int:
        if not events:
            raise BadRequest("append needs at least one event.")
        self._check_open()
        group = [Pending(channel, event) for channel, event in events]  # refuses before anything is taken in
        waiter: asyncio.Future[int] = self._loop.create_future()
        group[-1].waiter = waiter
        for pending in group:
            pending.more = pending is not group[-1]
            self._add(pending)
        faults.reach("before-append")
        self._urgent = True
        self._kick()
        seq = await self._decided(waiter)
        faults.reach("after-append")
        return seq

    @staticmethod
    async def _decided(waiter: "asyncio.Future[int]") -> int:
        """A cancelled caller's events are written all the same. It may hold a lock over what it checked, so it is let
        go only when the commit is decided."""
        try:
            return await asyncio.shield(waiter)
        except asyncio.CancelledError:
            await asyncio.wait({waiter})
            waiter.exception()
            raise

    def post(self, channel: Channel, event: Event) -> None:
        self._check_open()
        pending = Pending(channel, event)
        last = self._last.get(channel)
        if last is not None and last.join(pending):
            self._pending_bytes += pending.size
        else:
            self._add(pending)
        if not self._busy and self._timer is None:
            self._kick()

    def put_kv(self, channel: Channel, key: str, data: bytes | None) -> None:
        self._ticket += 1
        self._notes[channel, key] = (self._ticket, data)
        self._loop.call_soon(self._kick)  # not at once: what is appended in the same breath joins this commit

    async def wait_capacity(self) -> None:
        while self._pending_bytes > limits.PENDING_BYTES and self._down is None:
            await self._change()

    async def flush(self) -> None:
        ticket = self._ticket  # what comes later is not waited for: under load there is always something
        while self._settled < ticket and self._down is None and not self._closed:
            self._urgent = True
            self._kick()
            await self._change()

    def _check_open(self) -> None:
        if self._closed:
            raise LogUnavailable("The host is stopping; nothing more is written.")
        if self._down is not None:
            raise self._down

    def _add(self, pending: Pending) -> None:
        self._ticket += 1
        pending.ticket = self._ticket
        self._pending.append(pending)
        self._pending_bytes += pending.size
        self._last[pending.channel] = pending

    def _kick(self) -> None:
        """Starts the next commit if the writer is free: at once, or after the cadence when only deltas wait."""
        if self._busy or self._closed or self._down is not None or not (self._pending or self._notes):
            return
        wait = 0.0 if self._urgent else self._committed_at + limits.COMMIT_CADENCE - self._loop.time()
        if wait > 0:
            if self._timer is None:
                self._timer = self._loop.call_later(wait, self._on_cadence)
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._commit()

    def _on_cadence(self) -> None:
        self._timer = None
        self._urgent = True
        self._kick()

    def _commit(self) -> None:
        cut = limits.BATCH_EVENTS
        while cut < len(self._pending) and self._pending[cut - 1].more:
            cut += 1
        taken, self._pending = self._pending[:cut], self._pending[cut:]
        # A note belongs to what was appended around it, so it goes with the events up to the next one behind it.
        settles = taken[-1].ticket if self._pending else self._ticket
        list_kv = {key: put_kv for key, put_kv in self._notes.items() if put_kv[0] <= settles}
        self._notes = {key: put_kv for key, put_kv in self._notes.items() if put_kv[0] > settles}
        self._urgent = bool(self._pending)
        self._last.clear()
        heads: dict[Channel, int] = {}
        records = self._number(taken, heads)
        batch = Batch(
            rows=[Row(r.seq, r.channel, r.pos, r.time, _part(r.event), r.data) for r in records],
            heads=heads,
            list_kv=[KeyValue(channel, key, data) for (channel, key), (_, data) in list_kv.items()],
        )
        self._busy = True
        done = self._loop.run_in_executor(self._writer, self._database.write, batch)
        done.add_done_callback(lambda future: self._finish(future, taken, records, heads, settles))

    def _number(self, taken: list[Pending], heads: dict[Channel, int]) -> list[Record]:
        now = int(self._clock() * 1000)
        seq = self._seq
        records = []
        for pending in taken:
            event, data = pending.whole()
            seq += 1
            pos = (heads.get(pending.channel) or self.head(pending.channel)) + 1
            heads[pending.channel] = pos
            records.append(Record(seq, pending.channel, pos, now, data, event))
        return records

    def _finish(
        self,
        future: "asyncio.Future[None]",
        taken: list[Pending],
        records: list[Record],
        heads: dict[Channel, int],
        settles: int,
    ) -> None:
        self._busy = False
        self._committed_at = self._loop.time()
        error = future.exception()
        if error is not None:
            self._fail(error if isinstance(error, LogUnavailable) else LogUnavailable(str(error)), taken)
            return
        self.commits += 1
        self._settled = settles
        self._pending_bytes -= sum(pending.size for pending in taken)
        if records:
            self._seq = records[-1].seq
            self._heads.update(heads)
            for on_commit in self._commit_listeners:
                on_commit(records)
            for pending, record in zip(taken, records, strict=True):
                if pending.waiter is not None and not pending.waiter.done():
                    pending.waiter.set_result(record.seq)
            self._hub.publish(records)
        self._announce()
        self._kick()
        self._uncheckpointed += limits.COMMIT_BYTES + sum(len(record.data) for record in records)
        if self._uncheckpointed > limits.CHECKPOINT_BYTES and not self._checkpointing and not self._closed:
            self._checkpoint()

    def _checkpoint(self) -> None:
        """Beside the commits. When these are faster for so long that the write-ahead log only grows, in their place."""
        self._checkpointing, self._uncheckpointed = True, 0
        done = self._loop.run_in_executor(self._checkpointer, self._database.checkpoint)
        done.add_done_callback(self._checkpointed)

    def _checkpointed(self, future: "asyncio.Future[int]") -> None:
        self._checkpointing = False
        if not self._closed and future.result() > limits.WAL_BYTES:
            self._loop.run_in_executor(self._writer, self._database.checkpoint)

    # -- when the disk says no ---------------------------------------------------------------------------------

    def on_commit(self, on_commit: CommitListener) -> None:
        self._commit_listeners.append(on_commit)

    def on_failure(self, listener: FailureListener) -> None:
        self._listeners.append(listener)

    async def available(self) -> None:
        while self._down is not None:
            await self._change()

    def _fail(self, error: LogUnavailable, taken: list[Pending]) -> None:
        """Nothing of the batch is visible to anyone. Everything that waits is told; a probe finds the disk's return."""
        self._down = error
        for pending in [*taken, *self._pending]:
            if pending.waiter is not None and not pending.waiter.done():
                pending.waiter.set_exception(error)
        self._pending.clear()
        self._notes.clear()
        self._last.clear()
        self._pending_bytes = 0
        self._settled = self._ticket
        for listener in self._listeners:
            listener(error)
        self._announce()
        if not self._closed:
            self._loop.call_later(_PROBE_SECONDS, self._probe)

    def _probe(self) -> None:
        if self._closed:
            return
        done = self._loop.run_in_executor(self._writer, self._database.probe)
        done.add_done_callback(self._probed)

    def _probed(self, future: "asyncio.Future[None]") -> None:
        error = future.exception()
        if error is None:
            self._down = None
            self._announce()
            self._kick()
        elif not self._closed:
            self._loop.call_later(_PROBE_SECONDS, self._probe)

    async def _change(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._changed.add(waiter)
        try:
            await waiter
        finally:
            self._changed.discard(waiter)

    def _announce(self) -> None:
        for waiter in self._changed:
            if not waiter.done():
                waiter.set_result(None)

    # -- reading -----------------------------------------------------------------------------------------------

    async def read(self, channel: Channel, after: int = 0, limit: int = 1000) -> list[Record]:
        upto = self.head(channel)
        if after >= upto:
            return []
        return await self._read(self._database.read, channel, after, upto, max(0, min(limit, limits.READ_EVENTS)))

    async def read_all(
        self, *channels: Channel, after: int = 0, limit: int = 1000, whole: bool = False
    ) -> list[Record]:
        upto = self._seq
        if after >= upto:
            return []
        count = max(0, min(limit, limits.READ_EVENTS))
        return await self._read(self._database.read_all, channels, after, upto, count, whole)

    async def follow(self, *channels: Channel, after: int = 0) -> AsyncIterator[list[Record]]:
        single = channels[0] if len(channels) == 1 else None
        follower = Follower(limits.FOLLOWER_BYTES)
        while True:  # replay until there is nothing left, and join the live ones in the same breath
            mark = self._seq if single is None else self.head(single)
            if after >= mark:
                self._hub.add(follower, channels)
                break
            if single is None:
                records = await self.read_all(*channels, after=after, limit=limits.READ_EVENTS)
                after = records[-1].seq if records else mark
            else:
                records = await self.read(single, after, limits.READ_EVENTS)
                after = records[-1].pos if records else mark
            if records:
                yield records
        try:
            while True:
                yield await follower.take()
        finally:
            self._hub.remove(follower, channels)

    async def list_kv(self, key: str) -> dict[Channel, bytes]:
        return await self._read(self._database.list_kv, key)

    async def get_kv(self, channel: Channel, key: str) -> bytes | None:
        return await self._read(self._database.get_kv, channel, key)

    async def drop_kv(self, channel: Channel, first: str, below: str) -> int:
        return await self._write(self._database.drop_kv, channel, first, below)

    async def put_blob(self, data: bytes) -> str:
        if len(data) > limits.BLOB_BYTES:
            raise TooLarge(f"A blob of {len(data)} bytes is over the limit of {limits.BLOB_BYTES}.")
        digest = await self._read(_digest, data)  # not in the loop: a large one takes a tenth of a second
        self._kept.add(digest)
        await self._write(self._database.put_blob, digest, data)
        return digest

    async def blob(self, digest: str) -> bytes:
        data = await self._read(self._database.blob, digest)
        if data is None:
            raise NotFound("blob", digest)
        return data

    async def _read(self, function: Callable[..., T], *args: object) -> T:
        return await self._loop.run_in_executor(self._readers, function, *args)

    async def _write(self, function: Callable[..., T], *args: object) -> T:
        self._check_open()
        return await self._loop.run_in_executor(self._writer, function, *args)

    # -- housekeeping ------------------------------------------------------------------------------------------

    async def compact(self, before: int, keep: Mapping[Channel, int] | None = None) -> int:
        """In small transactions of their own, so that commits go on in between."""
        total = 0
        while True:
            dropped = await self._write(self._database.drop_deltas, before, dict(keep or {}))
            total += dropped
            faults.reach("compaction")
            if dropped == 0:
                return total

    async def compacted_offsets(self, channel: Channel, part: str) -> list[tuple[int, int]]:
        data = await self.get_kv(channel, compacted_key(part))
        flat = msgspec.msgpack.decode(data, type=list[int]) if data else []
        return list(zip(flat[::2], flat[1::2], strict=True))

    async def delete(self, channel: Channel) -> None:
        await self.flush()
        self._kept.clear()
        blobs = await self._read(self._database.own_blobs, channel)
        # What was stored again while we looked has a new owner, whose event may come only now.
        await self._write(self._database.delete, channel, blobs - self._kept)

    async def close(self) -> None:
        if self._closed:
            return
        await self.flush()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._announce()
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        self._writer.shutdown()
        self._readers.shutdown()
        self._checkpointer.shutdown()
        self._database.close()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _part(event: Event) -> str | None:
    return event.part if isinstance(event, Delta) else None

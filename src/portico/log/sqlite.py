"""The log on SQLite: one writer thread, group commit, deliver after commit.

The way of an event: `append` or `post` puts it into `_pending`; when the writer is free, everything pending gets its
numbers and becomes one transaction; when that is durable the batch goes to the commit listeners and to the followers.
Deltas merge while they wait. There is one batch in flight at a time, so a failed one leaves no hole: its numbers are
taken back and given to the next.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from portico import faults, limits
from portico.cache import Cache
from portico.errors import BadRequest, LogUnavailable
from portico.events import Channel, Delta, Event, Record
from portico.log.blobs import Blobs
from portico.log.checkpoints import Checkpoints
from portico.log.database import Batch, Database, Row, compacted_key
from portico.log.hub import Follower, Hub
from portico.log.identity import Identity
from portico.log.listeners import Listeners
from portico.log.log import CommitListener, DiskUse, FailureListener
from portico.log.notes import Notes
from portico.log.page import Page
from portico.log.pending import Pending
from portico.log.replay import Replay

Durability = Literal["normal", "full"]
T = TypeVar("T")

SIZES = 1_000
"""Channels whose size is known without counting."""
WATCH_SECONDS = 0.5
"""Between two looks whether the log's file is still there."""
_PROBE_SECONDS = 0.5
"""Between two tries to write again after a failure: soon enough for a person who just freed some space."""


class SqliteLog:
    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = database.clock = clock
        self._loop = asyncio.get_running_loop()
        self._writer = ThreadPoolExecutor(1, "portico-log")
        self._readers = ThreadPoolExecutor(2, "portico-read")
        self._checkpoints = Checkpoints(database.checkpoint, self._writer)
        self._hub = Hub()
        self._commit_listeners = Listeners[[Sequence[Record]]]("commit")
        self._listeners = Listeners[[LogUnavailable]]("failure")
        self._seq, self._heads = database.heads()
        self._pending: list[Pending] = []
        self._last: dict[Channel, Pending] = {}
        self._notes = Notes()
        self._pending_bytes = 0
        self._ticket = 0
        self._settled = 0
        self._urgent = False
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._committed_at = 0.0
        self._watching = self._loop.call_later(WATCH_SECONDS, self._watch)
        self._changed: set[asyncio.Future[None]] = set()
        self._sizes = Cache[Channel, int](SIZES)
        """The bytes of channels that somebody asked for."""
        self._replay = Replay(self._read_page)
        self._blobs = Blobs(database, self._read, self._write)
        self._down: LogUnavailable | None = None
        self._failure: LogUnavailable | None = None
        """Why the last failed commit failed; `_down` says the same until the disk is back."""
        self._failures = 0
        self._moved: LogUnavailable | None = None
        """The file is not where it was: nothing that is written to it is acknowledged any more."""
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

    @property
    def epoch(self) -> str:
        return self._database.identity.epoch

    @property
    def identity(self) -> Identity:
        return self._database.identity

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

    def put_kv(self, channel: Channel, key: str, data: bytes | None, *, lazy: bool = False) -> None:
        if lazy:
            self._notes.put_lazy((channel, key), data)
            return
        self._ticket += 1
        self._notes.put((channel, key), self._ticket, data)
        self._loop.call_soon(self._kick)  # not at once: what is appended in the same breath joins this commit

    def journal(self, channel: Channel, key: str, data: bytes | None) -> None:
        self._check_open()
        try:
            self._database.journal.put(channel, key, data)
        except OSError as error:
            raise LogUnavailable(f"The log's journal cannot be written: {error.strerror}.") from error
        self._notes.put_lazy((channel, key), data)

    async def wait_capacity(self) -> None:
        while self._pending_bytes > limits.PENDING_BYTES and self._down is None:
            await self._change()

    async def flush(self) -> None:
        ticket, failures = self._ticket, self._failures  # later ones are not waited for: there is always something
        while self._settled < ticket and self._down is None and not self._closed:
            self._urgent = True
            self._kick()
            await self._change()
        refused = self._down or (self._failure if self._failures != failures else None)  # the disk may be back already
        if refused is not None:
            raise refused.copy()

    def _check_open(self) -> None:
        if self._closed:
            raise LogUnavailable("The host is stopping; nothing more is written.")
        if self._down is not None:
            raise self._down.copy()

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
        settles = taken[-1].ticket if self._pending else self._ticket
        self._urgent = bool(self._pending)
        self._last.clear()
        heads: dict[Channel, int] = {}
        records = self._number(taken, heads)
        batch = Batch(
            rows=[Row(r.seq, r.channel, r.pos, r.time, _part(r.event), r.data) for r in records],
            heads=heads,
            values=self._notes.take(settles),
        )
        self._busy = True
        done = self._loop.run_in_executor(self._writer, self._database.write, batch)
        done.add_done_callback(lambda future: self._finish(future, taken, records, heads, settles))

    def _number(self, taken: list[Pending], heads: dict[Channel, int]) -> Page:
        now = int(self._clock() * 1000)
        seq = self._seq
        records = Page()
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
        records: Page,
        heads: dict[Channel, int],
        settles: int,
    ) -> None:
        self._busy = False
        self._committed_at = self._loop.time()
        error = future.exception()
        self._notes.written(failed=error is not None)
        if error is not None:
            self._fail(error if isinstance(error, LogUnavailable) else LogUnavailable(str(error)), taken)
            return
        self.commits += 1
        self._settled = settles
        self._pending_bytes -= sum(pending.size for pending in taken)
        if records:
            self._seq = records[-1].seq
            self._heads.update(heads)
            if self._sizes:
                self._measure(records)
            self._commit_listeners.call(records)
            for pending, record in zip(taken, records, strict=True):
                if pending.waiter is not None and not pending.waiter.done():
                    pending.waiter.set_result(record.seq)
            self._hub.publish(records)
        self._announce()
        if self._moved is not None:
            self._fail(self._moved, [])
        self._kick()
        if not self._notes.lazy:
            self._database.journal.committed()
        self._checkpoints.committed(limits.COMMIT_BYTES + sum(len(record.data) for record in records))

    def _measure(self, records: list[Record]) -> None:
        sizes = self._sizes
        for record in records:
            if record.channel in sizes:
                dict.__setitem__(sizes, record.channel, sizes[record.channel] + len(record.data))

    # -- when the disk says no ---------------------------------------------------------------------------------

    def on_commit(self, on_commit: CommitListener) -> None:
        self._commit_listeners.add(on_commit)

    def on_failure(self, listener: FailureListener) -> None:
        self._listeners.add(listener)

    async def available(self) -> None:
        while self._down is not None:
            await self._change()

    def _fail(self, error: LogUnavailable, taken: list[Pending]) -> None:
        """Nothing of the batch is visible to anyone. Everything that waits is told; a probe finds the disk's return."""
        self._down = self._failure = error = error.copy()  # without the frames that hold the batch
        self._failures += 1
        for pending in [*taken, *self._pending]:
            if pending.waiter is not None and not pending.waiter.done():
                pending.waiter.set_exception(error.copy())
        self._pending.clear()
        self._notes.refuse()
        self._last.clear()
        self._pending_bytes = 0
        self._settled = self._ticket
        self._listeners.call(error)
        self._announce()
        if not self._closed:
            self._loop.call_later(_PROBE_SECONDS, self._probe)

    def _watch(self) -> None:
        """The file may be moved away while nobody writes: within a second nobody is told that all is well."""
        if self._closed:
            return
        self._watching = self._loop.call_later(WATCH_SECONDS, self._watch)
        if self._down is None:
            try:
                self._database.check()
            except LogUnavailable as error:
                self._moved = error
                if not self._busy:  # else when what is being written is done: it is in the file that was moved
                    self._fail(error, [])

    def _probe(self) -> None:
        if self._closed:
            return
        done = self._loop.run_in_executor(self._writer, self._database.probe)
        done.add_done_callback(self._probed)

    def _probed(self, future: "asyncio.Future[None]") -> None:
        error = future.exception()
        if error is None:
            self._down = self._moved = None
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

    async def follow(self, *channels: Channel, after: int = 0) -> AsyncIterator[Page]:
        single = channels[0] if len(channels) == 1 else None
        follower = Follower(limits.FOLLOWER_BYTES)
        while True:  # replay until there is nothing left, and join the live ones in the same breath
            mark = self._seq if single is None else self.head(single)
            if after >= mark:
                self._hub.add(follower, channels)
                break
            page = await self._replay.page(channels, after, mark)
            after = mark if not page else page[-1].seq if single is None else page[-1].pos
            if page:
                yield page
            del page  # a reader that stands still must not hold what it has sent
        try:
            while True:
                yield await follower.take()
        finally:
            self._hub.remove(follower, channels)

    async def _read_page(self, channels: tuple[Channel, ...], after: int, mark: int) -> Page:
        count, size = limits.READ_EVENTS, limits.REPLAY_BYTES
        if len(channels) == 1:
            return Page(await self._read(self._database.read, channels[0], after, mark, count, size))
        return Page(await self._read(self._database.read_all, channels, after, mark, count, False, size))

    async def list_kv(self, key: str) -> dict[Channel, bytes]:
        found: dict[Channel, bytes | None] = {**await self._read(self._database.list_kv, key)}
        found |= {channel: data for (channel, name), data in self._notes.uncommitted().items() if name == key}
        return {channel: data for channel, data in found.items() if data is not None}

    async def get_kv(self, channel: Channel, key: str) -> bytes | None:
        waiting = self._notes.uncommitted()
        if (channel, key) in waiting:
            return waiting[channel, key]
        return await self._read(self._database.get_kv, channel, key)

    async def put_blob(self, data: bytes) -> str:
        return await self._blobs.put(data)

    async def blob(self, digest: str) -> bytes:
        return await self._blobs.get(digest)

    async def _read(self, function: Callable[..., T], *args: object) -> T:
        return await self._loop.run_in_executor(self._readers, function, *args)

    async def _write(self, function: Callable[..., T], *args: object) -> T:
        self._check_open()
        return await self._loop.run_in_executor(self._writer, function, *args)

    # -- housekeeping ------------------------------------------------------------------------------------------

    async def compact(self, before: int, keep: Mapping[Channel, int] | None = None) -> int:
        return await self._drop(self._database.drop_deltas, before, dict(keep or {}))

    async def compact_channel(self, channel: Channel, below: int) -> int:
        return await self._drop(self._database.drop_channel_deltas, channel, below)

    async def _drop(self, some: Callable[..., int], *args: object) -> int:
        """In small transactions of their own, so that commits go on in between."""
        total = 0
        while dropped := await self._write(some, *args):
            total += dropped
            self._replay.clear()
            faults.reach("compaction")
        return total

    async def size(self, channel: Channel) -> int:
        if channel not in self._sizes:
            self._sizes[channel] = await self._read(self._database.size, channel)
        return self._sizes[channel]

    def disk(self) -> DiskUse:
        return self._database.disk()

    async def expire_kv(self, prefix: str, before: int) -> int:
        return await self._write(self._database.expire_kv, prefix, before)

    async def compacted_offsets(self, channel: Channel, part: str) -> list[tuple[int, int]]:
        data = await self.get_kv(channel, compacted_key(part))
        flat = msgspec.msgpack.decode(data, type=list[int]) if data else []
        return list(zip(flat[::2], flat[1::2], strict=True))

    async def delete(self, channel: Channel) -> None:
        await self.flush()
        self._notes.forget(channel)
        await self._blobs.delete_with(channel)
        self._replay.clear()

    async def close(self) -> None:
        if self._closed:
            return
        with contextlib.suppress(LogUnavailable):  # whoever wrote it has heard
            if self._notes.lazy and self._down is None:
                (channel, key), data = self._notes.pop_lazy()
                self.put_kv(channel, key, data)  # a commit for those that found none to go with
            await self.flush()
        self._closed = True
        self._checkpoints.stop()
        if self._timer is not None:
            self._timer.cancel()
        self._watching.cancel()
        self._announce()
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        self._writer.shutdown()
        self._readers.shutdown()
        self._checkpoints.shutdown()
        self._database.close()


def _part(event: Event) -> str | None:
    return event.part if isinstance(event, Delta) else None

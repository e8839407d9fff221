"""Group commit and delivery after the commit, shared by all logs.

The path of an event: `append` or `post` adds it to `_pending`. When the writer is free, all pending events become one
batch, which each log writes with its own `_write`. When the batch is durable, it is delivered to the commit listeners
and to the followers. Pending deltas are merged. Only one batch is in flight at a time, so a failed one leaves no gap.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from portico.kernel import faults, limits
from portico.kernel.cache import Cache
from portico.kernel.errors import BadRequest, LogUnavailable
from portico.kernel.events import Channel, Event, Record
from portico.kernel.log.feed import Feed, Follower
from portico.kernel.log.listeners import Listeners
from portico.kernel.log.log import CommitListener, FailureListener
from portico.kernel.log.notes import KeyValue, Notes
from portico.kernel.log.page import Page
from portico.kernel.log.pending import Pending, Waiter

SIZES = 1_000
"""Cache size: channels whose size is known without counting."""
PROBE_SECONDS = 0.5
"""Time between two write probes after a failure: short enough for a person who just freed some space."""


class CommittedBatch(NamedTuple):
    """A durable batch with its assigned numbers."""

    records: Page
    heads: dict[Channel, int]


Done = Callable[[CommittedBatch | None, BaseException | None], None]
"""Callback with the durable batch, or with the error."""


class GroupCommit(ABC):
    """The writing half of a log. Subclasses define `_write` (makes a batch durable) and `_probe` (retries)."""

    def __init__(self, seq: int, heads: dict[Channel, int]) -> None:
        self._loop = asyncio.get_running_loop()
        self._live = Feed()
        self._commit_listeners = Listeners[[Sequence[Record]]]("commit")
        self._listeners = Listeners[[LogUnavailable]]("failure")
        self._seq, self._heads = seq, heads
        self._pending: list[Pending] = []
        self._last: dict[Channel, Pending] = {}
        self._notes = Notes()
        self._pending_bytes = 0
        self._ticket = 0
        self._settled = 0
        self._urgent = False
        self._busy = False
        self._timer: asyncio.Handle | None = None
        self._posted_at = 0.0
        self._changed: set[asyncio.Future[None]] = set()
        self._sizes = Cache[Channel, int](SIZES)
        """The size in bytes of channels for which it was requested."""
        self._down: LogUnavailable | None = None
        self._failure: LogUnavailable | None = None
        """The error of the last failed commit; `_down` is the same error until the disk is available again."""
        self._failures = 0
        self._probing = False
        self._closed = False
        self._undelivered = 0
        """Batches that are durable but not delivered: earlier commits of other hosts are read first."""
        self.commits = 0

    @abstractmethod
    def _write(self, taken: list[Pending], values: list[KeyValue], done: "Done") -> None:
        """Number and write a batch, then call `done`: all of it is durable, or the error is `LogUnavailable`."""

    @abstractmethod
    def _probe(self) -> "asyncio.Future[None]":
        """Check whether the log can write again; the future fails if it cannot."""

    # -- writing -----------------------------------------------------------------------------------------------

    @property
    def seq(self) -> int:
        return self._seq

    @property
    def down(self) -> LogUnavailable | None:
        return self._down

    @property
    def followers(self) -> int:
        return self._live.followers

    def attach(self, follower: Follower) -> None:
        follower.join(self._live)

    def head(self, channel: Channel) -> int:
        return self._heads.get(channel, 0)

    def is_partial(self, channel: Channel) -> bool:
        return False

    def complete(self, channel: Channel) -> None:  # noqa: B027 - for a log of several hosts
        """Nothing: every event is delivered here."""

    def channels(self, prefix: str) -> list[Channel]:
        return [name for name, pos in self._heads.items() if pos and name.startswith(prefix)]

    async def append(self, channel: Channel, *events: Event) -> int:
        return await self.append_all(*[(channel, event) for event in events])

    async def append_all(self, *events: tuple[Channel, Event]) -> int:
        if not events:
            raise BadRequest("append needs at least one event.")
        if self._closed or self._down is not None:
            self.check_open()
        # Invalid events are refused before any event is added.
        group = [Pending(channel, event, more=True) for channel, event in events]
        waiter = group[-1].waiter = Waiter(loop=self._loop)
        group[-1].more = False
        for pending in group:
            self._add(pending)
        if faults.ARMED:
            faults.reach("before-append")
        self._urgent = True
        self._kick()
        seq = await waiter
        if faults.ARMED:
            faults.reach("after-append")
        return seq

    def post(self, channel: Channel, event: Event, *, soon: bool = False) -> None:
        self.check_open()
        self._urgent = self._urgent or soon
        last = self._last.get(channel)
        size = last.size if last is not None else 0
        if last is not None and last.join(event):
            self._pending_bytes += last.size - size
        else:
            self._add(Pending(channel, event))
        if not self._busy and self._timer is None:
            self._timer = self._loop.call_soon(self._on_timer, False)  # includes events posted in the same tick
        elif soon:
            self._loop.call_soon(self._kick)

    def put_kv(
        self, channel: Channel, key: str, data: bytes | None, *, lazy: bool = False, bound: bool = False
    ) -> None:
        if lazy:
            self._notes.put_lazy((channel, key), data)
            return
        self._ticket += 1
        self._notes.put(KeyValue(channel, key, data, self._ticket, bound))
        self._loop.call_soon(self._kick)  # not immediately: events appended in the same tick join this commit

    def withdraw_kv(self, channel: Channel, key: str) -> None:
        self._notes.withdraw((channel, key))

    async def wait_capacity(self) -> None:
        while self._pending_bytes > limits.PENDING_BYTES and self._down is None:
            await self._change()

    async def flush(self) -> None:
        ticket, failures = self._ticket, self._failures  # do not wait for later events: there may always be more
        while self._settled < ticket and (self._busy or self._pending or self._notes.waiting or self._undelivered):
            if self._down is not None or self._closed:
                break
            self._urgent = True
            self._kick()
            await self._change()
        refused = self._down or (self._failure if self._failures != failures else None)  # the disk may have recovered
        if refused is not None:
            raise refused.copy()

    def check_open(self) -> None:
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
        """Start the next commit if the writer is free: immediately, or after the cadence if only deltas are pending."""
        if self._busy or self._closed or self._down is not None or not (self._pending or self._notes.waiting):
            return
        wait = 0.0 if self._urgent else self._posted_at + limits.COMMIT_CADENCE - self._loop.time()
        if wait > 0:
            if self._timer is None:
                self._timer = self._loop.call_later(wait, self._on_timer, True)
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._commit()

    def _on_timer(self, urgent: bool) -> None:
        self._timer = None
        self._urgent = self._urgent or urgent
        self._kick()

    def _commit(self) -> None:
        cut = limits.BATCH_EVENTS
        while cut < len(self._pending) and self._pending[cut - 1].more:
            cut += 1
        taken, self._pending = self._pending[:cut], self._pending[cut:]
        settles = taken[-1].ticket if self._pending else self._ticket
        self._urgent = bool(self._pending)
        self._last.clear()
        self._busy = True
        values = self._notes.take(settles, self._loop.time())
        self._write(taken, values, lambda batch, error: self._finish(batch, error, taken, settles))

    def _finish(
        self, batch: CommittedBatch | None, error: BaseException | None, taken: list[Pending], settles: int
    ) -> None:
        self._busy = False
        if any(each.waiter is None and not each.more for each in taken):  # the first delta behind an append is not late
            self._posted_at = self._loop.time()
        self._notes.written(failed=batch is None)
        if batch is None:
            self._fail(error if isinstance(error, LogUnavailable) else LogUnavailable(str(error)), taken)
            return
        records, heads = batch
        self.commits += 1
        self._settled = settles
        self._pending_bytes -= sum(pending.size for pending in taken)
        if records:
            self._deliver(records, heads, taken)
        if self._changed:
            self._announce()
        self._after_commit(records)
        if self._pending or self._notes.waiting:
            self._kick()

    def _deliver(self, records: Page, heads: dict[Channel, int], taken: Sequence[Pending] = ()) -> None:
        """Deliver records to the commit listeners, then to callers that await the append, then to the followers."""
        self._seq = records[-1].seq
        self._heads.update(heads)
        if self._sizes:
            self._measure(records)
        self._commit_listeners.call(records)
        for pending, record in zip(taken, records, strict=False):
            if pending.waiter is not None and not pending.waiter.done():
                pending.waiter.set_result(record.seq)
        self._live.publish(records)

    @abstractmethod
    def _after_commit(self, records: Page) -> None:
        """Additional work of a log after each commit."""

    def _measure(self, records: list[Record]) -> None:
        sizes = self._sizes
        for record in records:
            if record.channel in sizes:
                dict.__setitem__(sizes, record.channel, sizes[record.channel] + len(record.data))

    # -- when the disk fails -----------------------------------------------------------------------------------

    def on_commit(self, on_commit: CommitListener) -> None:
        self._commit_listeners.add(on_commit)

    def on_failure(self, listener: FailureListener) -> None:
        self._listeners.add(listener)

    async def available(self) -> None:
        while self._down is not None:
            await self._change()

    def _fail(self, error: LogUnavailable, taken: list[Pending]) -> None:
        """Fail all pending appends and start a probe that detects recovery. No part of the batch is visible."""
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
        if not self._closed and not self._probing:
            self._probing = True
            self._loop.call_later(PROBE_SECONDS, self._try_again)

    def _try_again(self) -> None:
        if not self._closed:
            self._probe().add_done_callback(self._probed)

    def _probed(self, future: "asyncio.Future[None]") -> None:
        error = None if future.cancelled() else future.exception()
        if error is None:
            self._down, self._probing = None, False
            self._announce()
            self._kick()
        elif not self._closed:
            self._loop.call_later(PROBE_SECONDS, self._try_again)

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

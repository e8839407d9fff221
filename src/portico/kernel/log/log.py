"""The interface of a log, used by the host, the jobs and the doors.

One writer, many readers. `append` returns when the events are durable; no event is visible before that. A committed
batch is delivered first to the commit listeners (the host applies it to its state), then to the followers. So a client
that reads an event and then queries the host gets a state that includes this event.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from portico.kernel.errors import LogUnavailable, Unreachable
from portico.kernel.events import Channel, Event, Record
from portico.kernel.log.feed import Follower
from portico.kernel.log.identity import Identity
from portico.kernel.log.page import Page

CommitListener = Callable[[Sequence[Record]], None]
FailureListener = Callable[[LogUnavailable], None]


class NotOwner(Unreachable):
    """Another host owns this channel; no part of the append is written. Commands are forwarded to that host."""

    def __init__(self, channel: Channel) -> None:
        super().__init__("Another host has taken this over; try again.", retry_after=1)
        self.channel = channel


NOT_WRITTEN = (LogUnavailable, NotOwner)
"""Errors after which no part of the append is written, and which are not the writer's fault."""


class DiskUse(NamedTuple):
    used: int
    free: int
    total: int


class Log(Protocol):
    @property
    def seq(self) -> int:
        """The last committed seq."""

    @property
    def down(self) -> LogUnavailable | None:
        """Why the log cannot write at the moment, or None."""

    @property
    def epoch(self) -> str:
        """The identity of this log. It changes when a tail is lost, a backup is restored or the file is copied: cursors
        of another epoch are invalid here."""

    @property
    def identity(self) -> Identity:
        """The epoch, and the events that the last start found missing."""

    def head(self, channel: Channel) -> int:
        """The last committed position of a channel; 0 for an unknown one."""

    def channels(self, prefix: str) -> list[Channel]:
        """The channels with this prefix, including deleted ones: their names are never reused."""

    async def append(self, channel: Channel, *events: Event) -> int:
        """Write the events in order, in one transaction; return the last seq when they are durable."""

    async def append_all(self, *events: tuple[Channel, Event]) -> int:
        """Like `append`, for events of several channels: after a crash all of them exist or none."""

    def post(self, channel: Channel, event: Event, *, soon: bool = False) -> None:
        """Append without waiting, in order; deltas of one part in a commit are merged. `soon`: skip the cadence."""

    async def wait_capacity(self) -> None:
        """Wait until the pending events are small enough to continue posting."""

    async def flush(self) -> None:
        """Wait until everything posted so far is durable. Raises `LogUnavailable` if it is not, or if the log cannot
        write: data that is not safe must not be reported as safe."""

    async def read(self, channel: Channel, after: int = 0, limit: int = 1000) -> list[Record]: ...

    async def read_all(
        self, *channels: Channel, after: int = 0, limit: int = 1000, whole: bool = False
    ) -> list[Record]:
        """Return records of these channels (of all if none is named) with a seq above `after`, ordered by seq.
        `whole`: no deltas."""

    def follow(
        self, *channels: Channel, after: int = 0, follower: Follower | None = None, timeout: float | None = None
    ) -> AsyncIterator[Page]:
        """Replay, then live events. With one channel `after` is a position; with several or none it is a seq. If the
        caller passes a `follower`, it defines the channels, `after` is a seq, and channels can be added while it is
        read. An empty page means that no event arrived for `timeout` seconds."""

    def is_partial(self, channel: Channel) -> bool:
        """Whether deltas of this session of another host were not delivered here: no client followed it."""

    def complete(self, channel: Channel) -> None:
        """The state of the session was read again up to its head, with all deltas."""

    def attach(self, follower: Follower) -> None:
        """Deliver the records committed from now on to `follower`, until it leaves."""

    def on_commit(self, on_commit: CommitListener) -> None:
        """Call `on_commit` with every committed batch, before any follower gets it. If it raises, the error is logged;
        `append` still returns and followers still get the batch."""

    def on_failure(self, listener: FailureListener) -> None:
        """Call `listener` when a commit fails. The events pending at that time are lost and were never visible."""

    async def available(self) -> None:
        """Wait until the log can write (again)."""

    def put_kv(
        self, channel: Channel, key: str, data: bytes | None, *, lazy: bool = False, bound: bool = False
    ) -> None:
        """Store one value for a channel (a snapshot), in the same transaction as the events appended before it; None
        removes it. A `lazy` value (a summary) is written with a later commit, and a crash may lose it. A `bound`
        value belongs to the append that follows immediately: if that is refused, the value is not written either."""

    def withdraw_kv(self, channel: Channel, key: str) -> None:
        """Remove a value that is not committed yet, because the append that it belongs to was refused. A value already
        written, here or by another host, remains."""

    def journal(self, channel: Channel, key: str, data: bytes | None) -> None:
        """Store one value for a channel without a separate commit: when this returns, it survives the exit of the
        process (not a power loss). A key is written either by this method or by `put_kv`."""

    async def replace_kv(self, channel: Channel, key: str, old: bytes | None, new: bytes | None) -> bool:
        """Store `new` durably if the value is still `old` (compare and swap), for writes of all hosts; None means no
        value. A key is written either by this method or by the others."""

    async def expire_kv(self, prefix: str, before: int) -> int:
        """Delete values whose key has this prefix and that were last written before this time (milliseconds)."""

    async def list_kv(self, key: str) -> dict[Channel, bytes]: ...

    async def get_kv(self, channel: Channel, key: str) -> bytes | None: ...

    async def put_blob(self, data: bytes) -> str:
        """Store the bytes durably under their SHA-256 and return it."""

    async def blob(self, digest: str) -> bytes: ...

    async def blob_users(self, digest: str) -> list[Channel]:
        """The channels whose events refer to it."""
        ...

    async def compact(self, before: int, keep: Mapping[Channel, int] = {}) -> int:
        """Delete deltas older than `before` (milliseconds) and return their number. `keep` contains the first position
        of running turns: their deltas are kept, because no event contains their whole content yet."""

    async def compact_channel(self, channel: Channel, below: int) -> int:
        """Delete the deltas of one channel before this position, regardless of their age."""

    async def size(self, channel: Channel) -> int:
        """The size of the channel's events in bytes."""

    def disk(self) -> DiskUse:
        """The size of the log's files, and the free and total space of their disk."""

    async def compacted_offsets(self, channel: Channel, part: str) -> list[tuple[int, int]]:
        """The pieces of a text part that were compacted, in order: seq and characters. With the part's whole text they
        show what a reader whose cursor points into the middle of it has not seen."""

    async def delete(self, channel: Channel) -> None:
        """Delete a channel's events, notes, and the blobs that only it references. Its positions are never reused."""

    async def close(self) -> None: ...

"""What a log is: the small interface that the host, the jobs and the doors build on.

One writer, many readers. `append` returns when the events are durable; nobody sees an event before that. A
committed batch goes first to the taps (the host folds it into its state), then to the followers, so whoever reads
an event and then asks the host finds the host at least that far.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from portico.errors import LogUnavailable, Unreachable
from portico.events import Channel, Event, Record
from portico.log.feed import Follower
from portico.log.identity import Identity
from portico.log.page import Page

CommitListener = Callable[[Sequence[Record]], None]
FailureListener = Callable[[LogUnavailable], None]


class NotOwner(Unreachable):
    """Another host writes this channel; nothing of the append is written. A command is sent to that host."""

    def __init__(self, channel: Channel) -> None:
        super().__init__("Another host has taken this over; try again.", retry_after=1)
        self.channel = channel


NOT_WRITTEN = (LogUnavailable, NotOwner)
"""Nothing of the append is written, and the writer did nothing wrong."""


class DiskUse(NamedTuple):
    used: int
    free: int
    total: int


class Log(Protocol):
    @property
    def seq(self) -> int:
        """The last committed number of the host."""

    @property
    def down(self) -> LogUnavailable | None:
        """Why the log cannot write at the moment, or None."""

    @property
    def epoch(self) -> str:
        """Which log this is. It changes when a tail was lost, a backup restored or the file copied: cursors of another
        epoch mean nothing here."""

    @property
    def identity(self) -> Identity:
        """The epoch, and what the last start found missing."""

    def head(self, channel: Channel) -> int:
        """The last committed position of a channel; 0 for an unknown one."""

    def channels(self, prefix: str) -> list[Channel]:
        """The channels whose name begins so, deleted ones included: their names are never used again."""

    async def append(self, channel: Channel, *events: Event) -> int:
        """Writes the events in order, in one transaction; returns the last seq once they are durable."""

    async def append_all(self, *events: tuple[Channel, Event]) -> int:
        """The same for events of several channels: a crash leaves all of them or none."""

    def post(self, channel: Channel, event: Event) -> None:
        """The same order as `append`, not awaited. Deltas of one part that wait for the same commit become one."""

    async def wait_capacity(self) -> None:
        """Returns when what is pending is small enough to go on posting."""

    async def flush(self) -> None:
        """Returns when everything posted so far is durable. Raises `LogUnavailable` when it is not, or when the log
        cannot write: nobody may be told that something is safe which is not."""

    async def read(self, channel: Channel, after: int = 0, limit: int = 1000) -> list[Record]: ...

    async def read_all(
        self, *channels: Channel, after: int = 0, limit: int = 1000, whole: bool = False
    ) -> list[Record]:
        """Records of these channels (of all, when none is named) in the order of `seq`, behind `after`. `whole`: no
        deltas."""

    def follow(
        self, *channels: Channel, after: int = 0, follower: Follower | None = None, timeout: float | None = None
    ) -> AsyncIterator[Page]:
        """Replay, then live. With one channel `after` is a position; with several or none it is a seq. A `follower` of
        the caller's names the channels itself, by seq, and may take on more of them while it is read. An empty page
        says that nothing has come for `timeout` seconds."""

    def attach(self, follower: Follower) -> None:
        """Hands it what is committed from now on, until it leaves."""

    def on_commit(self, on_commit: CommitListener) -> None:
        """Calls `on_commit` with every committed batch, before any follower has it. If it raises, that is logged, and
        `append` returns and followers get the batch all the same."""

    def on_failure(self, listener: FailureListener) -> None:
        """Calls `listener` when a commit failed; what was pending then is lost and was never visible."""

    async def available(self) -> None:
        """Returns when the log can write (again)."""

    def put_kv(
        self, channel: Channel, key: str, data: bytes | None, *, lazy: bool = False, bound: bool = False
    ) -> None:
        """Keeps one value beside a channel (a snapshot), in the same transaction as what was appended before it; None
        removes it. A `lazy` one (a summary) goes with a commit that comes along, and a crash may forget it. A
        `bound` one belongs to the append that follows at once: where that is refused, it is not written either."""

    def withdraw_kv(self, channel: Channel, key: str) -> None:
        """Takes back what still waits for its commit: the append that it was put for was refused. What was written,
        here or by another host, stays."""

    def journal(self, channel: Channel, key: str, data: bytes | None) -> None:
        """Keeps one value beside a channel without a commit of its own: when this returns, it survives the end of the
        process (not a loss of power). A key is written either this way or by `put_kv`."""

    async def replace_kv(self, channel: Channel, key: str, old: bytes | None, new: bytes | None) -> bool:
        """Stores `new` durably if the value is still `old`, whichever host wrote it; None stands for no value. A
        key is written either this way or by the others."""

    async def expire_kv(self, prefix: str, before: int) -> int:
        """Drops values whose key begins so and that were last written before that time (milliseconds)."""

    async def list_kv(self, key: str) -> dict[Channel, bytes]: ...

    async def get_kv(self, channel: Channel, key: str) -> bytes | None: ...

    async def put_blob(self, data: bytes) -> str:
        """Stores the bytes durably under their SHA-256, which it returns."""

    async def blob(self, digest: str) -> bytes: ...

    async def blob_users(self, digest: str) -> list[Channel]:
        """The channels whose events refer to it."""
        ...

    async def compact(self, before: int, keep: Mapping[Channel, int] = {}) -> int:
        """Drops deltas older than `before` (milliseconds) and returns how many. `keep` names the first position of
        turns that still run: their deltas stay, since no event carries their whole content yet."""

    async def compact_channel(self, channel: Channel, below: int) -> int:
        """Drops the deltas of one channel before that position, however young they are."""

    async def size(self, channel: Channel) -> int:
        """The bytes of its events."""

    def disk(self) -> DiskUse:
        """What the log's files take, and what their disk has."""

    async def compacted_offsets(self, channel: Channel, part: str) -> list[tuple[int, int]]:
        """The pieces of a text part that were compacted away, in order: seq and characters. With the part's whole
        text they say what a reader whose cursor points into the middle of it has not seen."""

    async def delete(self, channel: Channel) -> None:
        """Forgets a channel's events and notes, and the blobs that only it refers to. Its positions are never used
        again."""

    async def close(self) -> None: ...

"""Cache of the last actions of subscribed targets, for clients that lose their network for a short time.

Only a cache of the log. What is not here, or not far enough back, is read from the log and translated. The actions of a
target are kept from its first subscriber until an hour after its last one; they are exactly those that were sent.
When all buffers together are too large, those without subscribers for the longest time are dropped first.
"""

import asyncio
from itertools import product
from operator import itemgetter

from portico import limits
from portico.doors.ahp.view.targets import Kind, Target
from portico.doors.ahp.wire import numbers
from portico.doors.ahp.wire.envelope import Act

KINDS: frozenset[Kind] = frozenset({"seed", "chat", "session", "annotations", "terminal"})
"""Targets whose actions all come from the log."""
RETAIN_SECONDS = 3_600.0
"""Long enough for a laptop that is closed during a meeting; a longer time would only cost memory."""

Key = tuple[Target, bool]
"""A target, and whether in version 1."""


class ReplayBuffer:
    """One target in one dialect: all its actions after the record `since`."""

    __slots__ = ("acts", "kept", "left", "since", "size")

    def __init__(self, since: int) -> None:
        self.since = since
        self.acts: list[Act] = []
        self.size = 0
        self.kept = True
        """False after the buffer was dropped: a batch in progress may still hold a reference to it."""
        self.left: float | None = None
        """When the last subscriber left, in the loop's time."""

    def add(self, acts: list[Act]) -> int:
        """Return the growth in bytes; the older half is dropped when there are too many."""
        before = self.size
        self.acts += acts
        for act in acts:  # nearly always one
            self.size += len(act.frame)
        if self.size > limits.REPLAY_BUFFER_BYTES:
            self._shrink()
        return self.size - before

    def _shrink(self) -> None:
        cut, kept = 0, self.size
        while kept > limits.REPLAY_BUFFER_BYTES // 2:
            kept -= len(self.acts[cut].frame)
            cut += 1
        self.since = numbers.mark(self.acts[cut - 1].number).seq
        while cut < len(self.acts) and numbers.mark(self.acts[cut].number).seq == self.since:
            kept -= len(self.acts[cut].frame)  # drop whole records, or `since` would be wrong
            cut += 1
        del self.acts[:cut]
        self.size = kept

    def reaches(self, mark: numbers.ReadMark) -> bool:
        """Whether the buffer contains all that a client at this mark has missed."""
        return self.since < mark.seq or (self.since == mark.seq and mark.subscription >= numbers.SHARED - 1)


class ReplayBuffers:
    def __init__(self) -> None:
        self._buffers: dict[Key, ReplayBuffer] = {}
        self._size = 0
        self._sweeping = False

    def __bool__(self) -> bool:
        return bool(self._buffers)

    def targets(self) -> list[Target]:
        return [target for target, _ in self._buffers]

    def keep(self, target: Target, seed: bool, seq: int) -> None:
        """Keep actions from now on, for the first subscriber; `seq` is the last committed record."""
        buffer = self._buffers.get((target, seed))
        if buffer is not None:
            buffer.left = None
        elif target.kind in KINDS:
            self._buffers[target, seed] = ReplayBuffer(seq)

    def retain(self, target: Target, seed: bool) -> None:
        """The last subscriber has left."""
        buffer = self._buffers.get((target, seed))
        if buffer is not None:
            loop = asyncio.get_running_loop()
            buffer.left = loop.time()
            if not self._sweeping:
                self._sweeping = True
                loop.call_later(RETAIN_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Drop expired buffers. One timer for all: those that have not expired wait for the next run."""
        loop = asyncio.get_running_loop()
        left = self._left()
        for key, since in left:
            if since <= loop.time() - RETAIN_SECONDS:
                self._forget(key)
        self._sweeping = bool(self._left())
        if self._sweeping:
            loop.call_later(RETAIN_SECONDS / 10, self._sweep)

    def _left(self) -> list[tuple[Key, float]]:
        """The buffers without subscribers, the longest unused first."""
        left = [(key, buffer.left) for key, buffer in self._buffers.items() if buffer.left is not None]
        return sorted(left, key=itemgetter(1))

    def _forget(self, key: Key) -> None:
        buffer = self._buffers.pop(key)
        buffer.kept = False
        self._size -= buffer.size

    def buffer(self, target: Target, seed: bool) -> ReplayBuffer | None:
        return self._buffers.get((target, seed))

    def add(self, buffer: ReplayBuffer, acts: list[Act]) -> None:
        if buffer.kept:
            self._size += buffer.add(acts)
        if self._size > limits.REPLAY_BUFFERS_BYTES:
            self._make_room()

    def _make_room(self) -> None:
        for key, _ in self._left():
            if self._size <= limits.REPLAY_BUFFERS_BYTES // 2:
                return
            self._forget(key)
        if self._size > limits.REPLAY_BUFFERS_BYTES:
            self.clear()

    def refill(self, target: Target, seed: bool, since: int, acts: list[Act]) -> None:
        """Store all actions after `since`, read from the log: after a restart, one read serves all reconnects."""
        before = self._buffers.get((target, seed))
        if target.kind in KINDS and (before is None or since < before.since):
            if before is not None:
                self._forget((target, seed))
            self._buffers[target, seed] = buffer = ReplayBuffer(since)
            self.add(buffer, acts)

    def drop(self, ident: str) -> None:
        """Drop the buffers of a removed session or terminal."""
        for key in product([Target(kind, ident) for kind in KINDS], (False, True)):
            if key in self._buffers:
                self._forget(key)

    def clear(self) -> None:
        """Drop all buffers. Clients that reconnect read from the log."""
        for key in list(self._buffers):
            self._forget(key)

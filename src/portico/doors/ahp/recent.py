"""The last actions of what somebody hears, ready to be sent again: for clients that lose their network for a moment.

Only a cache beside the log. What is not here, or not far enough back, is read and translated from there. A target's
actions are kept from its first hearer on and some time after its last one; they are exactly those that others heard.
"""

import asyncio
from collections.abc import Iterable

from portico import limits
from portico.doors.ahp import numbers
from portico.doors.ahp.envelope import Act
from portico.doors.ahp.targets import Kind, Target

KINDS: frozenset[Kind] = frozenset({"seed", "chat", "session", "annotations", "terminal"})
"""Targets whose actions come from the log, all of them."""
LINGER_SECONDS = 60.0
"""A laptop that changes its network is back by then; nobody pays longer for one that is not."""


class Ring:
    """One target in one dialect: all its actions behind the record `since`."""

    __slots__ = ("acts", "since", "size")

    def __init__(self, since: int) -> None:
        self.since = since
        self.acts: list[Act] = []
        self.size = 0

    def add(self, acts: Iterable[Act]) -> int:
        """Returns by how many bytes it has grown; the older half goes when there are too many."""
        before = self.size
        for act in acts:
            self.acts.append(act)
            self.size += len(act.frame)
        if self.size > limits.RECENT_BYTES:
            self._shrink()
        return self.size - before

    def _shrink(self) -> None:
        cut, kept = 0, self.size
        while kept > limits.RECENT_BYTES // 2:
            kept -= len(self.acts[cut].frame)
            cut += 1
        self.since = numbers.mark(self.acts[cut - 1].number).seq
        while cut < len(self.acts) and numbers.mark(self.acts[cut].number).seq == self.since:
            kept -= len(self.acts[cut].frame)  # a record goes whole, or `since` would not be true
            cut += 1
        del self.acts[:cut]
        self.size = kept

    def reaches(self, mark: numbers.Mark) -> bool:
        """Whether all that a client at this mark has missed is here."""
        return self.since < mark.seq or (self.since == mark.seq and mark.place >= numbers.SHARED - 1)


class Recent:
    def __init__(self) -> None:
        self._rings: dict[tuple[Target, bool], Ring] = {}
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._rings)

    def keep(self, target: Target, seed: bool, seq: int) -> None:
        """From now on; `seq` is the last committed record."""
        if target.kind in KINDS and (target, seed) not in self._rings:
            self._rings[target, seed] = Ring(seq)

    def linger(self, target: Target, seed: bool) -> None:
        """Nobody hears it any more. The timer of an earlier leave may come too early: it is only a cache."""
        if (target, seed) in self._rings:
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._forget, target, seed)

    def _forget(self, target: Target, seed: bool) -> None:
        ring = self._rings.pop((target, seed), None)
        self._size -= ring.size if ring is not None else 0

    def ring(self, target: Target, seed: bool) -> Ring | None:
        return self._rings.get((target, seed))

    def add(self, ring: Ring, acts: Iterable[Act]) -> None:
        self._size += ring.add(acts)
        if self._size > limits.RECENT_TOTAL_BYTES:
            self.clear()

    def refill(self, target: Target, seed: bool, since: int, acts: Iterable[Act]) -> None:
        """All behind `since`, fresh from the log: after a restart everybody comes back, and one read does for all."""
        before = self._rings.get((target, seed))
        if target.kind in KINDS and (before is None or since < before.since):
            self._size -= before.size if before is not None else 0
            self._rings[target, seed] = ring = Ring(since)
            self.add(ring, acts)

    def clear(self) -> None:
        """Whoever is away comes back by the log."""
        self._rings.clear()
        self._size = 0

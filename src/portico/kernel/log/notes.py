"""Pending notes: those that request a commit, and lazy ones that are written with the next commit."""

from typing import NamedTuple

from portico.kernel.events import Channel

Key = tuple[Channel, str]


LAZY_SECONDS = 0.25
"""Minimum time between two commits that include lazy notes: a summary changes with every event, and writing it each
time was a quarter of a turn's commits."""


class KeyValue(NamedTuple):
    channel: Channel
    key: str
    data: bytes | None
    ticket: int = 0
    """The order of the note among the events."""
    bound: bool = False
    """The note belongs to the append after it, and is refused together with it."""


class Notes:
    def __init__(self) -> None:
        self.waiting: dict[Key, KeyValue] = {}
        """The notes that request a commit."""
        self.lazy: dict[Key, bytes | None] = {}
        self._writing: dict[Key, bytes | None] = {}
        """The lazy notes of the commit in flight."""
        self._due = 0.0

    def put(self, value: KeyValue) -> None:
        self.lazy.pop(value[:2], None)
        self.waiting[value[:2]] = value

    def withdraw(self, key: Key) -> None:
        self.waiting.pop(key, None)

    def withdraw_bound(self, after: int) -> None:
        """Remove the bound notes after this ticket: the append that they belong to is rejected."""
        self.waiting = {key: each for key, each in self.waiting.items() if not (each.bound and each.ticket > after)}

    def put_lazy(self, key: Key, data: bytes | None) -> None:
        self.lazy[key] = data

    def take(self, upto: int, now: float) -> list[KeyValue]:
        """Take the notes for a commit: those up to ticket `upto`, since a note belongs to the events around it."""
        taken = [value for value in self.waiting.values() if value.ticket <= upto]
        self.waiting = {key: value for key, value in self.waiting.items() if value.ticket > upto}
        if self.lazy and now >= self._due:
            self._writing, self.lazy, self._due = self.lazy, {}, now + LAZY_SECONDS
        return [*(KeyValue(*key, data) for key, data in self._writing.items()), *taken]

    def written(self, *, failed: bool) -> None:
        """Finish a commit. Lazy notes of a failed commit remain pending, because they are valid without it."""
        if failed:
            self.lazy = {**self._writing, **self.lazy}
        self._writing = {}

    def refuse(self) -> None:
        """Discard pending notes after a failed commit."""
        self.waiting.clear()

    def pop_lazy(self) -> tuple[Key, bytes | None]:
        """Remove one lazy note, for a commit that then includes all others."""
        self._due = 0.0
        return self.lazy.popitem()

    def forget(self, channel: Channel) -> None:
        self.lazy = {key: data for key, data in self.lazy.items() if key[0] != channel}

    def uncommitted(self) -> dict[Key, bytes | None]:
        """The lazy notes that are not committed yet; reads include them."""
        return {**self._writing, **self.lazy}

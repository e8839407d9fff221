"""Notes that wait for a commit: those that ask for one, and lazy ones that go with one that comes anyway."""

from typing import NamedTuple

from portico.events import Channel

Key = tuple[Channel, str]


LAZY_SECONDS = 0.25
"""Between two commits that take lazy notes along: a summary changes with every event, and writing it each time was a
quarter of a turn's commits."""


class KeyValue(NamedTuple):
    channel: Channel
    key: str
    data: bytes | None
    ticket: int = 0
    """The number that orders it among the events."""
    bound: bool = False
    """It belongs to the append behind it, and shares its fate."""


class Notes:
    def __init__(self) -> None:
        self._waiting: dict[Key, KeyValue] = {}
        self._lazy: dict[Key, bytes | None] = {}
        self._writing: dict[Key, bytes | None] = {}
        """The lazy ones of the commit that runs."""
        self._due = 0.0

    def __bool__(self) -> bool:
        """Whether any of them asks for a commit."""
        return bool(self._waiting)

    @property
    def lazy(self) -> bool:
        return bool(self._lazy)

    def put(self, value: KeyValue) -> None:
        self._lazy.pop(value[:2], None)
        self._waiting[value[:2]] = value

    def withdraw(self, key: Key) -> None:
        self._waiting.pop(key, None)

    def withdraw_bound(self, after: int) -> None:
        """Those behind that ticket: the append that they belong to is rejected."""
        self._waiting = {key: each for key, each in self._waiting.items() if not (each.bound and each.ticket > after)}

    def put_lazy(self, key: Key, data: bytes | None) -> None:
        self._lazy[key] = data

    def take(self, upto: int, now: float) -> list[KeyValue]:
        """A note belongs to what was appended around it, so it goes with the events up to the next one behind it."""
        taken = [value for value in self._waiting.values() if value.ticket <= upto]
        self._waiting = {key: value for key, value in self._waiting.items() if value.ticket > upto}
        if self._lazy and now >= self._due:
            self._writing, self._lazy, self._due = self._lazy, {}, now + LAZY_SECONDS
        return [*(KeyValue(*key, data) for key, data in self._writing.items()), *taken]

    def written(self, *, failed: bool) -> None:
        """What lazy ones say holds whatever became of the batch."""
        if failed:
            self._lazy = {**self._writing, **self._lazy}
        self._writing = {}

    def refuse(self) -> None:
        """The disk says no: nobody waits for these any more."""
        self._waiting.clear()

    def pop_lazy(self) -> tuple[Key, bytes | None]:
        """One that asks for a commit of its own, which takes all others along."""
        self._due = 0.0
        return self._lazy.popitem()

    def forget(self, channel: Channel) -> None:
        self._lazy = {key: data for key, data in self._lazy.items() if key[0] != channel}

    def uncommitted(self) -> dict[Key, bytes | None]:
        """Lazy notes hold at once."""
        return {**self._writing, **self._lazy}

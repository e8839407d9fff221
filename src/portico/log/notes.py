"""Notes that wait for a commit: those that ask for one, and lazy ones that go with whichever comes next."""

from typing import NamedTuple

from portico.events import Channel

Key = tuple[Channel, str]


class KeyValue(NamedTuple):
    channel: Channel
    key: str
    data: bytes | None


class Notes:
    def __init__(self) -> None:
        self._waiting: dict[Key, tuple[int, bytes | None]] = {}
        """With the number that orders them among the events."""
        self._lazy: dict[Key, bytes | None] = {}
        self._writing: dict[Key, bytes | None] = {}
        """The lazy ones of the commit that runs."""

    def __bool__(self) -> bool:
        """Whether any of them asks for a commit."""
        return bool(self._waiting)

    @property
    def lazy(self) -> bool:
        return bool(self._lazy)

    def put(self, key: Key, ticket: int, data: bytes | None) -> None:
        self._lazy.pop(key, None)
        self._waiting[key] = (ticket, data)

    def put_lazy(self, key: Key, data: bytes | None) -> None:
        self._lazy[key] = data

    def take(self, upto: int) -> list[KeyValue]:
        """A note belongs to what was appended around it, so it goes with the events up to the next one behind it."""
        taken = {key: data for key, (ticket, data) in self._waiting.items() if ticket <= upto}
        self._waiting = {key: value for key, value in self._waiting.items() if value[0] > upto}
        self._writing, self._lazy = self._lazy, {}
        written = [*self._writing.items(), *taken.items()]
        return [KeyValue(channel, key, data) for (channel, key), data in written]

    def written(self, *, failed: bool) -> None:
        """What lazy ones say holds whatever became of the batch."""
        if failed:
            self._lazy = {**self._writing, **self._lazy}
        self._writing = {}

    def refuse(self) -> None:
        """The disk says no: nobody waits for these any more."""
        self._waiting.clear()

    def pop_lazy(self) -> tuple[Key, bytes | None]:
        return self._lazy.popitem()

    def forget(self, channel: Channel) -> None:
        self._lazy = {key: data for key, data in self._lazy.items() if key[0] != channel}

    def uncommitted(self) -> dict[Key, bytes | None]:
        """Lazy notes hold at once."""
        return {**self._writing, **self._lazy}

"""A feature: one class that lists everything it provides. The application finds it by the entry point group
`portico.features`; our own features are found in the same way (docs/guide/writing-a-feature.md)."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from portico.commands import Command
from portico.events import Event
from portico.host.component import Component

if TYPE_CHECKING:
    from portico.host.host import Host

F = TypeVar("F", bound=Callable[..., Any])


def handle(method: F) -> F:
    """Mark the handler of the command that the parameter `command` is annotated with."""
    method.__handles__ = method.__annotations__["command"]  # type: ignore[attr-defined]
    return method


def receive(*types: type[Event]) -> Callable[[F], F]:
    """Mark a method that is called with every committed record of these event types."""

    def mark(method: F) -> F:
        method.__receives__ = types  # type: ignore[attr-defined]
        return method

    return mark


def _marked(of: object, mark: str) -> Iterator[tuple[Any, Callable[..., Any]]]:
    """Return the marked methods of an object, with their marks. Properties are not read."""
    for name in dir(type(of)):
        if hasattr(method := getattr(type(of), name), mark):
            yield getattr(method, mark), getattr(of, name)


class Feature(Component):
    name: ClassVar[str]
    commands: ClassVar[tuple[type[Command], ...]] = ()
    """Each has a method that is marked with `handle`."""
    events: ClassVar[tuple[type[Event], ...]] = ()
    settings: ClassVar[type[Any] | None] = None
    """The shape of its table in the settings file; `configure` receives it."""

    def __init__(self, host: "Host", handlers: Sequence[object] = ()) -> None:
        """`handlers`: further objects with methods that are marked with `handle`."""
        self.host = host
        self.lock = asyncio.Lock()
        found = {mark: method for each in (self, *handlers) for mark, method in _marked(each, "__handles__")}
        if {*found} != {*self.commands}:
            raise TypeError(f"The feature {self.name!r} lists other commands than it handles.")
        for command, method in found.items():
            host.commands.handle(command, method, self.lock_of)
        for types, method in _marked(self, "__receives__"):
            host.commits.on(self.name, method, *types)

    def lock_of(self, command: Any) -> asyncio.Lock:
        """The lock of a command that declares `lock = "feature"`."""
        return self.lock

    def configure(self, settings: Any) -> None:
        """Called with its settings when the host starts and when the file changes."""

"""A feature: one class that lists everything it provides. The application finds it by the entry point group
`portico.features`; our own features are found in the same way (docs/guide/writing-a-feature.md)."""

import asyncio
from collections.abc import Callable
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


class Feature(Component):
    name: ClassVar[str]
    commands: ClassVar[tuple[type[Command], ...]] = ()
    """Each has a method that is marked with `handle`."""
    events: ClassVar[tuple[type[Event], ...]] = ()
    settings: ClassVar[type[Any] | None] = None
    """The shape of its table in the settings file; `configure` receives it."""

    def __init__(self, host: "Host") -> None:
        self.host = host
        self.lock = asyncio.Lock()
        kind = type(self)
        handlers = {each.__handles__: name for name in dir(kind) if hasattr(each := getattr(kind, name), "__handles__")}
        if {*handlers} != {*self.commands}:
            raise TypeError(f"The feature {self.name!r} lists other commands than it handles.")
        for command, name in handlers.items():
            host.commands.handle(command, getattr(self, name), self.lock_of)
        for name in dir(kind):
            if types := getattr(getattr(kind, name), "__receives__", ()):
                host.commits.on(self.name, getattr(self, name), *types)

    def lock_of(self, command: Any) -> asyncio.Lock:
        """The lock of a command that declares `lock = "feature"`."""
        return self.lock

    def configure(self, settings: Any) -> None:
        """Called with its settings when the host starts and when the file changes."""

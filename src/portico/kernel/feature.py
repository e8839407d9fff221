"""A feature: one class that lists everything it provides. The application finds it by the entry point group
`portico.features`; our own features are found in the same way (docs/guide/writing-a-feature.md)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar, get_args

from msgspec import Struct

from portico.kernel.commands import Command, Readable, Scope, register
from portico.kernel.component import Component
from portico.kernel.events import Event, register_events
from portico.kernel.fold import register_slice, slice_of
from portico.kernel.state import SessionState, Summary

if TYPE_CHECKING:
    from portico.kernel.host import Host

F = TypeVar("F", bound=Callable[..., Any])


def handle(method: F) -> F:
    """Mark the handler of the commands that the parameter `command` is annotated with."""
    kinds = method.__annotations__["command"]
    method.__handles__ = get_args(kinds) or (kinds,)  # type: ignore[attr-defined]
    return method


class _Received(NamedTuple):
    types: tuple[type[Event], ...]
    channel: str
    later: bool


def receive(*types: type[Event], channel: str = "", later: bool = False) -> Callable[[F], F]:
    """Mark a method that is called with every committed record of these event types, or of all channels of a kind, such
    as `job`. Without both it gets every batch of records. `later`: not before `start_receiving`."""

    def mark(method: F) -> F:
        method.__receives__ = _Received(types, channel, later)  # type: ignore[attr-defined]
        return method

    return mark


def receive_summaries(method: F) -> F:
    """Mark a method that is called with the id of a session and its new summary, or None when it was deleted."""
    method.__summaries__ = True  # type: ignore[attr-defined]
    return method


def guard(applies: Callable[[type[Command]], bool]) -> Callable[[F], F]:
    """Mark a method that is called before the commands that this applies to. It raises to refuse one, without I/O."""

    def mark(method: F) -> F:
        method.__guards__ = applies  # type: ignore[attr-defined]
        return method

    return mark


def _marked(of: object, mark: str) -> Iterator[tuple[Any, Callable[..., Any]]]:
    """Return the marked methods of an object, with their marks. Properties are not read."""
    for name in dir(type(of)):
        if hasattr(method := getattr(type(of), name), mark):
            yield getattr(method, mark), getattr(of, name)


class Routing(Protocol):
    """Adds a route with `@route(path, scope, summary)`; the function gets the request and returns the answer."""

    def __call__(self, path: str, scope: Scope, summary: str, **details: Any) -> Callable[[F], F]: ...

    def view(self, request: Any) -> Any:
        """Return the host as the caller may see it (`portico.features.people.view.View`)."""


class ToolOffer(Struct, frozen=True):
    """A tool for models that is not a command."""

    needs: Readable | type[Command]
    body: type[Struct]
    run: Callable[[Any], Awaitable[Any]]
    description: str
    subject: str = ""
    """The argument for which `id` is an alias."""


class WorkbenchPage(Struct, frozen=True):
    """A page of the workbench. The host serves the folder of its module."""

    title: str
    module: str
    """A JavaScript module, relative to the file of the feature's class: `pages/bookmarks.js`."""
    icon: str = "note"


class Feature(Component):
    name: ClassVar[str]
    needs: ClassVar[tuple[type[Any], ...]] = ()
    """Other features, or `portico.server.home.Home`: the constructor gets them after the host, in this order."""
    commands: ClassVar[tuple[type[Command], ...]] = ()
    """Each has a rule (`decide`), or a method that is marked with `handle`."""
    events: ClassVar[tuple[type[Event], ...]] = ()
    slice: ClassVar[type[Struct] | None] = None
    """Its part of the state and the summary of every session, folded from its events by `fold`. Keep it small: every
    list contains it. All fields have defaults; a slice that is equal to them is left out."""
    settings: ClassVar[type[Any] | None] = None
    """The shape of its table in the settings file; `configure` receives it."""
    verbs: ClassVar[Mapping[str, str]] = {}
    """Verbs of the command line: a function or a `typer.Typer` for each name, as `package.module:name`."""
    pages: ClassVar[Mapping[str, WorkbenchPage]] = {}
    """Pages of the workbench, by their path below `/app`."""

    def __init__(self, host: "Host", handlers: Sequence[object] = ()) -> None:
        """`handlers`: further objects with methods that are marked with `handle`."""
        self.host = host
        self.lock = asyncio.Lock()
        marked = [pair for each in (self, *handlers) for pair in _marked(each, "__handles__")]
        found = {kind: method for kinds, method in marked for kind in kinds}
        if {*found} != {each for each in self.commands if each.decide is None}:
            raise TypeError(f"The feature {self.name!r} lists other commands than it handles.")
        for command, method in found.items():
            host.commands.handle(command, method, self.lock_of)
        for received, method in _marked(self, "__receives__"):
            if not received.later:
                self._receive(received, method)
        for _, method in _marked(self, "__summaries__"):
            host.watch(method)
        for applies, method in _marked(self, "__guards__"):
            host.commands.guard(method, applies)

    def start_receiving(self) -> None:
        """Start to call the methods that are marked with `later`. Call it once."""
        for received, method in _marked(self, "__receives__"):
            if received.later:
                self._receive(received, method)

    def _receive(self, received: _Received, method: Callable[..., None]) -> None:
        commits = self.host.commits
        if received.channel:
            commits.on_channel(self.name, method, received.channel)
        elif received.types:
            commits.on(self.name, method, *received.types)
        else:
            commits.on_batch(self.name, method)

    @classmethod
    def register(cls) -> None:
        """Add its commands, events and slice to the tables that all hosts of this process share."""
        register(*cls.commands)
        register_events(*cls.events)
        if cls.slice is not None:
            register_slice(cls.name, cls.slice, cls.fold, *cls.events)

    @staticmethod
    def fold(slice: Any, event: Any, time: int) -> Any:
        """Return the slice after an event of a session. A pure function; `time` is in milliseconds."""
        return slice

    @classmethod
    def slice_of(cls, session: SessionState | Summary) -> Any:
        assert cls.slice is not None
        return slice_of(session, cls.name, cls.slice)

    def routes(self, route: Routing) -> None:
        """Add routes for what is not a plain command."""

    def tools(self, view: Any) -> Mapping[str, ToolOffer]:
        """Return tools by their names, for the caller of this view. Commands are offered without this."""
        return {}

    def lock_of(self, command: Any) -> asyncio.Lock:
        """The lock of a command that declares `lock = "feature"`."""
        return self.lock

    def configure(self, settings: Any) -> None:
        """Called with its settings when the host starts and when the file changes."""

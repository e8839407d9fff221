"""What a door gets when it is built: the host and what belongs to this process."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.websockets import WebSocket

from portico.doors.route import Caller, caller
from portico.home import Home
from portico.host.host import Host
from portico.host.search import Search
from portico.host.view import View
from portico.settings import Loaded, Settings

if TYPE_CHECKING:
    from portico.doors.gate import Gate


@dataclass
class App:
    host: Host
    home: Home
    loaded: Loaded
    stop: Callable[[], None]
    """Asks the process for a graceful stop; returns at once."""
    test: bool = False
    """`--test`: shorter countdowns and the test-only routes."""
    gate: "Gate | None" = None
    search: Search | None = None
    """With an index; None: searching reads the log."""
    at_start: list[Callable[[], Awaitable[object]]] = field(default_factory=list)
    """What doors have to do before the first request, for example to go on with what a crash left waiting."""

    def view(self, of: Caller | Request | WebSocket) -> View:
        """The host as this caller sees it: what doors read goes through it."""
        return View(self.host, of if isinstance(of, Caller) else caller(of))

    @property
    def workspaces(self) -> list[Path]:
        return self.host.workspaces

    @property
    def settings(self) -> Settings:
        """The current values: they change when the file does."""
        return self.loaded.settings

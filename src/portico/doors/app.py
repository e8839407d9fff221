"""What a door gets when it is built: the host and what belongs to this process."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from starlette.requests import Request
from starlette.websockets import WebSocket

from portico.automation.automations import Automations
from portico.doors.route import Caller, caller
from portico.home import Home
from portico.host.host import Host
from portico.jobs import Jobs
from portico.people.view import View
from portico.queries.search import Search
from portico.settings import Settings
from portico.settings_load import Loaded

if TYPE_CHECKING:
    from portico.doors.gate import Gate


class DoorInfo(Struct):
    name: str
    package: str
    missing: str = ""
    """Why it is not served, when it should be."""
    disabled: bool = False


class App(Struct, eq=False):
    host: Host
    home: Home
    loaded: Loaded
    stop: Callable[[], None]
    """Asks the process for a graceful stop; returns at once."""
    test: bool = False
    """`--test`: shorter countdowns and the test-only routes."""
    search: Search | None = None
    """With an index; None: searching reads the log."""
    api_level: str = "latest"
    """`--api-level`, for the Portal door."""
    test_folder: Path = Path("test")
    gate: "Gate" = field(default=None)  # type: ignore[assignment]
    """These three are there before any door is built."""
    jobs: Jobs = field(default=None)  # type: ignore[assignment]
    automations: Automations = field(default=None)  # type: ignore[assignment]
    find_agents: Callable[[], list[str]] = list
    """Looks for agents again and adds those that are new; returns their ids."""
    doors: list[DoorInfo] = field(default_factory=list)
    """Every door there is, also those that could not be loaded."""

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

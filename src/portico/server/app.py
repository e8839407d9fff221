"""The argument of every door: the host and the other objects of this process."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from starlette.requests import Request
from starlette.websockets import WebSocket

from portico.features.automations.automations import Automations
from portico.features.jobs import Jobs
from portico.features.pairing.pairing import Pairing
from portico.features.people.view import View
from portico.features.secrets.feature import HostSecrets
from portico.kernel.host import Host
from portico.server.compose import Provided
from portico.server.home import Home
from portico.server.route import Caller, caller
from portico.server.settings import Settings
from portico.server.settings_load import Loaded

if TYPE_CHECKING:
    from portico.server.gate import Gate


class DoorInfo(Struct):
    name: str
    package: str
    missing: str = ""
    """Why the door is not served although it is enabled."""
    disabled: bool = False


class App(Struct, eq=False):
    host: Host
    home: Home
    loaded: Loaded
    stop: Callable[[], None]
    """Requests a graceful stop of the process; returns immediately."""
    test: bool = False
    """`--test`: shorter countdowns and the test-only routes."""
    api_level: str = "latest"
    """`--api-level`, for the Portal door."""
    test_folder: Path = Path("test")
    gate: "Gate" = field(default=None)  # type: ignore[assignment]
    """`gate`, `jobs`, `automations` and `secrets` are set before any door is built."""
    jobs: Jobs = field(default=None)  # type: ignore[assignment]
    automations: Automations = field(default=None)  # type: ignore[assignment]
    secrets: HostSecrets = field(default=None)  # type: ignore[assignment]
    pairing: Pairing = field(default=None)  # type: ignore[assignment]
    find_agents: Callable[[], list[str]] = list
    """Discovers agents again and adds the new ones; returns their ids."""
    features: Provided = field(default_factory=Provided)
    """The features of the host, by their classes; set by the constructor."""
    doors: list[DoorInfo] = field(default_factory=list)
    """All doors, including those that could not be loaded."""

    def __post_init__(self) -> None:
        self.features = Provided(*self.host.parts)

    def view(self, of: Caller | Request | WebSocket) -> View:
        """Return the host as this caller may see it. Doors read through this view."""
        return View(self.host, of if isinstance(of, Caller) else caller(of))

    @property
    def workspaces(self) -> list[Path]:
        return self.host.workspaces

    @property
    def settings(self) -> Settings:
        """The current settings. They change when the settings file changes."""
        return self.loaded.settings

"""Old names of modules, for plugins that were written for 0.2: `portico.host.agent` is `portico.kernel.agent`.

The module is the same object under both names, so classes exist once.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_KERNEL = "cache commands correlation errors events faults log"
_FEATURES = (
    "approvals budgets changes chats configuration drafts files jobs native notices pairing people projects sandboxes "
    "secrets terminals transcripts usage"
)
_SERVER = "compose home maintenance memory plugins settings settings_edit settings_load"
_DOORS = (
    "app behind body cors cursor door exchange feature_pages gate lan login login_redirect meter notify oidc origin "
    "phone_address protocol proxy rate read_forward registry request_head route router routes serve_options server "
    "socket_server sockets stream stream_end telemetry tls websocket"
)
MOVED = {
    "host": "kernel",
    "host.descriptions": "features.readiness.descriptions",
    "host.draft": "features.chats.draft",
    "host.readiness": "features.readiness.checks",
    "automation": "features.automations",
    "log.postgres": "cluster.postgres",
    "people.identity": "server.identity",
    "queries": "features.board",
    "queries.index": "features.search.index",
    "queries.search": "features.search.search",
    "feature_registry": "features.registry",
    **{name: f"kernel.{name}" for name in _KERNEL.split()},
    **{name: f"features.{name}" for name in _FEATURES.split()},
    **{name: f"server.{name}" for name in _SERVER.split()},
    **{f"doors.{name}": f"server.{name}" for name in _DOORS.split()},
}
"""The new name by the old one, both below `portico`."""


class _Alias(Loader):
    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        found = import_module(self._name)
        self._spec = found.__spec__
        return found

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has set that of the old name


class MovedModules(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("portico."):
            return None
        new = new_name(fullname)
        if new is None:
            return None
        warnings.warn(f"{fullname} is now {new}.", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, _Alias(new), is_package=hasattr(import_module(new), "__path__"))


def new_name(name: str) -> str | None:
    parts = name.split(".")[1:]
    for count in (2, 1):
        place = MOVED.get(".".join(parts[:count])) if len(parts) >= count else None
        if place is not None:
            return ".".join(("portico", place, *parts[count:]))
    return None


def install() -> None:
    """Install the finder before all others: the folder of an old package would find a second copy of its modules."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())

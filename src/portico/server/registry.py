"""Discovers and opens the doors. Our own doors and third-party doors use the same entry points.

A door that cannot be loaded or opened is skipped and reported in the log, in `GET /v1` and by `portico doctor`. The
host runs without it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from importlib.metadata import EntryPoint
from typing import cast

from portico import limits
from portico.kernel.errors import BadRequest, LogUnavailable, PorticoError, nearest
from portico.kernel.feature import Feature, Routing
from portico.server.app import App, DoorInfo
from portico.server.door import Door
from portico.server.gate import Gate
from portico.server.plugins import installed
from portico.server.route import Table
from portico.server.routes import Routes

GROUP = "portico.doors"
OWN = ("ahp", "anywhere", "automations", "jobs", "mcp", "openapi", "ops", "portal", "rest", "web")

logger = logging.getLogger("portico.doors")

Make = Callable[[App], Door]


def find_points() -> dict[str, EntryPoint]:
    """Return the entry points by name, our own first. A plugin cannot replace a name or path of ours."""
    found = {name: EntryPoint(name, f"portico.doors.{name}:{name.capitalize()}Door", GROUP) for name in OWN}
    missing = set(OWN)
    for point in sorted(installed(GROUP), key=lambda point: point.name):
        ours = found.get(point.name)
        if ours is None:
            found[point.name] = point
        elif ours.value == point.value:
            missing.discard(point.name)
        else:
            logger.error("the plugin %s is left out: the door %r is there already", point.value, point.name)
    if missing:  # `git pull` does not update an editable install
        logger.warning("this checkout is newer than its installation; renew it with: pip install -e .")
    return found


def check_disabled(disabled: Collection[str], points: Collection[str]) -> None:
    for name in disabled:
        if name not in points:
            near = nearest(name, points)
            hint = f"Did you mean {near!r}?" if near else f"There are: {', '.join(sorted(points))}."
            raise BadRequest(f"There is no door {name!r}. {hint}", field="doors.disabled")


def load_doors(disabled: Collection[str] = ()) -> tuple[dict[str, Make], list[DoorInfo]]:
    """Return the factory of each door, and the list of all doors, including those that could not be loaded."""
    points = find_points()
    check_disabled(disabled, points)
    makes: dict[str, Make] = {}
    infos = []
    for name, point in points.items():
        info = DoorInfo(name, point.dist.name if point.dist is not None else "portico", disabled=name in disabled)
        infos.append(info)
        if not info.disabled:
            try:
                makes[name] = point.load()
            except Exception as error:  # noqa: BLE001 - a stranger's code: one broken plugin must not stop the host
                _tell(info, "loaded", error)
    return makes, infos


class Doors:
    """All doors of one host. Build it with `await Doors.open(app)`."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._open: dict[str, Door] = {}

    @classmethod
    async def open(cls, app: App) -> "Doors":
        doors = cls(app)
        makes, app.doors[:] = load_doors(app.settings.doors.disabled)
        made = {info.name: doors._make(info, makes[info.name]) for info in app.doors if info.name in makes}
        for info in app.doors:
            door = made.get(info.name)
            if door is not None and await doors._begin(info, door):
                doors._open[info.name] = door
        for feature in app.host.parts:
            if isinstance(feature, Feature):
                doors._add_routes(feature)
        return doors

    def _add_routes(self, feature: Feature) -> None:
        """Serve the routes of a feature. A path that a door serves stays with the door."""
        routes = Routes(self._app)
        try:
            feature.routes(cast(Routing, routes))
            _check_free(self._app.gate, routes.table)
        except Exception as error:  # noqa: BLE001 - as above
            reason = error.message if isinstance(error, PorticoError) else f"{type(error).__name__}: {error}"
            logger.error("the routes of the feature %r are left out: %s", feature.name, reason)
            return
        self._app.gate.add(routes.table)

    def _make(self, info: DoorInfo, make: Make) -> Door | None:
        try:
            door = make(self._app)
            if not isinstance(door, Door):
                raise TypeError(f"{make!r} returned {door!r}, which is not a portico.server.door.Door")
            return door
        except Exception as error:  # noqa: BLE001 - as above
            _tell(info, "built", error)
            return None

    async def _begin(self, info: DoorInfo, door: Door) -> bool:
        try:
            if info.name not in OWN:  # a test checks our own doors
                _check_free(self._app.gate, door.routes)
            async with asyncio.timeout(limits.DOOR_SECONDS):
                await door.open()
            self._app.gate.add(door.routes)
            return True
        except LogUnavailable as error:
            logger.warning("the door %r begins at its first request: %s", info.name, error.message)
            self._app.gate.add(door.routes)
            return True
        except Exception as error:  # noqa: BLE001 - as above
            _tell(info, "opened", error)
            return False

    def __getitem__(self, name: str) -> Door:
        return self._open[name]

    async def close(self) -> None:
        for name, door in reversed(self._open.items()):
            try:
                async with asyncio.timeout(limits.DOOR_SECONDS):
                    await door.close()
            except Exception:  # the other doors are closed too
                logger.exception("the door %r could not be closed", name)


def _check_free(gate: Gate, routes: Table) -> None:
    for route in routes:
        taken = gate.taken(route)
        if taken is not None:
            raise BadRequest(f"its path {route.path!r} is served by another door ({taken!r}). Choose another path.")


def _tell(info: DoorInfo, what: str, error: Exception) -> None:
    reason = error.message if isinstance(error, PorticoError) else f"{type(error).__name__}: {error}"
    info.missing = f"It cannot be {what} (package {info.package!r}): {reason}"
    logger.error("the door %r cannot be %s: %s", info.name, what, reason)

"""The host with its rooms: what the application registers in the core, and tests open."""

import logging
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint

import msgspec

from portico import features  # noqa: F401  # registers the commands of features
from portico.approvals.policy import WorkspacePolicy
from portico.budgets.budgets import Budgets
from portico.changes.component import FolderChanges
from portico.chats.component import Chats
from portico.commands import register
from portico.events import register_events
from portico.files.component import WorkspaceFiles
from portico.host.agent import Agent
from portico.host.clock import Clock
from portico.host.component import Component
from portico.host.feature import Feature
from portico.host.host import Host
from portico.log.log import Log
from portico.notices.notices import Notices
from portico.people.quotas import Quotas
from portico.people.retention import Retention
from portico.plugins import installed
from portico.settings import Settings
from portico.terminals.handlers import open_terminals
from portico.transcripts.component import Transcripts

GROUP = "portico.features"
logger = logging.getLogger("portico.features")

ROOMS: tuple[Callable[[Host], Component], ...] = (
    WorkspacePolicy,
    open_terminals,
    FolderChanges,
    WorkspaceFiles,
    Chats,
    Transcripts,
    Budgets,
    Quotas,
    Retention,
    Notices,
)
"""In the order of their start."""


def configure(host: Host, settings: Settings) -> None:
    """Give every feature its table of the settings: at the start, and when the file has changed."""
    for part in host.parts:
        if isinstance(part, Feature) and part.settings is not None:
            _configure(part, settings)


def _configure(feature: Feature, settings: Settings) -> None:
    if type(feature) in ROOMS:
        feature.configure(getattr(settings, feature.name))
        return
    try:
        feature.configure(msgspec.convert(settings.features.get(feature.name, {}), feature.settings))
    except msgspec.ValidationError as error:
        logger.error("[features.%s] is not taken over: %s", feature.name, error)


def installed_features() -> list[Callable[[Host], Component]]:
    """The features of other packages. One that cannot be loaded is left out and logged: the host runs without it."""
    own = {kind.name for kind in ROOMS if isinstance(kind, type) and issubclass(kind, Feature)}
    found: list[Callable[[Host], Component]] = []
    for point in sorted(installed(GROUP), key=lambda point: point.name):
        if point.name not in own:
            try:
                found.append(_loaded(point))
            except Exception as error:  # noqa: BLE001 - one broken plugin must not stop the host
                logger.error("the feature %s is left out: %s: %s", point.name, type(error).__name__, error)
    return found


def _loaded(point: EntryPoint) -> Callable[[Host], Component]:
    kind = point.load()
    if not (isinstance(kind, type) and issubclass(kind, Feature) and kind.name == point.name):
        raise TypeError(f"{point.value} is no Feature of this name")
    register(*kind.commands)
    register_events(*kind.events)

    def make(host: Host) -> Component:
        try:
            return kind(host)
        except Exception:
            logger.exception("the feature %s is left out", point.name)
            return Component()

    return make


async def build_host(
    log: Log,
    agents: Iterable[Agent],
    clock: Clock | None = None,
    before: Iterable[Callable[[Host], Component]] = (),
    after: Iterable[Callable[[Host], Component]] = (),
) -> Host:
    """`before`, `after`: what starts before or after our own features."""
    return await Host.open(log, agents, clock, (*before, *ROOMS, *after))

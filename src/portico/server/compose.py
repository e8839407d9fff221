"""The host with its features, as the application and tests open it."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import msgspec

from portico.features import builtin  # noqa: F401  # registers the commands of features
from portico.features.approvals.policy import ApprovalRules
from portico.features.board.board import Board
from portico.features.budgets.budgets import Budgets
from portico.features.changes.component import FolderChanges
from portico.features.chats.component import Chats
from portico.features.client_servers.feature import ClientServers
from portico.features.drafts.feature import WorkflowDrafts
from portico.features.files.component import WorkspaceFiles
from portico.features.folders.feature import FoldersFeature
from portico.features.hosts.feature import Hosts
from portico.features.native.feature import NativeSessions
from portico.features.notices.notices import Notices
from portico.features.people.feature import PeopleFeature
from portico.features.people.quotas import Quotas
from portico.features.people.retention import Retention
from portico.features.projects.projects import Projects
from portico.features.readiness.feature import Readiness
from portico.features.registry import installed_features as installed_features
from portico.features.sandboxes.feature import Sandboxes
from portico.features.sandboxes.record import NetworkRecord
from portico.features.search.search import Search
from portico.features.secrets.feature import HostSecrets
from portico.features.terminals.terminals import Terminals
from portico.features.transcripts.component import Transcripts
from portico.features.usage.usage_index import UsageIndex
from portico.kernel.agent import Agent
from portico.kernel.clock import Clock
from portico.kernel.component import Component
from portico.kernel.feature import Feature
from portico.kernel.host import Host
from portico.kernel.log.log import Log
from portico.server.settings import Settings

T = TypeVar("T")
logger = logging.getLogger("portico.features")

ROOMS: tuple[type[Feature], ...] = (
    Readiness,
    Hosts,
    ApprovalRules,
    Terminals,
    FolderChanges,
    WorkspaceFiles,
    Chats,
    FoldersFeature,
    ClientServers,
    Transcripts,
    UsageIndex,
    Budgets,
    Quotas,
    Retention,
    Notices,
    NativeSessions,
    NetworkRecord,
    Sandboxes,
    PeopleFeature,
    Projects,
    Board,
    Search,
    HostSecrets,
    WorkflowDrafts,
)
"""In the order of their start. Without a home folder, as in some tests, those that need one are left out."""


def configure(host: Host, settings: Settings) -> None:
    """Give every feature its table of the settings: at the start, and when the file has changed."""
    for part in host.parts:
        if isinstance(part, Feature) and part.settings is not None:
            _configure(part, settings)


def _configure(feature: Feature, settings: Settings) -> None:
    for table in (getattr(settings, name) for name in settings.__struct_fields__):
        if type(table) is feature.settings:
            feature.configure(table)
            return
    try:
        feature.configure(msgspec.convert(settings.features.get(feature.name, {}), feature.settings))
    except msgspec.ValidationError as error:
        logger.error("[features.%s] is not taken over: %s", feature.name, error)


class Provided:
    """Objects by their types: features, and what the application gives them (`Home`)."""

    def __init__(self, *objects: object) -> None:
        self._objects: dict[type[Any], Any] = {type(each): each for each in objects}

    def __getitem__(self, kind: type[T]) -> T:
        found: T = self._objects[kind]
        return found

    def offers(self, kind: type[Feature]) -> bool:
        """Return whether everything is here that the feature needs, apart from features."""
        return all(each in self._objects or issubclass(each, Feature) for each in kind.needs)

    def build(self, kind: type[Feature], host: Host) -> Feature:
        """Build a feature from what it needs. KeyError names what is missing."""
        made = self._objects[kind] = kind(host, *(self._objects[each] for each in kind.needs))
        return made

    def make(self, kind: type[Feature]) -> Callable[[Host], Component]:
        """Build a feature of another package: if that fails, the host runs without it."""

        def made(host: Host) -> Component:
            try:
                return self.build(kind, host)
            except Exception:  # code of another package
                logger.exception("the feature %s is left out", kind.name)
                return Component()

        return made


async def build_host(
    log: Log,
    agents: Iterable[Agent],
    clock: Clock | None = None,
    before: Iterable[Callable[[Host], Component]] = (),
    after: Iterable[type[Feature]] = (),
    provided: Provided | None = None,
) -> Host:
    """`before`, `after`: what starts before or after our own features. `provided` gets all features."""
    found = provided if provided is not None else Provided()
    for kind in ROOMS:
        kind.register()
    own = [partial(found.build, kind) for kind in ROOMS if found.offers(kind)]
    return await Host.open(log, agents, clock, (*before, *own, *map(found.make, ordered(after))))


def ordered(kinds: Iterable[type[Feature]]) -> list[type[Feature]]:
    """Return the features so that each comes after those that it needs."""
    left, found = list(kinds), list[type[Feature]]()
    while left:
        ready = [kind for kind in left if not any(each in kind.needs for each in left)]
        found += ready or left  # those that need each other cannot be built, which is logged
        left = [kind for kind in left if kind not in found]
    return found

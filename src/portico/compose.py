"""The host with its rooms: what the application registers in the core, and tests open."""

from collections.abc import Callable, Iterable

from portico import features  # noqa: F401  # registers the commands of features
from portico.approvals.policy import WorkspacePolicy
from portico.budgets.budgets import Budgets
from portico.changes.component import FolderChanges
from portico.chats.component import Chats
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
from portico.settings import Settings
from portico.terminals.handlers import open_terminals
from portico.transcripts.component import Transcripts

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
            part.configure(getattr(settings, part.name))


async def build_host(
    log: Log, agents: Iterable[Agent], clock: Clock | None = None, before: Iterable[Callable[[Host], Component]] = ()
) -> Host:
    """`before`: rooms that start before the others."""
    return await Host.open(log, agents, clock, (*before, *ROOMS))

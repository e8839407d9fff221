"""The feature in the host: captures around turns, worktrees for sessions."""

import asyncio
import os
from typing import TYPE_CHECKING

import msgspec

from portico import limits
from portico.features.changes import review
from portico.features.changes.captures import Captures
from portico.features.changes.commands import CommitChanges, Committed, DiscardChanges, Discarded, RestoreChanges
from portico.features.changes.isolation import isolate, release
from portico.kernel import commands as c
from portico.kernel.component import Worktrees
from portico.kernel.events import Json
from portico.kernel.feature import Feature, handle
from portico.kernel.session import Session
from portico.locks import KeyedLocks
from portico.server.settings import AgentSettings
from portico.workspace.git import work_tree

if TYPE_CHECKING:
    from portico.kernel.host import Host


class FolderChanges(Feature, Worktrees):
    name = "changes"
    commands = (CommitChanges, DiscardChanges, RestoreChanges)
    settings = AgentSettings

    def __init__(self, host: "Host") -> None:
        super().__init__(host)
        self._host = host
        self.enabled = True
        """The setting `agent.capture_changes`."""
        self.slots = asyncio.Semaphore(limits.CAPTURES)
        host.captures = self.captures_of
        host.worktrees = self
        self._locks = KeyedLocks()

    def configure(self, settings: AgentSettings) -> None:
        self.enabled = settings.capture_changes

    def lock_of(self, command: CommitChanges | DiscardChanges | RestoreChanges) -> asyncio.Lock:
        """Return the lock of the work tree, which several sessions may share."""
        session = self._host.find(command.session)
        folder = os.path.realpath(session.summary.cwd) if session is not None else ""
        return self._locks.of(work_tree(folder) or folder)

    @handle
    async def _commit(self, command: CommitChanges, caller: c.Caller) -> Committed:
        session = await self._host.get(command.session)
        return Committed(await review.commit(session, command.message, command.paths, command.state, by=caller.by))

    @handle
    async def _discard(self, command: DiscardChanges, caller: c.Caller) -> Discarded:
        session = await self._host.get(command.session)
        return Discarded(await review.discard(session, command.paths, command.state, by=caller.by))

    @handle
    async def _restore(self, command: RestoreChanges, caller: c.Caller) -> c.Done:
        session = await self._host.get(command.session)
        await review.undo_discard(session, command.paths, command.undo, by=caller.by)
        return c.Done()

    def captures_of(self, session: Session) -> Captures:
        return Captures(session, self)

    async def isolate(self, folder: str, session: str, wanted: c.Isolation) -> tuple[str, Json]:
        made = await isolate(folder, session, wanted)
        return made.folder, msgspec.to_builtins(made)

    async def release(self, tree: Json) -> str:
        return await release(tree)

    async def forget(self, session: Session, by: str) -> None:
        await captures_of(session).forget()

    async def close(self) -> None:
        """Wait for running captures, so that the end of the last turn is not lost."""
        running = self._host.tasks("capture ")
        if running:
            await asyncio.wait(running, timeout=limits.CAPTURE_SECONDS)


def captures_of(session: Session) -> Captures:
    """Return the captures of a session on a host with this feature."""
    assert isinstance(session.captures, Captures)
    return session.captures

"""The room's share in the host: captures around turns, worktrees for sessions."""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from portico import limits
from portico.changes.captures import Captures
from portico.changes.isolation import isolate, release
from portico.commands import Isolation
from portico.events import Json
from portico.host.part import Part
from portico.host.session import Session

if TYPE_CHECKING:
    from portico.host.host import Host


class FolderChanges(Part):
    def __init__(self, host: "Host") -> None:
        self._host = host
        self.enabled = True
        """The setting `agent.capture_changes`."""
        self.slots = asyncio.Semaphore(limits.CAPTURES)
        host.captures = self.captures_of
        host.worktrees = self

    def captures_of(self, session: Session) -> Captures:
        return Captures(session, self)

    async def isolate(self, folder: str, session: str, wanted: Isolation) -> tuple[str, Json]:
        made = await isolate(folder, session, wanted)
        return made.folder, msgspec.to_builtins(made)

    async def release(self, tree: Json) -> str:
        return await release(tree)

    async def forget(self, session: Session, by: str) -> None:
        await captures_of(session).forget()

    async def close(self) -> None:
        """The last turn's end must not be forgotten for a hurried goodbye."""
        running = self._host.tasks("capture ")
        if running:
            await asyncio.wait(running, timeout=limits.CAPTURE_SECONDS)


def captures_of(session: Session) -> Captures:
    """Those of a session in a host that has this room."""
    assert isinstance(session.captures, Captures)
    return session.captures

"""Limits how much one person may have concurrently. Off by default.

Sessions, jobs and terminals count for their owner, not for the caller: a turn that a colleague starts in a shared
session counts for the owner of the session. What the host owns (tokens without a person) is not counted.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NoReturn

import msgspec
from msgspec import Struct

from portico.features.jobs import commands as jc
from portico.features.native.commands import AdoptSession
from portico.features.people.commands import Quota as Quota
from portico.features.people.view import at_work
from portico.features.terminals.commands import OpenTerminal
from portico.features.transcripts.commands import ImportSession
from portico.kernel import commands as c
from portico.kernel import limits
from portico.kernel.errors import QuotaExceeded
from portico.kernel.feature import Feature
from portico.kernel.host import Host
from portico.kernel.people import HOST_OWNER
from portico.kernel.state import Summary, is_subagent
from portico.server.settings import QuotaSettings

_NAMED = 5
"""Items that a refusal lists: enough to choose what to close."""
_NEW_SESSION = (c.StartSession, c.ForkSession, ImportSession, AdoptSession)
_NEW_TURN = (c.SendMessage, c.RunCommand, c.ResumeTurn, c.ReleaseQueue, jc.StartTask, jc.ResumeJob, jc.RetryJob)


class QuotaBounds(Struct, frozen=True):
    """0: none."""

    sessions: int = 0
    turns: int = 0
    terminals: int = 0
    disk_mb: int = 0


_UNBOUNDED = QuotaBounds()


class Quotas(Feature):
    name = "quotas"
    settings = QuotaSettings

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._host = host
        self.bounds = _UNBOUNDED
        self._bytes: dict[str, int] = {}
        """Size of each person's sessions in the log, as last measured."""
        self._held: Counter[tuple[str, str]] = Counter()
        """Running commands by person and quota."""
        self._released = asyncio.Event()

    def configure(self, settings: QuotaSettings) -> None:
        self.limit(msgspec.convert(settings, QuotaBounds, from_attributes=True))

    def limit(self, bounds: QuotaBounds) -> None:
        self.bounds = bounds
        self._host.commands.bound = self.bound if bounds != _UNBOUNDED else None

    async def sweep(self) -> None:
        """Measure the disk usage. The sum over all sessions is too expensive to compute for every command."""
        found: dict[str, int] = {}
        for session in self._host.summaries() if self.bounds.disk_mb else ():
            owner = self._host.ownership.owner_of(session)
            found[owner] = found.get(owner, 0) + await self._host.log.size(f"session/{session.id}")
        self._bytes = found

    def of(self, person: str) -> list[Quota]:
        used = {
            "sessions": len(self._sessions(person)),
            "turns": len(self._turns(person)),
            "terminals": len(self._terminals(person)),
            "disk_mb": self._bytes.get(person, 0) // limits.MIB,
        }
        return [Quota(name, used[name], getattr(self.bounds, name)) for name in used]

    # -- one command -------------------------------------------------------------------------------------------

    def bound(self, command: c.Command, caller: c.Caller) -> AbstractAsyncContextManager[None] | None:
        """Count a command toward the quotas of a person while it runs; None: it counts toward none."""
        person = self._concerned(command, caller)
        if person in ("", HOST_OWNER):
            return None
        names = self._counted(command, person)
        return self._hold(person, names) if names else None

    @asynccontextmanager
    async def _hold(self, person: str, names: list[str]) -> AsyncIterator[None]:
        """What a running command creates is not listed yet, so another one waits if it could be one too many."""
        while not all(self._has_room(person, name) for name in names):
            await self._released.wait()
        held = [(person, name) for name in names]
        self._held.update(held)
        try:
            yield
        finally:
            self._held.subtract(held)
            self._released.set()
            self._released = asyncio.Event()

    def _counted(self, command: c.Command, person: str) -> list[str]:
        found: list[str] = []
        if isinstance(command, (*_NEW_SESSION, jc.StartJob)) or self._unarchives(command):
            found.append("sessions")
        if isinstance(command, (*_NEW_TURN, jc.StartJob)) and command.subject not in self._turns(person):
            found.append("turns")
        if isinstance(command, (*_NEW_SESSION, *_NEW_TURN, jc.StartJob)):
            found.append("disk_mb")
        if isinstance(command, OpenTerminal):
            found.append("terminals")
        return [name for name in found if getattr(self.bounds, name)]

    def _has_room(self, person: str, name: str) -> bool:
        """Return whether one more fits with the running commands. Raise QuotaExceeded if none fits without them."""
        if name == "disk_mb":
            self._check_disk(person)
            return True
        having, way_out = self._having(person, name)
        if len(having) >= getattr(self.bounds, name):
            self._refuse(person, name, having, way_out)
        return bool(len(having) + self._held[person, name] < getattr(self.bounds, name))

    def _having(self, person: str, name: str) -> tuple[list[str], str]:
        """Return what a person has, and how to have less."""
        match name:
            case "sessions":
                return [each.id for each in self._sessions(person)], "archive or delete some"
            case "turns":
                return self._turns(person), "wait for one to end, or cancel one"
        return self._terminals(person), "close some"

    def _unarchives(self, command: c.Command) -> bool:
        """Return whether a command restores an archived session. Archived sessions do not count, so this adds one."""
        if not isinstance(command, c.ArchiveSession | c.ChangeSession) or command.archived is not False:
            return False
        session = self._host.find(command.session)
        return session is not None and session.summary.archived

    def _concerned(self, command: c.Command, caller: c.Caller) -> str:
        """Return whose quota applies: the owner of the session that a command is about, else the caller."""
        named = command.subject if command.about == "session" else ""
        session = self._host.find(command.parent or "" if isinstance(command, c.StartSession) else named)
        if not caller.id:
            return ""  # the host itself continues what it has started
        return self._host.ownership.owner_of(session) if session is not None else caller.person

    def _refuse(self, person: str, name: str, having: list[str], way_out: str) -> NoReturn:
        bound: int = getattr(self.bounds, name)
        shown = ", ".join(having[:_NAMED]) + (", ..." if len(having) > _NAMED else "")
        words = f"{person!r} has {len(having)} of at most {bound} {name} (quotas.{name}): {way_out} ({shown})."
        raise QuotaExceeded(words, field=f"quotas.{name}")

    def _check_disk(self, person: str) -> None:
        used, bound = self._bytes.get(person, 0) // limits.MIB, self.bounds.disk_mb
        if bound and used >= bound:
            words = f"The sessions of {person!r} take {used} of at most {bound} MB (quotas.disk_mb): delete some."
            raise QuotaExceeded(words, field="quotas.disk_mb")

    # -- what there is -----------------------------------------------------------------------------------------

    def _sessions(self, person: str) -> list[Summary]:
        """Return a person's sessions, oldest first, without archived ones and sub-agents, which agents start."""
        found = [
            session
            for session in self._host.summaries()
            if not session.archived and self._host.ownership.owner_of(session) == person
        ]
        chosen = [each for each in found if not is_subagent(each)]
        return sorted(chosen, key=lambda each: each.modified)

    def _turns(self, person: str) -> list[str]:
        return [each.id for each in at_work(self._host) if self._host.ownership.owner_of(each) == person]

    def _terminals(self, person: str) -> list[str]:
        return [each.id for each in self._host.terminals.list() if each.owner == person and not each.command]

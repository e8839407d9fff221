"""Adopts sessions of agents' own programs, and imports what was written there later.

An adoption is one commit: the session, the program's id and the whole history. A kill before it leaves nothing. The
program's id in the session's state makes an adopted session findable, so a second adoption returns the same session.
"""

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from portico.agents.native import KeepsSessions, NativeSession
from portico.features.native.alignment import added
from portico.features.native.commands import (
    AdoptSession,
    ContinueInTerminal,
    FindSessions,
    FoundSessions,
    TerminalLine,
)
from portico.features.native.listing import SECONDS, NativeListing
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.context import to_agent
from portico.kernel.errors import Conflict, Forbidden, NotFound, PorticoError
from portico.kernel.events import Record
from portico.kernel.feature import Feature, handle, receive
from portico.kernel.folder_access import check_reach
from portico.kernel.lifecycle import copied
from portico.kernel.state import Summary, TurnState

if TYPE_CHECKING:
    from portico.kernel.host import Host
    from portico.kernel.session import Session

_LINK = "native"
"""The key under which a session's channel stores its link."""
UNCHECKED = (
    "The agent's program did not list this session, so messages that were written there since the last turn may be "
    "missing here. The agent knows them."
)
_IMPORT_SECONDS = 30.0
"""How long a turn waits for the program's list of sessions: opencode starts a process for it, and the turn needs that
process as well."""
_SETTLE_MILLISECONDS = 2_000
"""Programs write the end of a turn within this time after they have reported it."""
UNKNOWN = (
    "This session was continued in its own program, and its new messages cannot be identified: they are not shown "
    "here. The agent knows them. To continue from what is shown here instead, fork the session."
)


class Link(Struct):
    """The state of the native session when it was last compared with ours."""

    native: str
    updated: int = 0
    messages: int | None = None
    unknown: bool = False
    """The histories could not be aligned, and this was reported."""


class NativeSessions(Feature):
    name = "native"
    commands = (FindSessions, AdoptSession, ContinueInTerminal)

    def __init__(self, host: "Host") -> None:
        super().__init__(host)
        self.listing = NativeListing(host)
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._links: dict[str, Link] = {}
        """Sessions that may continue in their own program."""
        self._notes: dict[str, str] = {}
        """What the next turn of a session reports."""

    async def recover(self) -> None:
        for channel, data in (await self.host.log.list_kv(_LINK)).items():
            self._follow(channel.removeprefix("session/"), msgspec.json.decode(data, type=Link))

    def _follow(self, session: str, link: Link) -> None:
        """The first linked session registers the callbacks: without one, they cost no message anything."""
        if c.SendMessage not in self.host.commands.before:
            self.host.commands.before[c.SendMessage] = self.import_new
            self.start_receiving()
        self._links[session] = link

    def lock_of(self, command: AdoptSession) -> asyncio.Lock:
        return self._locks.setdefault((command.agent, command.native), asyncio.Lock())

    def check_caller(self, caller: c.Caller) -> None:
        """The attack: a colleague reads the sessions that the owner of this machine started in a terminal. They belong
        to the user that runs the host, so other people need the scope admin."""
        if caller.person and not caller.may("admin"):
            raise Forbidden("Sessions of agents' own programs belong to the host's owner: it needs the scope 'admin'.")

    # -- commands ----------------------------------------------------------------------------------------------

    @handle
    async def find(self, command: FindSessions, caller: c.Caller) -> FoundSessions:
        self.check_caller(caller)
        if command.agent is not None:
            return FoundSessions([await self.listing.page(command.agent, command.cwd, command.cursor)])
        return FoundSessions(await self.listing.all(command.cwd, start=command.start))

    @handle
    async def adopt(self, command: AdoptSession, caller: c.Caller) -> Summary:
        self.check_caller(caller)
        agent = self._keeper(command.agent)
        wanted = NativeSession(command.native, command.cwd)
        if known := (await self.listing.owned(command.agent, [wanted])).get(command.native):
            session = await self.host.get(known)
            await self.import_new(session)
            return session.summary
        found = await self.listing.find(command.agent, command.native, command.cwd or None)
        if found is None:
            raise NotFound("session", command.native, "`portico sessions found` lists those that can be adopted.")
        if self.listing.is_open(found) and not command.confirm:
            raise Conflict(
                f"The session {command.native!r} changed a few seconds ago and is probably open elsewhere. Close it "
                "there first, or confirm (portico sessions adopt --yes).",
                field="confirm",
            )
        check_reach(self.host, caller, found.cwd, "approve", "terminal")
        return (await self._adopt(command, caller, agent, found)).summary

    async def _adopt(
        self, command: AdoptSession, caller: c.Caller, agent: KeepsSessions, found: NativeSession
    ) -> "Session":
        history = await agent.native_history(found)
        models = {each.id for each in (await self.host.described(command.agent)).models}
        session = await self.host.start(
            by=caller.by,
            agent=command.agent,
            model=history.model if history.model in models else None,
            cwd=found.cwd,
            title=found.title or _first_words(history.turns),
            history=history.turns,
            owner=self.host.ownership.owner_for(caller),
            events=[e.SessionVendor(id=found.id)],
        )
        self.listing.forget(command.agent)
        self._link(session, await self._current(session, agent) or found)
        return session

    @handle
    async def continue_in_terminal(self, command: ContinueInTerminal, caller: c.Caller) -> TerminalLine:
        session = await self.host.get(command.session)
        state, agent = session.state, self._program(session)
        if not state.vendor:
            raise Conflict(f"{session.id!r} has no session in the agent's own program yet; send a message first.")
        line = agent.native_command(state.vendor, state.cwd) if agent is not None else ""
        if not line:
            raise Conflict(f"{state.agent!r} has no program in which a session can be continued by its id.")
        if state.active is not None:
            raise Conflict("A turn is running; continue in the terminal when it has ended.")
        await session.runner.release()
        assert agent is not None  # it has a command
        await agent.native_release()
        self._link(session, NativeSession(state.vendor))  # unknown state: the next turn compares the histories
        return TerminalLine(state.agent, state.vendor, line)

    def _keeper(self, name: str) -> KeepsSessions:
        agent = self.host.agent(name)
        if not isinstance(agent, KeepsSessions):
            raise Conflict(f"{name!r} keeps no sessions outside of Portico.", field="agent")
        return agent

    def _program(self, session: "Session") -> KeepsSessions | None:
        agent: object = self.host.agents.get(session.state.agent)
        return agent if isinstance(agent, KeepsSessions) else None

    # -- new messages ------------------------------------------------------------------------------------------

    async def import_new(self, session: "Session") -> None:
        """Import what was written in the agent's own program since the last turn. An agent that cannot be asked now
        does not prevent the turn: it reports its problem there."""
        if session.id not in self._links or session.running is not None:
            return
        await session.load()
        agent = self._program(session)
        if not session.state.vendor or agent is None:
            return
        try:
            await self._import_new(session, agent)
        except PorticoError as error:
            self.host.logger.warning("%s: new messages cannot be imported: %s", session.id, error.message)

    async def _import_new(self, session: "Session", agent: KeepsSessions) -> None:
        link, current = self._links.get(session.id), await self._current(session, agent, _IMPORT_SECONDS)
        if link is None or link.native != session.state.vendor:
            return
        if current is None:
            self._notes[session.id] = UNCHECKED
            return
        if (current.updated, current.messages) == (link.updated, link.messages):
            return
        async with session.lock:
            if session.state.active is not None:
                return
            await session.runner.release()  # its process does not know what another one has written
            await agent.native_release()
        history = await agent.native_history(current)
        async with session.lock:
            known = await self._append_new(session, history.turns)
        if not known and not link.unknown:
            self._notes[session.id] = UNKNOWN
        self._link(session, await self._current(session, agent) or current, unknown=not known)

    async def _append_new(self, session: "Session", turns: list[TurnState]) -> bool:
        """False: the new ones cannot be identified. The caller holds the lock of the session."""
        if session.state.active is not None:
            return True
        new = added(list(to_agent(session.state.turns)), turns)
        if new:
            await session.append(*copied([_renumbered(session, turn) for turn in new]))
        return new is not None

    @receive(e.TurnStarted, later=True)
    def _started(self, record: Record) -> None:
        """Show in the turn why earlier messages are missing."""
        ident = record.channel.removeprefix("session/")
        if (note := self._notes.pop(ident, "")) and (turn := self.host.turns.get(ident)) is not None:
            turn.notice(note)

    @receive(e.TurnEnded, later=True)
    def _ended(self, record: Record) -> None:
        """After a turn of ours the program has a newer state that is not news."""
        ident = record.channel.removeprefix("session/")
        if (link := self._links.get(ident)) is not None and (session := self.host.find(ident)) is not None:
            self.host.own(self._settle(session, link, record.time), f"agent session of {ident}")

    async def _settle(self, session: "Session", link: Link, ended: int) -> None:
        """Store the state of the native session after our turn. Where a change by its own program is possible since
        then, the older state remains: the next turn compares the histories."""
        await session.load()
        agent = self._program(session)
        if agent is None or not session.state.vendor:
            return
        current = await self._current(session, agent, _IMPORT_SECONDS)
        if current is None or link.native != current.id or self._links.get(session.id) is not link:
            return
        if current.updated <= ended + _SETTLE_MILLISECONDS:
            self._link(session, current, unknown=link.unknown)

    async def _current(
        self, session: "Session", agent: KeepsSessions, seconds: float = SECONDS
    ) -> NativeSession | None:
        """The session as its program lists it now; None if it does not, or not in time."""
        state = session.state
        try:
            async with asyncio.timeout(seconds):
                return await self.listing.find(state.agent, str(state.vendor), state.cwd)
        except (TimeoutError, PorticoError) as error:
            self.host.logger.info("%s is not listed by its program: %r", session.id, error)
            return None

    # -- links -------------------------------------------------------------------------------------------------

    def _link(self, session: "Session", at: NativeSession, *, unknown: bool = False) -> None:
        """Written with a later commit. If a crash loses it, the next turn compares the histories once more."""
        link = Link(at.id, at.updated, at.messages, unknown)
        self._follow(session.id, link)
        self.host.log.put_kv(session.channel, _LINK, msgspec.json.encode(link))

    async def forget(self, session: "Session", by: str) -> None:
        self._links.pop(session.id, None)


def _renumbered(session: "Session", turn: TurnState) -> TurnState:
    parts = [msgspec.structs.replace(part, id=session.new_id(part.id[0])) for part in turn.parts]
    return msgspec.structs.replace(turn, id=session.new_id("t"), parts=parts)


def _first_words(turns: list[TurnState]) -> str:
    return " ".join(turns[0].message.text.split())[:80] if turns else ""

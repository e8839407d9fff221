"""The host as one caller sees it. Every read, list and feed of a door uses this view. The rule itself is in
`host/ownership.py`."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from portico.features.files.jail import jail_of
from portico.features.terminals.state import TerminalState
from portico.kernel import events as e
from portico.kernel.commands import EVERYBODYS, READS, Caller, Command, Readable
from portico.kernel.errors import NotFound
from portico.kernel.events import HOST, Channel, Grant, Record, Right, encode
from portico.kernel.host import Host
from portico.kernel.ownership import NOBODYS
from portico.kernel.session import Session
from portico.kernel.state import Summary
from portico.workspace.jail import Jail


class Identified(Protocol):
    @property
    def id(self) -> str: ...


J = TypeVar("J", bound=Identified)

_GUARDED: dict[str, Readable] = {"terminal": "terminals", HOST: "audit"}
"""Kinds of channels whose events, or some of them, need an additional scope."""
_WITHHELD = encode(e.Audited(action="withheld", by=""))
"""Replaces an event that a reader may not see, if the positions must have no gaps."""


def at_work(host: Host) -> list[Summary]:
    """Return the sessions with a running turn, on any host."""
    if not host.members.several:
        return [turn.session.summary for turn in host.turns.values()]
    return [each for each in host.summaries() if each.status in ("running", "waiting")]


class View:
    __slots__ = ("_host", "_ownership", "caller", "whole")

    def __init__(self, host: Host, caller: Caller) -> None:
        self._host = host
        self._ownership = host.ownership
        self.caller = caller
        self.whole = not caller.person or caller.may("admin")
        """Nothing is hidden from this caller."""

    def require(self, what: Readable | type[Command]) -> None:
        """Raise Forbidden if the caller may not read such things, or not send such a command, at all."""
        self.caller.require(READS[what] if isinstance(what, str) else what.scope)
        if why := _everybodys(what):
            self.caller.require_all(why)

    def may(self, what: Readable | type[Command]) -> bool:
        """Return whether the caller may use it, for features that are offered only to those who can."""
        scope = READS[what] if isinstance(what, str) else what.scope
        return self.caller.may(scope) and (self.whole or not _everybodys(what))

    # -- sessions ----------------------------------------------------------------------------------------------

    def find(self, ident: str) -> Session | None:
        """By id or by the name that a client gave it, as `Host.find`."""
        session = self._host.find(ident)
        return session if session is not None and self._opens(session.channel) else None

    def has(self, ident: str) -> bool:
        found = self._host.catalogue.summary(ident)
        return found is not None and self._opens(f"session/{found.id}")

    async def get(self, ident: str, right: Right = "read") -> Session:
        self.check(ident, right)
        return await self._host.get(ident)

    def check(self, ident: str, right: Right) -> None:
        """Check access to a session for an operation that is not a command."""
        self._ownership.check_session(self.caller, ident, right)

    def session_of(self, ident: str) -> str:
        """Return the session of an approval or a question."""
        session = self._host.session_of(ident)
        if not self.has(session):
            raise NotFound("approval or question", ident)
        return session

    def list(self, *, archived: bool | None = None, parent: str | None = None, children: bool = True) -> list[Summary]:
        found = self._host.list(archived=archived, parent=parent, children=children)
        return self._ownership.visible(self.caller, found)

    def jail(self) -> Jail:
        """Where this caller reads and writes files."""
        return jail_of(self._host, caller=self.caller)

    def count(self) -> int:
        return len(self._host.catalogue) if self.whole else len(self.list())

    def running(self) -> int:
        """The number of running turns."""
        return sum(self.whole or self.sees(f"session/{each.id}") for each in at_work(self._host))

    def owns(self, ident: str) -> bool:
        """Return whether the caller owns a session, for a door that chooses one. On a host with people, a session
        without an owner does not count: everyone could read what this caller sends."""
        session = self._host.catalogue.summary(ident)
        return session is not None and self._ownership.owner_of(session) == self._ownership.owner_for(self.caller)

    # -- terminals, grants -------------------------------------------------------------------------------------

    def find_terminal(self, ident: str) -> TerminalState | None:
        terminal: TerminalState | None = self._host.terminals.find(ident)
        return terminal if terminal is not None and self._opens(terminal.channel) else None

    def terminal(self, ident: str) -> TerminalState:
        terminal = self.find_terminal(ident)
        if terminal is None:
            raise NotFound("terminal", ident)
        return terminal

    def had_terminal(self, ident: str) -> bool:
        """Return whether a closed terminal had this id."""
        terminals = self._host.terminals
        return terminals.find(ident) is None and terminals.had(ident) and self._opens(f"terminal/{ident}")

    def terminals(self) -> Sequence[TerminalState]:
        return [each for each in self._host.terminals.list() if self.sees(each.channel)]

    def grants(self) -> Sequence[Grant]:
        now, may = self._host.grants.now(), self._ownership.may
        live = [grant for grant in self._host.grants.values() if grant.expires > now]
        return [grant for grant in live if may(self.caller, self._ownership.of_grant(grant))]

    def jobs(self, jobs: Iterable[J]) -> Sequence[J]:
        return [each for each in jobs if self.sees(f"job/{each.id}")]

    def job(self, job: J) -> J:
        if not self._opens(f"job/{job.id}"):
            raise NotFound("job", job.id)
        return job

    # -- channels ----------------------------------------------------------------------------------------------

    def sees(self, channel: Channel) -> bool:
        return self.whole or self._ownership.may(self.caller, self._ownership.of_channel(channel))

    def _opens(self, channel: Channel) -> bool:
        if not self.caller.person:
            return True
        access = self._ownership.of_channel(channel)
        if not self._ownership.may(self.caller, access):
            return False
        self._ownership.visit(self.caller, channel, access)
        return True

    async def open(self, channel: Channel) -> bool:
        """Return whether the caller may read this channel. If an admin reads it, that is recorded in the audit log."""
        await self._ownership.learn((channel,))
        return self._opens(channel)

    async def records(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records of the caller's own channels. Terminal output needs its scope: a shell shows keys and
        files. On the host's channel, hidden and audit records keep their positions without their content, so that no
        reader considers them lost."""
        if self.sees_all(records):
            return records
        if not self.may("terminals"):
            records = [each for each in records if not each.channel.startswith("terminal/")]
        await self._ownership.learn(record.channel for record in records)
        seen = [each for each in records if each.channel == HOST or self.sees(each.channel)]
        return [self._withheld(each) if each.channel == HOST else each for each in seen]

    @property
    def unfiltered(self) -> bool:
        """Whether `records` never leaves out a record, of any channel."""
        return self.whole and self.may("terminals")

    def sees_all(self, records: Sequence[Record]) -> bool:
        """Return whether no record is hidden. Then all such callers share one encoding of a page."""
        hidden = {kind for kind, what in _GUARDED.items() if not self.may(what)}
        return self.whole and not (hidden and any(each.channel.partition("/")[0] in hidden for each in records))

    def _withheld(self, record: Record) -> Record:
        return record if self._sees_host(record.event) else Record(*record.place(), _WITHHELD)

    def _sees_host(self, event: e.Event) -> bool:
        if self.whole:
            return self.may("audit") or not isinstance(event, e.Audited)
        match event:
            case e.SessionListed(session=session) | e.SessionRemoved(session=session):
                return self.sees(f"session/{session}")
            case e.GrantAdded(grant=grant):
                return self._ownership.may(self.caller, self._ownership.of_grant(grant))
            case e.HostStarted() | e.HostStopped() | e.LogLost() | e.ClientKept():
                return True
        return False

    async def blob(self, digest: str) -> bytes:
        """Return a blob only if events of the caller's own channels refer to it. A hash is no secret: people with whom
        a session was shared have seen it, and a caller who guesses the content could check by hash that it exists."""
        if not self.whole:
            users = await self._host.log.blob_users(digest)
            await self._ownership.learn(users)
            if not any(map(self.sees, users)):
                raise NotFound("blob", digest)
        return await self._host.log.blob(digest)

    def audit_feed(self) -> None:
        """Record in the audit log that an admin follows all events."""
        if self.caller.person and self.whole:
            self._ownership.visit(self.caller, "events", NOBODYS)


def _everybodys(what: Readable | type[Command]) -> str:
    name = what if isinstance(what, str) else what.shared_by_all or "sessions"
    return EVERYBODYS.get(name, "")

"""Decides who may see and use which sessions, jobs and terminals. No other module does.

The attack: a colleague's token reads, drives or approves in a session that was never shared with it, through any door.
So `check` (a guard of `host.do`) runs for every command, and every reader, list and feed uses a `View` (view.py),
which calls `may`. For what a person may not see, the answer is the same as for a wrong id.

A session belongs to the person who started it, and a family (forks, side chats, sub-agents) to the owner of its root.
The rules do not apply to callers without a person (the owner's token, named tokens of scripts, the host), nor to what
has no owner, so a host with one person is not affected. Admins may do everything, and their access is audited.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.cache import Cache
from portico.kernel.errors import Forbidden, NotFound
from portico.kernel.events import HOST, Channel, Record, Right
from portico.kernel.people import EVERYONE, HOST_OWNER
from portico.kernel.state import Summary

if TYPE_CHECKING:
    from portico.kernel.host import Host
    from portico.kernel.session import Session

_AUDIT_AGAIN_MS = 3_600_000
"""Continued access of an admin to a session of another person is audited once an hour."""
_REMEMBERED = 10_000
"""Cache size: deleted sessions, tasks, and accesses of admins."""
_RIGHTS: dict[str, Right] = {"read": "read", "approve": "approve"}


class Access(Struct, frozen=True):
    """The owner of something, and the rights of other people."""

    owner: str = ""
    shares: dict[str, list[Right]] = {}

    def rights_of(self, person: str) -> frozenset[Right]:
        given = (*self.shares.get(EVERYONE, ()), *self.shares.get(person, ()))
        return frozenset((*given, "read")) if given else frozenset()


NOBODYS = Access(HOST_OWNER)
"""Of what is gone or cannot be known: the host's own."""


class Ownership:
    def __init__(self, host: "Host") -> None:
        self._host = host
        self.team: Callable[[], bool] = lambda: False
        """Are there people? Then what tokens without a person start is the host owner's, and not everybody's."""
        self.finders: dict[str, Callable[[str], Access | None]] = {}
        """By kind of channel (`job`, `terminal`), whose one with that id is; None: there is none."""
        self._known = Cache[Channel, Access | str](_REMEMBERED)
        """The access of channels, or the session that they belong to: deleted sessions, and what features start."""
        self._starts: dict[type[e.Event], Callable[[Any], Access | str]] = {}
        self._visits = Cache[tuple[str, str], int](_REMEMBERED)

    def owner_for(self, caller: c.Caller) -> str:
        """To whom belongs what this caller starts."""
        return caller.person or (HOST_OWNER if self.team() else "")

    def owner_of(self, session: "Session | Summary") -> str:
        return self.of_session(session).owner

    # -- the rule ----------------------------------------------------------------------------------------------

    def may(self, caller: c.Caller, access: Access, right: Right | None = "read") -> bool:
        """Return whether the caller has the right. None: a right that only the owner has."""
        if not caller.person or access.owner in ("", caller.person) or caller.may("admin"):
            return True
        return right is not None and right in access.rights_of(caller.person)

    def within(self, caller: c.Caller, access: Access) -> c.Caller:
        """Return the caller with the scopes that apply in a session: without the right `approve` there, the caller does
        not have the scope `approve`."""
        if not caller.person or not caller.may("approve") or self.may(caller, access, "approve"):
            return caller
        return replace(caller, scopes=caller.scopes - {"approve"})

    def visible(self, caller: c.Caller, summaries: Iterable[Summary], right: Right = "read") -> list[Summary]:
        if not caller.person or caller.may("admin"):
            return list(summaries)
        return [each for each in summaries if self.may(caller, self.of_channel(f"session/{each.id}"), right)]

    def visit(self, caller: c.Caller, what: str, access: Access) -> None:
        """Audit the access of an admin to something of another person."""
        if not caller.person or access.owner in ("", caller.person) or access.rights_of(caller.person):
            return
        now, key = self._host.now(), (caller.person, what)
        if now - self._visits.get(key, -_AUDIT_AGAIN_MS) >= _AUDIT_AGAIN_MS:
            self._visits[key] = now
            detail: e.Json = {"of": what, "owner": access.owner}
            self._host.log.post(HOST, e.Audited(action="admin.access", by=caller.by, detail=detail))

    # -- whose it is -------------------------------------------------------------------------------------------

    def of_session(self, session: "Session | Summary") -> Access:
        root = self._host.catalogue.root_of(session if isinstance(session, Summary) else session.summary)
        return Access(root.owner, root.shares)

    def of_task(self, task: str) -> Access:
        return self._of_known(f"task/{task}")

    def _of_known(self, channel: Channel) -> Access:
        found = self._known.get(channel, NOBODYS)
        return found if isinstance(found, Access) else self._of_session_id(found)

    def _of_session_id(self, ident: str) -> Access:
        session = self._host.catalogue.summary(ident)
        return self.of_session(session) if session is not None else self._of_known(f"session/{ident}")

    def of_grant(self, grant: e.Grant) -> Access:
        """Return the access of a grant: that of its session, or for a project grant its owner."""
        if grant.session is None:
            return Access(grant.owner)
        return self._of_session_id(grant.session)

    def of_channel(self, channel: Channel) -> Access:
        """Return the access of a channel. If it is unknown, only the owner of the host has access."""
        kind, _, ident = channel.partition("/")
        if kind == "session":
            return self._of_session_id(ident)
        if kind in self.finders:
            return self.finders[kind](ident) or self._of_known(channel)
        if kind in ("automation", "run"):
            return NOBODYS  # they belong to the host: see `check`
        return self.of_task(ident) if kind == "task" else Access()

    def on_start(self, event: type[e.Event], access: Callable[[Any], Access | str]) -> None:
        """Set how the event that starts a channel states its access, or the session that it belongs to."""
        self._starts[event] = access
        self._host.commits.on("ownership", self._follow, event)

    async def learn(self, channels: Iterable[Channel]) -> None:
        """Read the owners of tasks and terminals from before the start of this host, on demand."""
        for channel in channels:
            if channel.startswith(("task/", "terminal/")) and channel not in self._known:
                for record in await self._host.log.read(channel, 0, 1):
                    if type(record.event) in self._starts:
                        self._follow(record)

    def _follow(self, record: Record) -> None:
        self._known[record.channel] = self._starts[type(record.event)](record.event)

    def forget(self, session: "Session") -> None:
        """It is being deleted: its last events may still be on the way to its readers."""
        self._known[session.channel] = self.of_session(session)

    # -- commands ----------------------------------------------------------------------------------------------

    def check(self, command: c.Command, caller: c.Caller) -> None:
        """Called before every command of a person."""
        if command.shared_by_all:
            caller.require_all(c.EVERYBODYS[command.shared_by_all])
        right = None if command.owner_only else _RIGHTS.get(command.scope, "drive")
        self._check_subject(command.about, command.subject, caller, right)
        for session in _also_named(command):
            self.check_session(caller, session, right)

    def check_seen(self, kind: type[c.Command], ident: str, caller: c.Caller) -> None:
        """Whether there is such a thing at all, for this caller."""
        if kind.about in ("session", "approval", "question", "terminal"):
            self._check_subject(kind.about, ident, caller, "read")

    def _check_subject(self, about: c.About, ident: str, caller: c.Caller, right: Right | None) -> None:
        host = self._host
        match about:
            case "session":
                self.check_session(caller, ident, right)
            case "approval" | "question":
                missing = NotFound("approval or question", ident)
                self._require(caller, f"session/{host.session_of(ident)}", right, missing)
            case "terminal" | "job" | "task":
                self._require(caller, f"{about}/{ident}", right, NotFound(about, ident))
            case "grant":
                grant = host.grants.get(ident)
                if grant is None or not self.may(caller, self.of_grant(grant), "approve"):
                    raise NotFound("grant", ident)
                if not grant.owner and grant.session is None:
                    caller.require_all("This grant counts for everybody")

    def check_session(self, caller: c.Caller, ident: str, right: Right | None) -> None:
        session = self._host.catalogue.summary(ident)
        if session is None:
            raise NotFound("session", ident)
        if caller.person:
            self._require(caller, f"session/{session.id}", right, NotFound("session", ident))

    def _require(self, caller: c.Caller, channel: Channel, right: Right | None, missing: NotFound) -> None:
        access = self.of_channel(channel)
        if not self.may(caller, access):
            raise missing
        if not self.may(caller, access, right):
            needed = "only they may do that" if right is None else f"it is not shared with you to {right}"
            raise Forbidden(f"{channel.partition('/')[2]!r} belongs to {access.owner!r}, and {needed}.")
        self.visit(caller, channel, access)


def _also_named(command: c.Command) -> list[str]:
    """Sessions that a command names besides what it is about."""
    found: list[str | None] = [getattr(command, name) for name in command.names]
    if isinstance(command, c.StartSession) and command.origin is not None:
        found.append(command.origin.session)
    if command.about != "session":
        found.append(getattr(command, "session", None))
    return [each for each in found if each is not None]

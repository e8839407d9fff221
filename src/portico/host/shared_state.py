"""What all sessions of a host share: remembered answers, and the settings that editors push.

It follows from the committed events of the host's channel and changes at no other time. Each such event has a note in
its commit, with what is shared from then on: a start reads the notes and no history.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from portico import commands as c
from portico import events as e
from portico.errors import NotFound, PorticoError
from portico.events import HOST, Grant, Json
from portico.host.decide.decision import HostState
from portico.host.decide.host import SETTINGS

if TYPE_CHECKING:
    from portico.host.host import Host

GRANTS = "grants"


class Grants(dict[str, Grant]):
    """The grants by id. `add` and `revoke` are the commands in Python."""

    def __init__(self, host: "Host") -> None:
        super().__init__()
        self._host = host
        self._latest = 0

    def now(self) -> int:
        """The latest time ever seen: what has ended stays ended when the clock goes back."""
        self._latest = max(self._latest, self._host.now())
        return self._latest

    def live(self) -> dict[str, Grant]:
        now = self.now()
        return {ident: grant for ident, grant in self.items() if grant.expires > now}

    async def add(
        self,
        *,
        agent: str,
        tool: str,
        allow: bool,
        by: str,
        session: str | None = None,
        project: str | None = None,
        pattern: str = "*",
    ) -> Grant:
        command = c.AddGrant(agent=agent, tool=tool, allow=allow, session=session, project=project, pattern=pattern)
        grant: Grant = await self._host.do(command, c.Caller.inside(by))
        return grant

    async def revoke(self, ident: str, *, by: str) -> None:
        await self._host.do(c.RevokeGrant(grant=ident), c.Caller.inside(by))

    async def expire(self) -> None:
        """Forgets what has ended, for good: not even a restart with a clock that went back brings it back."""
        for ident in set(self) - set(self.live()):
            with contextlib.suppress(NotFound):
                await self.revoke(ident, by="expired")


class SharedState:
    def __init__(self, host: "Host") -> None:
        self._host = host
        self.lock = asyncio.Lock()
        """Held from a decision about what is shared until its commit."""
        self.grants = Grants(host)
        self.settings: Json = {}

    async def load(self) -> None:
        log = self._host.log
        grants, settings = await log.get_kv(HOST, GRANTS), await log.get_kv(HOST, SETTINGS)
        self.grants.update(msgspec.json.decode(grants, type=dict[str, Grant]) if grants else {})
        self._set(msgspec.json.decode(settings) if settings else {})

    def apply(self, event: e.Event) -> None:
        match event:
            case e.GrantAdded() | e.GrantRevoked():
                after = _granted(self.grants.live() if isinstance(event, e.GrantAdded) else self.grants, event)
                self.grants.clear()
                self.grants.update(after)
            case e.ClientKept(key=key, value=value) if key == SETTINGS:
                self._set(value or {})

    def _set(self, settings: Json) -> None:
        self.settings = settings
        self._host.rules.push(settings)

    def state(self) -> HostState:
        host = self._host
        # The number of the event that adds it, but for what is appended meanwhile: no two have the same.
        ident = f"grant-{host.log.head(HOST) + 1}"
        return HostState(frozenset(host.agents), dict(self.grants), self.settings, self.grants.now(), ident)

    @contextlib.contextmanager
    def noted(self, events: Iterable[e.Event]) -> Iterator[None]:
        """Puts the notes that belong to these events into their commit; a failed commit takes both back."""
        changing = [event for event in events if isinstance(event, (e.GrantAdded, e.GrantRevoked, e.ClientKept))]
        before, after = (self._notes(()), self._notes(changing)) if changing else ({}, {})
        changed = [key for key in after if after[key] != before[key]]
        for key in changed:
            self._host.log.put_kv(HOST, key, after[key])
        try:
            yield
        except PorticoError:
            for key in changed:
                self._host.log.put_kv(HOST, key, before[key])
            raise

    def _notes(self, events: Iterable[e.Event]) -> dict[str, bytes]:
        grants, settings = dict(self.grants), self.settings
        for event in events:
            match event:
                case e.GrantAdded() | e.GrantRevoked():
                    grants = _granted(grants, event)
                case e.ClientKept(key=key, value=value) if key == SETTINGS:
                    settings = value or {}
        return {GRANTS: msgspec.json.encode(grants), SETTINGS: msgspec.json.encode(settings)}


def _granted(grants: dict[str, Grant], event: e.GrantAdded | e.GrantRevoked) -> dict[str, Grant]:
    if isinstance(event, e.GrantAdded):
        return {**grants, event.grant.id: event.grant}
    return {ident: grant for ident, grant in grants.items() if ident != event.grant}

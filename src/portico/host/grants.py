"""Remembered answers. Each is for one agent, one session or project, one tool and pattern, and it always ends."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from portico import events as e
from portico import limits
from portico.errors import BadRequest, NotFound, PorticoError, RateLimited
from portico.events import HOST, Grant

if TYPE_CHECKING:
    from portico.host.host import Host

_NOTE = "grants"


class Grants(dict[str, Grant]):
    """The grants by id. They change with the commit of the event that changes them, and at no other time."""

    def __init__(self, host: "Host") -> None:
        super().__init__()
        self._host = host
        self._changing = asyncio.Lock()
        self._latest = 0

    def now(self) -> int:
        """The latest time ever seen: what has ended stays ended when the clock goes back."""
        self._latest = max(self._latest, self._host.now())
        return self._latest

    async def expire(self) -> None:
        """Forgets what has ended, for good: not even a restart with a clock that went back brings it back."""
        for ident in set(self) - set(self._live()):
            with contextlib.suppress(NotFound):
                await self.revoke(ident, by="expired")

    async def load(self) -> None:
        """They are kept beside the host's channel, in the same commit as the event that changed them."""
        data = await self._host.log.get_kv(HOST, _NOTE)
        self.update(msgspec.json.decode(data, type=dict[str, Grant]) if data else {})

    def apply(self, event: e.Event) -> None:
        if isinstance(event, e.GrantAdded):
            for ident in set(self) - set(self._live()):
                del self[ident]
            self[event.grant.id] = event.grant
        elif isinstance(event, e.GrantRevoked):
            self.pop(event.grant, None)

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
        covers: Sequence[str] = (),
        seconds: float = limits.GRANT_SECONDS,
        owner: str = "",
    ) -> Grant:
        host = self._host
        if (session is None) == (project is None):
            raise BadRequest("A grant is for one session or for one project.", field="session")
        host.agent(agent)
        async with self._changing:
            live = self._live()
            if len(live) >= limits.GRANTS:
                raise RateLimited(f"There are {limits.GRANTS} grants; revoke some.")
            ident = f"grant-{host.log.head(HOST) + 1}"
            expires = self.now() + int(seconds * 1000)
            grant = Grant(ident, agent, tool, allow, expires, session, project, pattern, list(covers), owner)
            await self._keep({**live, ident: grant}, e.GrantAdded(grant=grant, by=by))
        return grant

    async def revoke(self, ident: str, *, by: str) -> None:
        async with self._changing:
            if ident not in self:
                raise NotFound("grant", ident)
            rest = {key: grant for key, grant in self.items() if key != ident}
            await self._keep(rest, e.GrantRevoked(grant=ident, by=by))

    def _live(self) -> dict[str, Grant]:
        now = self.now()
        return {ident: grant for ident, grant in self.items() if grant.expires > now}

    async def _keep(self, grants: dict[str, Grant], event: e.Event) -> None:
        """The note goes into the event's commit; a failed commit takes both back."""
        log = self._host.log
        log.put_kv(HOST, _NOTE, msgspec.json.encode(grants))
        try:
            await log.append(HOST, event)
        except PorticoError:
            log.put_kv(HOST, _NOTE, msgspec.json.encode(dict(self)))
            raise

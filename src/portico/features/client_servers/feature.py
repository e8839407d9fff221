"""The feature `client_servers`: keeps the MCP servers of clients for the agents of their sessions."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from portico.features.client_servers.agent import TakesServers
from portico.features.client_servers.commands import ClientServer, SetServers
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest
from portico.kernel.events import Record, SessionRemoved
from portico.kernel.feature import Feature, handle, receive

if TYPE_CHECKING:
    from portico.kernel.host import Host

SERVERS = 32
"""Of one session: editors bring a handful, and each may be a process."""
_NAME_CHARS = 64
"""Agents make tool names of it, and models take at most so many characters there."""


class ClientServers(Feature):
    name = "client_servers"
    commands = (SetServers,)

    def __init__(self, host: "Host") -> None:
        super().__init__(host)
        self._servers: dict[str, dict[str, ClientServer]] = {}
        agents: list[object] = list(host.agents.values())
        for agent in agents:
            if isinstance(agent, TakesServers):
                agent.take_servers(self.of)

    def of(self, session: str) -> Mapping[str, ClientServer]:
        """The servers of a session; a sub-agent has those of the session above it."""
        found = self._servers.get(session)
        above = self.host.find(session) if found is None else None
        if above is None or above.summary.parent is None:
            return found or {}
        return self.of(above.summary.parent)

    @handle
    async def _set(self, command: SetServers, caller: c.Caller) -> c.Done:
        session = await self.host.get(command.session)
        servers = named(command.servers)
        if servers == self._servers.get(session.id, {}):
            return c.Done()
        await self.host.audit("session.servers", caller.by, session=session.id, servers=[*servers])
        self._servers[session.id] = servers
        session.runner.refresh()
        return c.Done()

    @receive(SessionRemoved)
    def _removed(self, record: Record) -> None:
        if isinstance(record.event, SessionRemoved):
            self._servers.pop(record.event.session, None)


def named(servers: Sequence[ClientServer]) -> dict[str, ClientServer]:
    """The servers by names that models take: other characters become `-`, and a repeated name gets a number."""
    if len(servers) > SERVERS:
        raise BadRequest(f"A session has at most {SERVERS} servers of clients.", field="servers")
    found: dict[str, ClientServer] = {}
    for each in servers:
        if bool(each.command) == bool(each.url):
            raise BadRequest(f"The server {each.name!r} needs either a command or a url.", field="servers")
        if each.url and not each.url.startswith(("http://", "https://")):
            raise BadRequest(f"The url of {each.name!r} must start with http:// or https://.", field="servers")
        base = re.sub(r"[^A-Za-z0-9_-]+", "-", each.name).strip("-_")[:_NAME_CHARS] or "server"
        name, number = base, 1
        while name in found:
            number += 1
            name = f"{base[: _NAME_CHARS - 4]}-{number}"
        found[name] = each
    return found

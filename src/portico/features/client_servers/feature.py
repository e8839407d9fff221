"""The feature `client_servers`: keeps the MCP servers of clients for the agents of their sessions, and asks the servers
of a session for an editor."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from portico import limits
from portico.features.client_servers.agent import TakesServers
from portico.features.client_servers.commands import AskServer, ClientServer, ServerReply, SetServers
from portico.kernel import commands as c
from portico.kernel.action import Action
from portico.kernel.approval import Request
from portico.kernel.errors import AgentError, BadRequest, Conflict, Forbidden
from portico.kernel.events import Json, Record, SessionRemoved
from portico.kernel.feature import Feature, handle, receive

if TYPE_CHECKING:
    from portico.kernel.host import Host
    from portico.kernel.session import Session

SERVERS = 32
"""Of one session: editors bring a handful, and each may be a process."""
_NAME_CHARS = 64
"""Agents make tool names of it, and models take at most so many characters there."""


class ClientServers(Feature):
    name = "client_servers"
    commands = (SetServers, AskServer)

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

    @handle
    async def _ask_server(self, command: AskServer, caller: c.Caller) -> ServerReply:
        """Tool calls are audited before and after. The scope is their approval; rules can deny them."""
        session = await self.host.get(command.session)
        if not (await self.host.described(session.state.agent)).capabilities.servers:
            raise Conflict(f"The MCP servers of {session.state.agent!r} are its own: nobody else can ask them.")
        async with session.lock:
            servers = await session.runner.servers(caller.client)
        about: Json = {"session": session.id, "server": command.server}
        called = command.operation == "tools/call"
        if called:
            about["tool"] = str(command.params.get("name", ""))
            _check_rules(session, servers.tool_name(command.server, about["tool"]), command.params)
            await self.host.audit("server.asked", caller.by, **about)
        reply: Json = {}
        try:
            async with asyncio.timeout(limits.SERVER_SECONDS):
                reply = await servers.ask_server(command.server, command.operation, command.params)
        except TimeoutError:
            raise AgentError(f"{command.server!r} did not answer within {limits.SERVER_SECONDS:g} seconds.") from None
        finally:
            if called:
                failed = "result" not in reply or bool(reply["result"].get("isError"))
                await self.host.audit("server.answered", caller.by, **about, ok=not failed)
        return ServerReply(reply.get("result"), reply.get("error"))

    @receive(SessionRemoved)
    def _removed(self, record: Record) -> None:
        if isinstance(record.event, SessionRemoved):
            self._servers.pop(record.event.session, None)


def _check_rules(session: "Session", tool: str, params: Json) -> None:
    given = msgspec.json.encode(params.get("arguments") or {}).decode()
    request = Request(Action(), tool, call="", title=tool, input=given, home=session.state.cwd)
    ruling = session.approvals.rule(request)
    if ruling is not None and not ruling.allowed:
        raise Forbidden(f"{tool!r} may not run here ({ruling.rule}).")


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

"""The user's MCP servers as tools of the built-in agent: named after their server, asked for like any other call."""

import asyncio
import functools
import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path

from portico.agents.elicitation import elicit
from portico.agents.loop.tools import PlannedCall
from portico.agents.mcp.client import McpClient, ServerTool
from portico.agents.mcp.server import ConfineServer, RunningServer
from portico.agents.mcp.sign_in import Bearer
from portico.agents.servers import McpServer
from portico.kernel.action import Action
from portico.kernel.call import Call
from portico.kernel.errors import AgentError, NotFound, PorticoError
from portico.kernel.events import Json, ToolSpec
from portico.kernel.turn import Turn

NAME_CHARS = 64
"""Of a tool's name: endpoints refuse more."""
TOOLS_MAX = 100
"""From all servers together: endpoints take 128 in one request, and ours and the session's are among them."""


class ToolRefused(PorticoError):
    """The server ran the tool, and it failed; its output goes to the model."""

    code = "agent_failed"


class ServerTools:
    """The server tools of one conversation. A server that does not answer is left out, with a notice in the turn."""

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        home: Path,
        cwd: str,
        off: Collection[str],
        confine: ConfineServer,
        bearer: Bearer | None = None,
    ) -> None:
        chosen = {name: each for name, each in servers.items() if f"mcp:{name}" not in off}
        self._servers = {name: RunningServer(name, each, home, cwd, confine, bearer) for name, each in chosen.items()}
        self._tools: dict[str, tuple[str, ServerTool]] = {}
        self._clients: dict[str, McpClient] = {}

    async def offer(self, turn: Turn, taken: Collection[str]) -> list[ToolSpec]:
        """The tools of all servers that answer, for this turn."""
        await asyncio.gather(*(self._connect(server, turn) for server in self._servers.values() if not server.resting))
        self._tools.clear()
        specs: list[ToolSpec] = []
        for name, client in self._clients.items():
            client.serving = functools.partial(_serve, turn)
            for tool in await client.tools():
                if tool.hidden:
                    continue
                if len(specs) >= TOOLS_MAX:
                    turn.notice(f"The MCP servers have more than {TOOLS_MAX} tools; the rest is left out.")
                    return specs
                full = tool_name(name, tool.name, {*taken, *self._tools})
                self._tools[full] = (name, tool)
                specs.append(ToolSpec(full, tool.description, tool.schema, tool.title))
        return specs

    async def _connect(self, server: RunningServer, turn: Turn) -> None:
        self._clients.pop(server.name, None)
        try:
            self._clients[server.name] = await server.connect()
        except AgentError as error:
            turn.notice(f"The MCP server {server.name!r} is left out: {error.message}")

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def server_of(self, name: str) -> str:
        """The customization that a tool belongs to."""
        return f"mcp:{self._tools[name][0]}"

    async def plan(self, name: str, arguments: Json) -> PlannedCall:
        if name not in self._tools:
            raise NotFound("tool", name)
        server, tool = self._tools[name]
        content: list[Json] = []
        act = self._acting(server, tool, arguments, content)
        return PlannedCall(Action(), f"{server}: {tool.title}", act, content=content)

    def _acting(
        self, server: str, tool: ServerTool, arguments: Json, content: list[Json]
    ) -> Callable[[Call], Awaitable[str]]:
        async def act(call: Call) -> str:
            with self._servers[server].busy():
                result = await self._clients[server].call(tool.name, arguments, call.output)
            if not result.ok:
                raise ToolRefused(result.output or "The tool failed.")
            content[:] = result.content
            return result.output

        return act

    def view_of(self, name: str) -> str:
        """The resource of its server that shows a tool's calls, where it has one."""
        return self._tools[name][1].view

    async def ask(self, name: str, operation: str, params: Json) -> Json:
        """Return the server's own reply, for a client that asks it directly and not through the model."""
        server = self._servers.get(name)
        if server is None:
            raise NotFound("MCP server", name)
        client = await server.connect()
        with server.busy():
            return await client.ask(operation, params)

    def rest(self) -> None:
        """End the turn: questions of the servers are not answered until the next one."""
        for client in self._clients.values():
            client.serving = None

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))


async def _serve(turn: Turn, method: str, params: Json) -> Json:
    return await elicit(params, turn)


def tool_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """`server__tool`, in the characters that endpoints take; another name where two would be the same."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}__{tool}")
    if len(name) <= NAME_CHARS and name not in taken:
        return name
    mark = hashlib.sha256(f"{server}\n{tool}".encode()).hexdigest()[:8]
    return f"{name[: NAME_CHARS - 9]}_{mark}"

"""The MCP servers that one ACP conversation gets: those of the settings, and that of the session's own tools.

An agent that takes no servers on stdio gets them over HTTP, from the server of tools that it talks to anyway.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from portico.agents.agent import Opening
from portico.agents.mcp.client import Serve
from portico.agents.mcp.relay import Relay
from portico.agents.mcp.server import ConfineServer, RunningServer
from portico.agents.servers import McpServer, session_server
from portico.agents.toolserver import ToolServer
from portico.kernel.errors import AgentError
from portico.kernel.events import Json
from portico.mcp import Toolbox


class Servers:
    """Of one conversation; `offer` before each opening, `close` after it."""

    def __init__(
        self,
        settings: Mapping[str, McpServer],
        home: Path,
        tools: ToolServer,
        opening: Opening,
        path: str | None,
        confine: ConfineServer,
    ) -> None:
        """`path`: the PATH of the agent, which starts those on stdio."""
        self.own_name = session_server(settings)
        self._chosen = {name: each for name, each in settings.items() if f"mcp:{name}" not in opening.off}
        self._home = home
        self._cwd = opening.cwd
        self._path = path
        self._tools = tools
        self._keys: list[str] = []
        self._relays: list[Relay] = []
        self._confine = confine

    async def offer(
        self, own: Toolbox | None, *, http: bool, stdio: bool, serving: Serve, note: Callable[[str], None]
    ) -> list[Json]:
        """The servers in ACP's format. `http`, `stdio`: what the agent supports."""
        await self.close()
        found = list(self._direct(http, stdio, note))
        if http and not stdio:
            relayed = [(name, each) for name, each in self._chosen.items() if each.command]
            found += filter(None, await asyncio.gather(*(self._relay(*each, serving, note) for each in relayed)))
        if own is not None and http:
            found.append(await self._over_http(self.own_name, own))
        return found

    def _direct(self, http: bool, stdio: bool, note: Callable[[str], None]) -> Iterator[Json]:
        for name, server in self._chosen.items():
            if server.command and stdio:
                if not server.installed(self._cwd, self._path):  # most agents would not report it
                    note(f"The MCP server {name!r} is left out: there is no program {server.command[0]!r}.")
                    continue
                env = [{"name": key, "value": value} for key, value in server.env.items()]
                yield {"name": name, "command": server.command[0], "args": server.command[1:], "env": env}
            elif server.url and http:
                headers = [{"name": key, "value": value} for key, value in server.headers.items()]
                yield {"type": "http", "name": name, "url": server.url, "headers": headers}

    async def _relay(self, name: str, settings: McpServer, serving: Serve, note: Callable[[str], None]) -> Json | None:
        relay = Relay(RunningServer(name, settings, self._home, self._cwd, self._confine), serving)
        self._relays.append(relay)
        try:
            await relay.open()
        except AgentError as error:
            note(f"The MCP server {name!r} is left out: {error.message}")
            return None
        return await self._over_http(name, relay)

    async def _over_http(self, name: str, toolbox: Toolbox) -> Json:
        url, key = await self._tools.offer(toolbox)
        self._keys.append(key)
        return {
            "type": "http",
            "name": name,
            "url": url,
            "headers": [{"name": "Authorization", "value": f"Bearer {key}"}],
        }

    async def close(self) -> None:
        """Revoke their keys and end the servers that we started."""
        keys, self._keys = self._keys, []
        relays, self._relays = self._relays, []
        for key in keys:
            self._tools.withdraw(key)
        await asyncio.gather(*(relay.close() for relay in relays))

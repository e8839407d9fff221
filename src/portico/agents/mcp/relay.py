"""A server on stdio as a toolbox that we serve over HTTP, for agents that take no other (Copilot over ACP)."""

from portico.agents.mcp.client import Serve
from portico.agents.mcp.server import RunningServer
from portico.kernel.events import Json, ToolSpec
from portico.kernel.tool import ToolResult


class Relay:
    def __init__(self, server: RunningServer, serving: Serve) -> None:
        """`serving` answers what the server asks."""
        self._server = server
        self._serving = serving
        self._specs: list[ToolSpec] = []

    async def open(self) -> None:
        """Raises AgentError when the server does not answer."""
        client = await self._server.connect()
        client.serving = self._serving
        self._specs = [ToolSpec(each.name, each.description, each.schema, each.title) for each in await client.tools()]

    def specs(self) -> list[ToolSpec]:
        return self._specs

    async def call(self, name: str, arguments: Json) -> ToolResult:
        client = await self._server.connect()
        client.serving = self._serving
        with self._server.busy():
            return await client.call(name, arguments, _unheard)

    async def close(self) -> None:
        await self._server.close()


def _unheard(text: str) -> None:
    """Discard progress: the agent's request has a single answer."""

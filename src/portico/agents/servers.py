"""MCP servers of the settings, for every agent that takes them: the tables `[agents.mcp.NAME]`."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from portico.errors import BadRequest
from portico.events import Json


class McpServer(Struct, forbid_unknown_fields=True, kw_only=True):
    """The table `[agents.mcp.NAME]`: a server of tools for every agent that takes them."""

    command: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}


def customizations(servers: Iterable[str]) -> list[Json]:
    """The servers as something that a session can switch off."""
    return [
        {"type": "mcpServer", "id": f"mcp:{name}", "uri": f"portico-settings:/agents.mcp.{name}", "name": name}
        for name in servers
    ]


def mcp_servers(settings: Json) -> dict[str, McpServer]:
    servers: dict[str, McpServer] = {}
    for name, table in settings.get("mcp", {}).items():
        where = f"agents.mcp.{name}"
        try:
            server = msgspec.convert(table, McpServer)
        except msgspec.ValidationError as error:
            raise BadRequest(f"[{where}]: {error}", field=where) from None
        if bool(server.command) == bool(server.url):
            raise BadRequest(f"[{where}] needs either a command or a url.", field=where)
        servers[name] = server
    return servers

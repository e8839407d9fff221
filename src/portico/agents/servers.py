"""MCP servers of the settings, for every agent that takes them: the tables `[agents.mcp.NAME]`."""

import os
import re
import shutil
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from portico.features.client_servers.commands import ClientServer
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json

TABLE = "mcp"
"""The table below `[agents]` that belongs to no single agent."""
SESSION_SERVER = "portico"
"""The name under which agents know our own server, that of the session's tools."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Agents make tool names of it, and models take only these characters there."""


class McpServer(Struct, forbid_unknown_fields=True, kw_only=True):
    """The table `[agents.mcp.NAME]`: a server of tools for every agent that takes them."""

    command: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}

    def installed(self, cwd: str, path: str | None) -> bool:
        """Whether the program of its command is there, for one who starts it in this folder with this PATH."""
        program = self.command[0]
        place = os.path.join(cwd, program) if os.sep in program else program
        return shutil.which(place, path=self.env.get("PATH", path)) is not None


def customizations(servers: Iterable[str]) -> list[Json]:
    """The servers as something that a session can switch off."""
    return [
        {"type": "mcpServer", "id": f"mcp:{name}", "uri": f"portico-settings:/agents.mcp.{name}", "name": name}
        for name in servers
    ]


def session_server(taken: Iterable[str]) -> str:
    """The name of our own server beside the user's: one of theirs may be called like it."""
    names = set(taken)
    name, number = SESSION_SERVER, 1
    while name in names:
        number += 1
        name = f"{SESSION_SERVER}-session" if number == 2 else f"{SESSION_SERVER}-session-{number}"
    return name


def with_brought(own: Mapping[str, McpServer], brought: Mapping[str, ClientServer]) -> dict[str, McpServer]:
    """The servers of the settings, and those that clients brought for a session under other names."""
    more = {
        name: McpServer(command=list(each.command), env=dict(each.env), url=each.url, headers=dict(each.headers))
        for name, each in brought.items()
    }
    return {**more, **own}


def mcp_servers(settings: Json) -> dict[str, McpServer]:
    servers: dict[str, McpServer] = {}
    tables = settings.get(TABLE, {})
    if not isinstance(tables, dict):
        raise BadRequest("[agents.mcp] holds one table per server, such as [agents.mcp.tickets].", field="agents.mcp")
    for name, table in tables.items():
        where = f"agents.mcp.{name}"
        if not _NAME.fullmatch(name):
            raise BadRequest(f"[{where}]: a name has letters, digits, '-' and '_', at most 64.", field=where)
        try:
            server = msgspec.convert(table, McpServer)
        except msgspec.ValidationError as error:
            raise BadRequest(f"[{where}]: {error}", field=where) from None
        if bool(server.command) == bool(server.url):
            raise BadRequest(f"[{where}] needs either a command or a url.", field=where)
        servers[name] = server
    return servers

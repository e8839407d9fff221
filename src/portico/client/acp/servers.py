"""The MCP servers of an editor, as the host takes them. Pure."""

import logging
from collections.abc import Sequence

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from portico.features.client_servers.commands import ClientServer

EditorServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

logger = logging.getLogger("portico.acp")


def client_servers(servers: Sequence[EditorServer]) -> list[ClientServer]:
    """Programs and HTTP servers. Others are left out: the agent does not announce that it takes them."""
    found: list[ClientServer] = []
    for each in servers:
        match each:
            case McpServerStdio():
                env = {variable.name: variable.value for variable in each.env}
                found.append(ClientServer(name=each.name, command=[each.command, *each.args], env=env))
            case HttpMcpServer():
                headers = {header.name: header.value for header in each.headers}
                found.append(ClientServer(name=each.name, url=str(each.url), headers=headers))
            case _:
                logger.warning("the MCP server %r is left out: only stdio and http are supported", each.name)
    return found

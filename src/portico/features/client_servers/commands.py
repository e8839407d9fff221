"""The command that gives a session the MCP servers of a client."""

from typing import Literal

from msgspec import Struct

from portico.kernel.commands import AboutSession, Done, Http, NoLock, NoTool, register
from portico.kernel.events import Json


class ServerReply(Struct):
    """One of the two, as the server returned it."""

    result: Json | None = None
    error: Json | None = None


class ClientServer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An MCP server: a program on standard input and output, or an address."""

    name: str
    command: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}


class SetServers(AboutSession, frozen=True, tag="session.servers"):
    """Give a session the MCP servers of a client, from the next turn on. They replace the earlier ones."""

    scope = "terminal"  # its programs run without an approval
    lock = "session"
    gives = Done
    http = Http("PUT", "/v1/sessions/{id}/servers")
    secret = True
    as_tool = NoTool("It starts programs without an approval.")

    servers: list[ClientServer]
    """Each has a `name`, and either `command` with `env`, or `url` with `headers`."""


ServerOperation = Literal["tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"]
"""What may be asked of an MCP server from outside of a turn, in the protocol's own words."""


class AskServer(AboutSession, frozen=True, tag="server.ask"):
    """Ask an MCP server of a session directly, as its own page in an editor does. No approval is requested."""

    scope = "approve"
    lock = NoLock("A server may take long to answer, and nothing is written from what was read before.")
    gives = ServerReply
    errors = ("not_found", "conflict", "agent_failed")

    server: str
    operation: ServerOperation = "tools/list"
    params: Json = {}


register(SetServers, AskServer)

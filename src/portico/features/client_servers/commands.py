"""The command that gives a session the MCP servers of a client."""

from msgspec import Struct

from portico.kernel.commands import AboutSession, Done, Http, NoTool, register


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


register(SetServers)

"""MCP's own messages on this socket (`mcp://`): a page that an editor shows for a tool asks the server of that tool.

Only where the host itself is the server's client, and only for clients that can show such pages. Lists and resources
are the server's; whether a tool may be called is decided by the host.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, get_args

from portico.doors.ahp.act.command import Method, text
from portico.doors.ahp.wire import rpc
from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.rpc import WireError
from portico.features.client_servers.commands import AskServer, ServerOperation, ServerReply
from portico.kernel.customization import server_at, server_channel
from portico.kernel.errors import NotFound
from portico.kernel.state import SessionState

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

SERVED: Json = {"capabilities": {"serverTools": {}, "serverResources": {}}}
"""No logs, no sampling, and no notifications of changed lists."""


def shows_apps(params: Json) -> bool:
    """Whether the client that sends `initialize` can show pages of MCP servers."""
    said = params.get("capabilities")
    return isinstance(said, dict) and isinstance(said.get("mcpApps"), dict)


def with_channels(connection: "EditorClient", state: SessionState, shown: list[Json]) -> list[Json]:
    """A session's customizations, with the channel of each server that is ready."""
    info = connection.broker.agents.get(state.agent)
    if not connection.shows_apps or info is None or not info.capabilities.servers:
        return shown
    offered = {each["id"] for each in info.customizations}
    return [
        {**each, "channel": server_channel(state.id, each["id"]), "mcpApp": SERVED}
        if each["id"] in offered and each.get("type") == "mcpServer" and each["state"].get("kind") == "ready"
        else each
        for each in shown
    ]


def now(connection: "EditorClient", state: SessionState) -> list[Outgoing]:
    """The same as an action: the server state that is sent to all clients removes the channel."""
    before = connection.broker.customizations(state)
    shown = with_channels(connection, state, before)
    return [Outgoing("customizationsChanged", {"customizations": shown})] if shown is not before else []


def _asking(operation: ServerOperation) -> Callable[["EditorClient", Json], Awaitable[Json]]:
    async def ask(connection: "EditorClient", params: Json) -> Json:
        if not connection.shows_apps:
            raise WireError(rpc.METHOD_NOT_FOUND, "Say 'capabilities.mcpApps' in 'initialize' first.")
        channel = text(params, "channel")
        found = server_at(channel)
        if found is None or connection.view.find(found[0]) is None:
            raise NotFound("channel", channel)
        asked = {key: value for key, value in params.items() if key != "channel"}
        command = AskServer(session=found[0], server=found[1], operation=operation, params=asked)
        reply: ServerReply = await connection.do(command)
        if reply.error is not None:
            raise WireError(_code(reply.error), str(reply.error.get("message", "refused")), reply.error.get("data"))
        return reply.result or {}

    return ask


def _code(error: Json) -> int:
    code = error.get("code")
    return code if isinstance(code, int) else rpc.INTERNAL


COMMANDS = {
    operation: Method(_asking(operation), AskServer, beside=True, seed=False) for operation in get_args(ServerOperation)
}

"""All commands of both dialects, and the way to one."""

from typing import TYPE_CHECKING, Any

from portico.doors.ahp.act import (
    automations,
    changes,
    completions,
    logs,
    relay,
    resources,
    session_commands,
    session_config,
    sign_in,
    terminal_commands,
    watches,
)
from portico.doors.ahp.act.command import Method
from portico.doors.ahp.connection import lifecycle
from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire import rpc
from portico.doors.ahp.wire.rpc import Incoming, WireError

if TYPE_CHECKING:
    from portico.doors.ahp.connection.connection import Connection

COMMANDS: dict[str, Method] = {
    **lifecycle.COMMANDS,
    **session_commands.COMMANDS,
    **session_config.COMMANDS,
    **completions.COMMANDS,
    **sign_in.COMMANDS,
    **resources.COMMANDS,
    **watches.COMMANDS,
    **terminal_commands.COMMANDS,
    **changes.COMMANDS,
    **automations.COMMANDS,
    **relay.COMMANDS,
}

_BEFORE = ("initialize", "reconnect", "ping")


def find(method: str) -> Method | None:
    return COMMANDS.get(method)


async def perform(connection: "Connection", incoming: Incoming) -> Any:
    command = COMMANDS.get(incoming.method)
    if command is None or (connection.ready and not command.known(connection.dialect)):
        raise WireError(rpc.METHOD_NOT_FOUND, f"There is no method {incoming.method!r}.")
    if not connection.ready and incoming.method not in _BEFORE:
        raise WireError(rpc.INVALID_REQUEST, "Initialize first.")
    if command.needs is not None:
        connection.view.require(command.needs)
    return await command.run(connection, incoming.params)


def forget(connection: "Connection", target: Target) -> None:
    """A subscription has ended: what ran only for it ends, too."""
    if target.kind == "watch":
        watches.forget(connection, target)
    elif target.kind == "logs":
        logs.forget(connection, target)

"""`terminalCommandPrefix` (0.5.2): a message that begins with it is a command line, run without the agent."""

from typing import TYPE_CHECKING

from portico.doors.ahp.wire.record import Json
from portico.kernel.commands import RunCommand

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

PREFIX = "!"


def offered(connection: "EditorClient") -> Json:
    """Capability for `initialize`, only for clients that may use a terminal; for others the prefix is plain text."""
    return {"terminalCommandPrefix": PREFIX} if _knows(connection) else {}


def line_of(connection: "EditorClient", text: str) -> str | None:
    """The command line of a message; a prefix alone is sent to the agent."""
    line = text.removeprefix(PREFIX).strip() if text.startswith(PREFIX) else ""
    return line if line and _knows(connection) else None


def _knows(connection: "EditorClient") -> bool:
    return connection.dialect.since("0.5.2") and connection.view.may(RunCommand)

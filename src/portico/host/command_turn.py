"""Turns that run a command line in place of the agent. Who runs it is a room beside the core (`terminals`)."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from portico.errors import BadRequest
from portico.events import Message

if TYPE_CHECKING:
    from portico.host.turn import Turn

COMMAND_LINE = "commandLine"
"""In a message's `meta`: what is run."""

RunCommandLine = Callable[["Turn", str], Awaitable[None]]


def command_line(message: Message) -> str | None:
    """What the message runs, where it is no message to the agent."""
    found = message.meta.get(COMMAND_LINE)
    return found if isinstance(found, str) else None


async def no_commands(turn: "Turn", line: str) -> None:
    raise BadRequest("This host runs no commands: it has no terminals.")

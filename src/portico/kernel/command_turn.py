"""Turns that run a command line instead of the agent."""

from portico.kernel.events import Message

COMMAND_LINE = "commandLine"
"""The key in a message's `meta` that contains the command line."""


def command_line(message: Message) -> str | None:
    """Return the command line that the message runs; None: it is a message to the agent."""
    found = message.meta.get(COMMAND_LINE)
    return found if isinstance(found, str) else None

"""All commands as one union, the table of them, and their bytes."""

from functools import cache
from typing import get_args

import msgspec

from portico.commands.admin import AdminCommand
from portico.commands.automation import AutomationCommand
from portico.commands.client import ClientCommand
from portico.commands.command import Command, check_table
from portico.commands.job import JobCommand
from portico.commands.message import MessageCommand
from portico.commands.notice import NoticeCommand
from portico.commands.person import PersonCommand
from portico.commands.project import ProjectCommand
from portico.commands.session import SessionCommand
from portico.commands.terminal import TerminalCommand
from portico.commands.workspace import WorkspaceCommand

AnyCommand = (
    SessionCommand
    | MessageCommand
    | PersonCommand
    | ClientCommand
    | TerminalCommand
    | JobCommand
    | WorkspaceCommand
    | ProjectCommand
    | AdminCommand
    | AutomationCommand
    | NoticeCommand
)

COMMANDS: dict[str, type[Command]] = check_table(get_args(AnyCommand))
"""By their tags."""


def encode_command(command: Command) -> bytes:
    return msgspec.json.encode(command)


def decode_command(data: bytes) -> AnyCommand:
    """Raises msgspec.ValidationError for what is no command of ours."""
    return _decoder().decode(data)


@cache
def _decoder() -> msgspec.json.Decoder[AnyCommand]:
    return msgspec.json.Decoder(AnyCommand)

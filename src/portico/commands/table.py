"""All commands as one union, the table of them, and their bytes."""

from functools import cache
from typing import get_args

import msgspec

from portico.commands import (
    admin,
    automation,
    client,
    job,
    message,
    notice,
    person,
    project,
    session,
    terminal,
    workspace,
)
from portico.commands.command import Command, check_table
from portico.events import union_of

JobCommand = union_of(Command, job)
AutomationCommand = union_of(Command, automation)
ProjectCommand = union_of(Command, project)
AnyCommand = union_of(
    Command, session, message, person, client, terminal, job, workspace, project, admin, automation, notice
)

COMMANDS: dict[str, type[Command]] = check_table(get_args(AnyCommand))
"""By their tags."""


def encode_command(command: Command) -> bytes:
    return msgspec.json.encode(command)


def decode_command(data: bytes) -> Command:
    """Raises msgspec.ValidationError for what is no command of ours."""
    return _decoder().decode(data)


@cache
def _decoder() -> msgspec.json.Decoder[Command]:
    return msgspec.json.Decoder(AnyCommand)

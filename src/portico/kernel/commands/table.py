"""The table of all commands, and their bytes."""

from functools import cache
from typing import Any, Union, get_args

import msgspec

from portico.kernel.commands import client, message, person, session
from portico.kernel.commands.command import Command, check_table
from portico.kernel.events import union_of

COMMANDS: dict[str, type[Command]] = check_table(get_args(union_of(Command, session, message, person, client)))
"""By their tags, with those that features have registered."""


def register(*kinds: type[Command]) -> None:
    """Add the commands of a feature to the table."""
    for tag, kind in check_table(kinds).items():
        if COMMANDS.setdefault(tag, kind) is not kind:
            raise TypeError(f"{kind.__name__} and {COMMANDS[tag].__name__} are both called {tag!r}.")
    _decoder.cache_clear()
    answer_types.cache_clear()


def encode_command(command: Command) -> bytes:
    return msgspec.json.encode(command)


def decode_command(data: bytes) -> Command:
    """Raises msgspec.ValidationError for what is no command of ours."""
    return _decoder().decode(data)


@cache
def _decoder() -> msgspec.json.Decoder[Command]:
    return msgspec.json.Decoder(Union[tuple(COMMANDS.values())])  # noqa: UP007


@cache
def answer_types() -> dict[str, Any]:
    """The shapes of all answers, by name."""
    given = [each.gives if isinstance(each.gives, tuple) else (each.gives,) for each in COMMANDS.values()]
    return {kind.__name__: kind for kinds in given for kind in kinds if kind is not None}

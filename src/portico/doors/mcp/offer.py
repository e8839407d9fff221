"""The definition of a tool: the required permission, the arguments and the handler."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from portico.commands import Command, Readable


class Nothing(Struct, forbid_unknown_fields=True):
    pass


class ToolOffer(Struct, frozen=True):
    needs: Readable | type[Command]
    body: type[Struct]
    run: Callable[[Any], Awaitable[Any]]
    description: str
    subject: str = ""
    """The argument for which `id` is an alias."""

"""What a tool is: what a caller must be allowed, what it takes and who does it."""

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
    """The argument that `id` stands for."""

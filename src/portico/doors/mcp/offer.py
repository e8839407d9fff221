"""What a tool is: the scope that a caller needs, what it takes and who does it."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from portico.doors.route import Scope


class Nothing(Struct, forbid_unknown_fields=True):
    pass


class ToolOffer(Struct, frozen=True):
    scope: Scope
    body: type[Struct]
    run: Callable[[Any], Awaitable[Any]]
    description: str
    subject: str = ""
    """The argument that `id` stands for."""

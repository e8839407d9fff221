"""Tools that the host provides to sessions. Features register them."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from portico.kernel.events import ErrorInfo, Json, ToolSpec

if TYPE_CHECKING:
    from portico.kernel.call import Call
    from portico.kernel.state import SessionState


class ToolResult(Struct, frozen=True, omit_defaults=True):
    ok: bool
    output: str = ""
    error: ErrorInfo | None = None
    content: list[Json] = []


class Tool(Struct, frozen=True):
    spec: ToolSpec
    run: Callable[[Json, "Call"], Awaitable[ToolResult]]
    """Gets the arguments and the call, to report partial output or request approval. Before a side effect without
    approval it awaits `call.turn.settled()`, so that the log contains the intent after a crash."""
    offered: Callable[["SessionState"], bool] = lambda state: True
    """Returns whether a session has the tool."""

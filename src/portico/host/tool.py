"""Tools that the host provides to sessions. Features register them."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from portico import limits
from portico.events import ErrorInfo, Json, ToolSpec

if TYPE_CHECKING:
    from portico.host.call import Call
    from portico.host.state import SessionState


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


def grow(output: str, left_out: int, more: str) -> tuple[str, int]:
    """Append a piece to live output. Long output is cut to its head and tail with a note on the omitted characters in
    between, so that a program that prints megabytes does not cost quadratic time."""
    keep = limits.TOOL_OUTPUT_CHARS
    grown = output + more
    if len(grown) <= 4 * keep:
        return grown, left_out
    rest = grown[keep + len(missing(left_out)) :]
    left_out += len(rest) - keep
    return f"{grown[:keep]}{missing(left_out)}{rest[-keep:]}", left_out


def cut(text: str, left_out: int = 0) -> str:
    """Cut output that is too long for an event to head and tail. `left_out`: characters that `grow` has omitted."""
    if len(text) <= limits.TOOL_OUTPUT_CHARS:
        return text
    half = limits.TOOL_OUTPUT_CHARS // 2
    length = len(text) - len(missing(left_out)) + left_out
    return f"{text[:half]}{missing(length - 2 * half)}{text[-half:]}"


def missing(characters: int) -> str:
    return f"\n... {characters} characters left out ...\n" if characters > 0 else ""


def pieces(text: str) -> list[str]:
    """Split a text into deltas that fit; an empty text gives none."""
    size = limits.DELTA_BYTES
    return [text] if 0 < len(text) <= size else [text[at : at + size] for at in range(0, len(text), size)]

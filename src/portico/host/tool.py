"""Tools that the host itself gives to sessions. What they do is up to whoever registers them."""

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
    """Gets the arguments and the call, through which it may report partial output or ask for approval. Before an
    effect that nobody was asked about it awaits `call.turn.settled()`: a crash must find the intent in the log."""
    offered: Callable[["SessionState"], bool] = lambda state: True
    """Which sessions have it."""


def grow(output: str, left_out: int, more: str) -> tuple[str, int]:
    """Live output with another piece. It is whole while it is short; then it is its beginning and its end around a word
    on what is missing: a program that prints megabytes must not cost their square."""
    keep = limits.TOOL_OUTPUT_CHARS
    grown = output + more
    if len(grown) <= 4 * keep:
        return grown, left_out
    rest = grown[keep + len(missing(left_out)) :]
    left_out += len(rest) - keep
    return f"{grown[:keep]}{missing(left_out)}{rest[-keep:]}", left_out


def cut(text: str, left_out: int = 0) -> str:
    """Head and tail of an output that is too long for an event. `left_out`: what `grow` has left out of it before."""
    if len(text) <= limits.TOOL_OUTPUT_CHARS:
        return text
    half = limits.TOOL_OUTPUT_CHARS // 2
    length = len(text) - len(missing(left_out)) + left_out
    return f"{text[:half]}{missing(length - 2 * half)}{text[-half:]}"


def missing(characters: int) -> str:
    return f"\n... {characters} characters left out ...\n" if characters > 0 else ""


def pieces(text: str) -> list[str]:
    """A long text as deltas that fit; an empty one gives none."""
    size = limits.DELTA_BYTES
    return [text] if 0 < len(text) <= size else [text[at : at + size] for at in range(0, len(text), size)]

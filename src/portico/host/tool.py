"""Tools that the host itself gives to sessions. What they do is up to whoever registers them."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import Struct

from portico import limits
from portico.events import ErrorInfo, Json, ToolSpec

if TYPE_CHECKING:
    from portico.host.call import Call


class ToolResult(Struct, frozen=True, omit_defaults=True):
    ok: bool
    output: str = ""
    error: ErrorInfo | None = None
    content: list[Json] = []


@dataclass(frozen=True)
class Tool:
    spec: ToolSpec
    run: Callable[[Json, "Call"], Awaitable[ToolResult]]
    """Gets the arguments and the call, through which it may report partial output or ask for approval. Before an
    effect that nobody was asked about it awaits `call.turn.settled()`: a crash must find the intent in the log."""


def cut(text: str) -> str:
    """Head and tail of an output that is too long for an event, with a word on what is missing."""
    if len(text) <= limits.TOOL_OUTPUT_CHARS:
        return text
    half = limits.TOOL_OUTPUT_CHARS // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def pieces(text: str) -> Iterator[str]:
    """A long text as deltas that fit; an empty one gives none."""
    for start in range(0, len(text), limits.DELTA_BYTES):
        yield text[start : start + limits.DELTA_BYTES]

"""Bytes of chat completions: frames of a stream, whole answers, errors."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One response. `body` is sent piece by piece."""

    body: Sequence[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    drops: bool = False
    """The connection is closed in the middle of the body."""
    gap: float = 0.0
    """Seconds between two pieces."""


def frame(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    head = {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1"}
    return frame({**head, "choices": [choice], **more})


DONE = b"data: [DONE]\n\n"


def stream(*frames: bytes, **how: Any) -> Answer:
    return Answer([b"".join(frames)], **how)


def says(text: str, **delta: Any) -> Answer:
    return stream(chunk({"role": "assistant", "content": text, **delta}), chunk(finish="stop"), DONE)


def fragment(
    name: str | None, arguments: Any, *, ident: str | None = "call_1", index: int | None = 0, **more: Any
) -> Json:
    """One entry of `tool_calls`."""
    made: Json = {"function": {"arguments": arguments} | ({"name": name} if name is not None else {})}
    made |= {"id": ident, "type": "function"} if ident is not None else {}
    return made | ({"index": index} if index is not None else {}) | more


def calls(*fragments: Json, content: Any = None, finish: str = "tool_calls", **delta: Any) -> Answer:
    """A whole answer with these calls in one delta."""
    made = {"role": "assistant", "content": content, "tool_calls": list(fragments), **delta}
    return stream(chunk(made), chunk(finish=finish), DONE)


def refuses(status: int, message: str, headers: dict[str, str] | None = None, **error: str) -> Answer:
    body = {"error": {"message": message, "type": "invalid_request_error", **error}}
    return Answer([json.dumps(body).encode()], status, {"Content-Type": "application/json", **(headers or {})})

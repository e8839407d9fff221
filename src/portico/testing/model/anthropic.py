"""`POST /v1/messages` and `/v1/messages/count_tokens`."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from portico.testing.model.answer import Frame, ModelAnswer
from portico.testing.model.request import ModelRequest, RequestMessage, RequestTool, Role, join
from portico.testing.model.script import Error, Finish

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_FINISH: dict[Finish, str] = {
    "stop": "end_turn",
    "tools": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class _Block(Struct):
    type: str = "text"
    text: str | None = None
    id: str | None = None
    content: str | list["_Block"] | dict[str, Any] | None = None


class _Message(Struct):
    role: str
    content: str | list[_Block]


class _Tool(Struct):
    name: str | None = None
    input_schema: dict[str, Any] | None = None


class _OutputFormat(Struct):
    schema: dict[str, Any] | None = None


class _OutputConfig(Struct):
    format: _OutputFormat | None = None


class _Body(Struct):
    messages: list[_Message]
    model: str = ""
    tools: list[_Tool] | None = None
    stream: bool | None = None
    output_config: _OutputConfig | None = None
    output_format: _OutputFormat | None = None


_decode = msgspec.json.Decoder(_Body).decode


def parse(body: bytes, target: str) -> ModelRequest:
    asked = _decode(body)
    shape = asked.output_format or (asked.output_config and asked.output_config.format)
    return ModelRequest(
        format="anthropic",
        model=asked.model,
        messages=[part for message in asked.messages for part in _messages(message)],
        tools=[
            RequestTool(name=tool.name, parameters=tool.input_schema or {}) for tool in asked.tools or () if tool.name
        ],
        stream=bool(asked.stream),
        schema=shape.schema if shape else None,
    )


def _messages(message: _Message) -> Iterator[RequestMessage]:
    """Split a message. Tool results are part of user messages, sometimes together with the next text of the user."""
    role = _ROLES.get(message.role, "system")
    if isinstance(message.content, str):
        yield RequestMessage(role=role, text=message.content)
        return
    for block in message.content:
        if block.type.endswith("tool_result"):
            yield RequestMessage(role="tool", text=_text(block.content))
    text = join([block.text for block in message.content])
    calls = [block.id or "" for block in message.content if block.type == "tool_use"]
    if text or role == "assistant":
        yield RequestMessage(role=role, text=text, calls=calls)


def _text(content: str | list[_Block] | dict[str, Any] | None) -> str:
    if isinstance(content, list):
        return join([block.text for block in content])
    return content if isinstance(content, str) else ""


def whole(answer: ModelAnswer) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if answer.reason:
        content.append({"type": "thinking", "thinking": "".join(answer.reasons()), "signature": _signature(answer)})
    if answer.text:
        content.append({"type": "text", "text": "".join(answer.says())})
    for call in answer.calls:
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": call.mapping})
    usage = {**_input_usage(answer), "output_tokens": answer.usage.output}
    return {**_message(answer, content), "stop_reason": _FINISH[answer.finish], "usage": usage}


def stream(answer: ModelAnswer) -> Iterator[Frame]:
    opened = {**_message(answer, []), "stop_reason": None, "usage": {**_input_usage(answer), "output_tokens": 1}}
    yield _frame({"type": "message_start", "message": opened})
    yield _frame({"type": "ping"})
    for index, (block, deltas) in enumerate(_blocks(answer)):
        yield _frame({"type": "content_block_start", "index": index, "content_block": block})
        for delta in deltas:
            counts = delta["type"] != "signature_delta"
            yield _frame({"type": "content_block_delta", "index": index, "delta": delta}, counts)
        yield _frame({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": _FINISH[answer.finish], "stop_sequence": None}
    usage = {**_input_usage(answer), "output_tokens": answer.usage.output}
    yield _frame({"type": "message_delta", "delta": ended, "usage": usage})
    yield _frame({"type": "message_stop"})


def _blocks(answer: ModelAnswer) -> Iterator[tuple[dict[str, Any], Iterator[dict[str, Any]]]]:
    if answer.reason:
        yield {"type": "thinking", "thinking": "", "signature": ""}, _thinking(answer)
    if answer.text:
        yield {"type": "text", "text": ""}, ({"type": "text_delta", "text": piece} for piece in answer.says())
    for call in answer.calls:
        pieces = call.pieces() if call.input else iter(())
        deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, deltas


def _thinking(answer: ModelAnswer) -> Iterator[dict[str, Any]]:
    for piece in answer.reasons():
        yield {"type": "thinking_delta", "thinking": piece}
    yield {"type": "signature_delta", "signature": _signature(answer)}


def error(error: Error) -> dict[str, Any]:
    kind = error.code or _TYPES.get(error.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}}


def stream_error(answer: ModelAnswer, failure: Error) -> bytes:
    return _frame(error(failure)).data


def count_tokens(request: ModelRequest) -> dict[str, Any]:
    return {"input_tokens": request.tokens}


def _message(answer: ModelAnswer, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.request.model,
        "content": content,
        "stop_sequence": None,
    }


def _input_usage(answer: ModelAnswer) -> dict[str, Any]:
    """Here, unlike elsewhere, what came from the cache is not a part of the input."""
    return {
        "input_tokens": max(0, answer.usage.input - answer.usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": answer.usage.cached,
    }


def _signature(answer: ModelAnswer) -> str:
    return f"scripted-{answer.id}"


def _frame(event: dict[str, Any], delta: bool = False) -> Frame:
    return Frame(b"event: " + event["type"].encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n", delta)

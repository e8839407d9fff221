"""`POST /v1/chat/completions`."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from portico.testing.model.answer import Frame, ModelAnswer, ToolCall
from portico.testing.model.request import ModelRequest, RequestMessage, RequestTool, Role, join
from portico.testing.model.script import Error, Finish, ScriptedUsage

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}
_FINISH: dict[Finish, str] = {
    "stop": "stop",
    "tools": "tool_calls",
    "length": "length",
    "refusal": "content_filter",
}
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class _Part(Struct):
    text: str | None = None


class _Call(Struct):
    id: str | None = None


class _Message(Struct):
    role: str
    content: str | list[_Part | str] | None = None
    tool_calls: list[_Call] | None = None


class _Function(Struct):
    name: str
    parameters: dict[str, Any] | None = None


class _Tool(Struct):
    function: _Function | None = None


class _JsonSchema(Struct):
    schema: dict[str, Any] | None = None


class _ResponseFormat(Struct):
    json_schema: _JsonSchema | None = None


class _StreamOptions(Struct):
    include_usage: bool = False


class _Body(Struct):
    messages: list[_Message]
    model: str = ""
    tools: list[_Tool] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    response_format: _ResponseFormat | None = None


_decode = msgspec.json.Decoder(_Body).decode


def parse(body: bytes, target: str) -> ModelRequest:
    asked = _decode(body)
    shape = asked.response_format and asked.response_format.json_schema
    return ModelRequest(
        format="openai-chat",
        model=asked.model,
        messages=[_message(message) for message in asked.messages],
        tools=[
            RequestTool(name=tool.function.name, parameters=tool.function.parameters or {})
            for tool in asked.tools or ()
            if tool.function
        ],
        stream=bool(asked.stream),
        schema=shape.schema if shape else None,
        wants_usage=bool(asked.stream_options and asked.stream_options.include_usage),
    )


def _message(message: _Message) -> RequestMessage:
    content = message.content
    text = content if isinstance(content, str) else join([p if isinstance(p, str) else p.text for p in content or ()])
    calls = [call.id or "" for call in message.tool_calls or ()]
    return RequestMessage(role=_ROLES.get(message.role, "system"), text=text, calls=calls)


def whole(answer: ModelAnswer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(answer.says()) or None}
    if answer.reason:
        message["reasoning_content"] = "".join(answer.reasons())
    if answer.calls:
        message["tool_calls"] = [_call(call, call.arguments) for call in answer.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[answer.finish]}
    return {**_envelope(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer.usage)}


def stream(answer: ModelAnswer) -> Iterator[Frame]:
    envelope = _envelope(answer, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data({**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield Frame(chunk({"role": "assistant", "content": ""}))
    for piece in answer.reasons():
        yield Frame(chunk({"reasoning_content": piece}), delta=True)
    for piece in answer.says():
        yield Frame(chunk({"content": piece}), delta=True)
    for index, call in enumerate(answer.calls):
        yield Frame(chunk({"tool_calls": [{"index": index, **_call(call, "")}]}))
        for piece in call.pieces():
            part = {"index": index, "function": {"arguments": piece}}
            yield Frame(chunk({"tool_calls": [part]}), delta=True)
    yield Frame(chunk({}, _FINISH[answer.finish]))
    if answer.request.wants_usage:
        yield Frame(_data({**envelope, "choices": [], "usage": _usage(answer.usage)}))
    yield Frame(b"data: [DONE]\n\n")


def error(error: Error) -> dict[str, Any]:
    kind = _TYPES.get(error.status, "server_error" if error.status >= 500 else "invalid_request_error")
    return {"error": {"message": error.message, "type": kind, "param": None, "code": error.code or None}}


def stream_error(answer: ModelAnswer, failure: Error) -> bytes:
    return _data(error(failure))


def _envelope(answer: ModelAnswer, kind: Literal["chat.completion", "chat.completion.chunk"]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": kind,
        "created": answer.created,
        "model": answer.request.model,
    }


def _call(call: ToolCall, arguments: str) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(usage: ScriptedUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        **({"cost": usage.cost} if usage.cost else {}),
    }


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"

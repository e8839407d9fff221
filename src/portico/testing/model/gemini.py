"""`POST /v1beta/models/M:generateContent`, `:streamGenerateContent` and `:countTokens`."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct

from portico.testing.model.answer import Frame, ModelAnswer
from portico.testing.model.request import ModelRequest, RequestMessage, RequestTool, join
from portico.testing.model.script import Error, Finish

_FINISH: dict[Finish, str] = {"stop": "STOP", "tools": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class _Call(Struct):
    id: str | None = None


class _Response(Struct):
    response: Any = None


class _Part(Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    function_call: _Call | None = None
    function_response: _Response | None = None


class _Content(Struct):
    role: str = "user"
    parts: list[_Part] = []


class _Declaration(Struct, rename="camel"):
    name: str
    parameters: dict[str, Any] | None = None
    parameters_json_schema: dict[str, Any] | None = None


class _Tool(Struct, rename="camel"):
    function_declarations: list[_Declaration] | None = None


class _Config(Struct, rename="camel"):
    response_schema: dict[str, Any] | None = None
    response_json_schema: dict[str, Any] | None = None


class _Body(Struct, rename="camel"):
    contents: list[_Content]
    tools: list[_Tool] | None = None
    generation_config: _Config | None = None


class _Counted(Struct, rename="camel"):
    """`countTokens` takes the contents, or a whole request."""

    contents: list[_Content] | None = None
    generate_content_request: _Body | None = None


_decode = msgspec.json.Decoder(_Body).decode
_decode_counted = msgspec.json.Decoder(_Counted).decode


def parse(body: bytes, target: str) -> ModelRequest:
    """`target` is `MODEL:VERB`, with `?alt=sse` if the client wants events and not one long JSON array."""
    name, _, query = target.partition("?")
    model, _, verb = name.rpartition(":")
    asked = _decode(body)
    config = asked.generation_config or _Config()
    declarations = [found for tool in asked.tools or () for found in tool.function_declarations or ()]
    return ModelRequest(
        format="gemini",
        model=model,
        messages=_conversation(asked.contents),
        tools=[
            RequestTool(name=found.name, parameters=found.parameters_json_schema or found.parameters or {})
            for found in declarations
        ],
        stream=verb == "streamGenerateContent",
        schema=config.response_json_schema or config.response_schema,
        media="text/event-stream" if "alt=sse" in query.split("&") else "application/json",
    )


def _conversation(contents: list[_Content]) -> list[RequestMessage]:
    return [message for content in contents for message in _messages(content)]


def _messages(content: _Content) -> Iterator[RequestMessage]:
    text = join([part.text for part in content.parts if not part.thought])
    if content.role == "model":
        calls = [part.function_call.id or "" for part in content.parts if part.function_call]
        yield RequestMessage(role="assistant", text=text, calls=calls)
        return
    for part in content.parts:
        if part.function_response:
            yield RequestMessage(role="tool", text=_result(part.function_response.response))
    if text:
        yield RequestMessage(role="user", text=text)


def _result(value: Any) -> str:
    output = value.get("output") if isinstance(value, dict) else None
    return output if isinstance(output, str) else msgspec.json.encode(value).decode()


def whole(answer: ModelAnswer) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if answer.reason:
        parts.append({"text": "".join(answer.reasons()), "thought": True})
    if answer.text:
        parts.append({"text": "".join(answer.says())})
    return _chunk(answer, [*parts, *_calls(answer)], _FINISH[answer.finish])


def stream(answer: ModelAnswer) -> Iterator[Frame]:
    if answer.request.media == "text/event-stream":
        yield from (Frame(_data(chunk), delta) for chunk, delta in _chunks(answer))
        return
    separator = b"["
    for chunk, delta in _chunks(answer):
        yield Frame(separator + chunk, delta)
        separator = b",\r\n"
    yield Frame(b"]")


def _chunks(answer: ModelAnswer) -> Iterator[Frame]:
    for part in chain(_thoughts(answer), _texts(answer), _calls(answer)):
        yield Frame(msgspec.json.encode(_chunk(answer, [part])), delta=True)
    yield Frame(msgspec.json.encode(_chunk(answer, [{"text": ""}], _FINISH[answer.finish])))


def _thoughts(answer: ModelAnswer) -> Iterator[dict[str, Any]]:
    return ({"text": piece, "thought": True} for piece in answer.reasons())


def _texts(answer: ModelAnswer) -> Iterator[dict[str, Any]]:
    return ({"text": piece} for piece in answer.says())


def _calls(answer: ModelAnswer) -> Iterator[dict[str, Any]]:
    for call in answer.calls:
        yield {"functionCall": {"id": call.id, "name": call.name, "args": call.mapping}}


def error(error: Error) -> dict[str, Any]:
    fallback = "INTERNAL" if error.status >= 500 else "INVALID_ARGUMENT"
    status = error.code or _STATUS.get(error.status, fallback)
    return {"error": {"code": error.status, "message": error.message, "status": status}}


def stream_error(answer: ModelAnswer, failure: Error) -> bytes:
    body = msgspec.json.encode(error(failure))
    return _data(body) if answer.request.media == "text/event-stream" else b",\r\n" + body + b"]"


def count_tokens(body: bytes) -> dict[str, Any]:
    asked = _decode_counted(body)
    contents = asked.contents or (asked.generate_content_request.contents if asked.generate_content_request else [])
    request = ModelRequest(format="gemini", model="", messages=_conversation(contents))
    return {"totalTokens": request.tokens}


def _chunk(answer: ModelAnswer, parts: list[dict[str, Any]], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    chunk = {"candidates": [candidate], "modelVersion": answer.request.model, "responseId": answer.id}
    return {**chunk, "usageMetadata": _usage(answer)} if finish else chunk


def _usage(answer: ModelAnswer) -> dict[str, Any]:
    usage = answer.usage
    return {
        "promptTokenCount": usage.input,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": max(0, usage.output - usage.reasoning),
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.input + usage.output,
    }


def _data(chunk: bytes) -> bytes:
    return b"data: " + chunk + b"\r\n\r\n"

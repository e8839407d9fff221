"""`POST /v1/responses`. The stream builds the whole response as it goes; an answer in one piece is its last event."""

from collections.abc import Generator, Iterator, Sequence
from itertools import count
from typing import Any

import msgspec
from msgspec import Struct

from portico.testing.model import openai_chat
from portico.testing.model.answer import Frame, ModelAnswer, ToolCall
from portico.testing.model.request import ModelRequest, RequestMessage, RequestTool, Role, join
from portico.testing.model.script import Error, ScriptedUsage

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_INCOMPLETE = {"length": "max_output_tokens", "refusal": "content_filter"}

_SEARCH = "tool_search"

Event = dict[str, Any]
Writing = Generator[tuple[Event, bool], None, Event]  # yields events and whether each is a delta; returns the item


class _Part(Struct):
    text: str | None = None


class _Item(Struct):
    type: str = "message"
    role: str = ""
    content: str | list[_Part] | None = None
    call_id: str | None = None
    output: str | list[_Part] | dict[str, Any] | None = None
    tools: list["_Tool"] = []
    """Tools that a search has found: the model may call them afterwards."""


class _Tool(Struct):
    type: str = "function"
    name: str | None = None
    parameters: dict[str, Any] | None = None
    tools: list["_Tool"] = []
    """Of a namespace: Codex groups the tools of each MCP server so."""


class _TextFormat(Struct):
    schema: dict[str, Any] | None = None


class _Text(Struct):
    format: _TextFormat | None = None


class _Body(Struct):
    input: str | list[_Item]
    model: str = ""
    tools: list[_Tool] | None = None
    stream: bool | None = None
    text: _Text | None = None
    previous_response_id: str | None = None


_decode = msgspec.json.Decoder(_Body).decode


def parse(body: bytes, target: str) -> ModelRequest:
    asked = _decode(body)
    if asked.previous_response_id:
        raise ValueError("This server keeps no responses: send the whole input instead of `previous_response_id`.")
    items = [_Item(role="user", content=asked.input)] if isinstance(asked.input, str) else asked.input
    shape = asked.text and asked.text.format
    return ModelRequest(
        format="openai-responses",
        model=asked.model,
        messages=[_message(item) for item in items],
        tools=[found for tool in _all_tools(asked.tools or [], items) for found in _tools(tool)],
        stream=bool(asked.stream),
        schema=shape.schema if shape else None,
    )


def _all_tools(declared: list[_Tool], items: list[_Item]) -> Iterator[_Tool]:
    yield from declared
    for item in items:
        yield from item.tools


def _tools(tool: _Tool, namespace: str = "") -> Iterator[RequestTool]:
    if tool.type == "namespace":
        for each in tool.tools:
            yield from _tools(each, f"{tool.name}__")
    elif tool.type == _SEARCH:
        yield RequestTool(_SEARCH, tool.parameters or {})
    elif tool.name:
        yield RequestTool(namespace + tool.name, tool.parameters or {}, tool.type == "custom", namespace)


def _message(item: _Item) -> RequestMessage:
    if item.type.endswith("_output"):
        return RequestMessage(role="tool", text=_text(item.output))
    if item.type.endswith("_call"):
        return RequestMessage(role="assistant", calls=[item.call_id or ""])
    if item.type == "reasoning":
        return RequestMessage(role="assistant")
    return RequestMessage(role=_ROLES.get(item.role, "system"), text=_text(item.content))


def _text(content: str | list[_Part] | dict[str, Any] | None) -> str:
    if isinstance(content, list):
        return join([part.text for part in content])
    return msgspec.json.encode(content).decode() if isinstance(content, dict) else content or ""


def whole(answer: ModelAnswer) -> dict[str, Any]:
    response: dict[str, Any] = [event for event, _ in _events(answer)][-1]["response"]
    return response


def stream(answer: ModelAnswer) -> Iterator[Frame]:
    for sequence, (event, delta) in enumerate(_events(answer)):
        yield Frame(_frame({**event, "sequence_number": sequence}), delta)


def _events(answer: ModelAnswer) -> Iterator[tuple[Event, bool]]:
    output: list[Event] = []
    yield {"type": "response.created", "response": _response(answer, "in_progress", [])}, False
    yield {"type": "response.in_progress", "response": _response(answer, "in_progress", [])}, False
    position = count()
    if answer.reason:
        output.append((yield from _reasoning(answer, next(position))))
    if answer.text or not answer.calls:
        output.append((yield from _message_item(answer, next(position))))
    for call in answer.calls:
        named = _named(call, answer.request.tools)
        writing = _search(call, next(position)) if call.name == _SEARCH else _call(call, named, next(position))
        output.append((yield from writing))
    status = "incomplete" if answer.finish in _INCOMPLETE else "completed"
    yield {"type": f"response.{status}", "response": _response(answer, status, output)}, False


def _reasoning(answer: ModelAnswer, index: int) -> Writing:
    item: Event = {"id": f"rs_{answer.id}", "type": "reasoning", "summary": []}
    where = {"item_id": item["id"], "output_index": index, "summary_index": 0}
    yield {"type": "response.output_item.added", "output_index": index, "item": item}, False
    part = {"type": "summary_text", "text": ""}
    yield {"type": "response.reasoning_summary_part.added", **where, "part": part}, False
    pieces = []
    for piece in answer.reasons():
        pieces.append(piece)
        yield {"type": "response.reasoning_summary_text.delta", **where, "delta": piece}, True
    part = {"type": "summary_text", "text": "".join(pieces)}
    yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}, False
    yield {"type": "response.reasoning_summary_part.done", **where, "part": part}, False
    done = {**item, "summary": [part]}
    yield {"type": "response.output_item.done", "output_index": index, "item": done}, False
    return done


def _message_item(answer: ModelAnswer, index: int) -> Writing:
    item: Event = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant"}
    where = {"item_id": item["id"], "output_index": index, "content_index": 0}
    opened = {**item, "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "output_index": index, "item": opened}, False
    yield {"type": "response.content_part.added", **where, "part": _part("")}, False
    pieces = []
    for piece in answer.says():
        pieces.append(piece)
        yield {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}, True
    text = "".join(pieces)
    yield {"type": "response.output_text.done", **where, "text": text, "logprobs": []}, False
    yield {"type": "response.content_part.done", **where, "part": _part(text)}, False
    done = {**item, "status": "completed", "content": [_part(text)]}
    yield {"type": "response.output_item.done", "output_index": index, "item": done}, False
    return done


def _named(call: ToolCall, tools: Sequence[RequestTool]) -> Event:
    namespace = next((tool.namespace for tool in tools if tool.name == call.name), "")
    if not namespace:
        return {"name": call.name}
    return {"name": call.name.removeprefix(namespace), "namespace": namespace.removesuffix("__")}


def _search(call: ToolCall, index: int) -> Writing:
    done: Event = {"id": f"ts_{call.id}", "type": "tool_search_call", "call_id": call.id, "status": "completed"}
    done |= {"execution": "client", "arguments": call.mapping}
    opened = {**done, "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": opened}, False
    yield {"type": "response.output_item.done", "output_index": index, "item": done}, False
    return done


def _call(call: ToolCall, named: Event, index: int) -> Writing:
    kind, field, deltas = (
        ("custom_tool_call", "input", "custom_tool_call_input")
        if call.freeform
        else ("function_call", "arguments", "function_call_arguments")
    )
    item: Event = {"id": f"fc_{call.id}", "type": kind, "call_id": call.id, **named}
    where = {"item_id": item["id"], "output_index": index}
    opened = {**item, field: "", "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": opened}, False
    for piece in call.pieces():
        yield {"type": f"response.{deltas}.delta", **where, "delta": piece}, True
    yield {"type": f"response.{deltas}.done", **where, field: call.arguments}, False
    done = {**item, field: call.arguments, "status": "completed"}
    yield {"type": "response.output_item.done", "output_index": index, "item": done}, False
    return done


def error(error: Error) -> dict[str, Any]:
    return openai_chat.error(error)


def stream_error(answer: ModelAnswer, failure: Error) -> bytes:
    problem = {"code": failure.code or "server_error", "message": failure.message}
    return _frame({"type": "response.failed", "response": {**_response(answer, "failed", []), "error": problem}})


def _response(answer: ModelAnswer, status: str, output: list[Event]) -> Event:
    incomplete = {"reason": _INCOMPLETE[answer.finish]} if status == "incomplete" else None
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "error": None,
        "incomplete_details": incomplete,
        "instructions": None,
        "metadata": {},
        "model": answer.request.model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if status == "in_progress" else _usage(answer.usage),
    }


def _part(text: str) -> Event:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: ScriptedUsage) -> Event:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def _frame(event: Event) -> bytes:
    return f"event: {event['type']}\ndata: ".encode() + msgspec.json.encode(event) + b"\n\n"

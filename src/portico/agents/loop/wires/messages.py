"""Anthropic Messages. Content blocks go back as they came, with the signatures of their thoughts."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from portico.agents.loop.arguments import NoArguments, parse
from portico.agents.loop.protocol import feedback
from portico.agents.loop.refusal import in_stream
from portico.agents.loop.reply import NativeCall, Report, TokensSpent
from portico.agents.loop.transcript import Entry, Exchange, UserText
from portico.agents.loop.wires.chat import EMPTY, neutral_id, usable
from portico.agents.loop.wires.frames import EventStream, number
from portico.agents.loop.wires.request import CompletionRequest
from portico.kernel.events import Json, ToolSpec

PATH = "messages"
VERSION = "2023-06-01"
ANSWER_TOKENS = 8192
"""The format wants a bound; every current model takes this one."""
_DATA_URL = re.compile(r"data:([\w/+.-]+);base64,(.*)", re.DOTALL)
_ENDS = {"max_tokens": "length", "refusal": "content_filter", "end_turn": "stop", "tool_use": "tool_calls"}
_MARK: Json = {"cache_control": {"type": "ephemeral"}}


def headers(key: str) -> dict[str, str]:
    return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}


def plain(text: str) -> list[Json]:
    """The opaque message that a text alone is."""
    return [{"type": "text", "text": text}]


def messages(
    system: str, entries: Sequence[Entry], *, native: bool, model: str = "", pictures: bool = True
) -> list[Json]:
    found: list[Json] = []
    for at, entry in enumerate(entries):
        match entry:
            case UserText(role="user"):
                _add(found, "user", _content(entry, pictures))
            case UserText(said=said) if said is not None and said.wire == "messages" and said.model == model:
                _add(found, "assistant", _kept(said.message) or plain(entry.text or EMPTY))
            case UserText():
                _add(found, "assistant", plain(entry.text or EMPTY))
            case Exchange():
                called, results = _exchange(entry, at, native, model)
                _add(found, "assistant", called)
                _add(found, "user", results)
    return found


def _add(found: list[Json], role: str, blocks: list[Json]) -> None:
    """Roles have to alternate."""
    if found and found[-1]["role"] == role:
        found[-1] = {"role": role, "content": [*found[-1]["content"], *blocks]}
    else:
        found.append({"role": role, "content": blocks})


def _content(said: UserText, pictures: bool) -> list[Json]:
    shown = [_DATA_URL.fullmatch(each) for each in said.pictures] if pictures else []
    images = [
        {"type": "image", "source": {"type": "base64", "media_type": match[1], "data": match[2]}}
        for match in shown
        if match is not None
    ]
    return [*images, *plain(said.text or EMPTY)]


def _kept(blocks: list[Json]) -> list[Json]:
    """The endpoint rejects empty texts, also those that it has sent."""
    return [each for each in blocks if each.get("type") != "text" or str(each.get("text") or "").strip()]


def _exchange(entry: Exchange, at: int, native: bool, model: str) -> tuple[list[Json], list[Json]]:
    results, said = entry.answered(), entry.said
    if said is not None and usable(said, "messages", model, native):
        idents = [each["id"] for each in said.message if each.get("type") == "tool_use"]
        if not idents:
            return _kept(said.message), plain(feedback(results))
        return _kept(said.message), _results(idents, results)
    if not native:
        actions = [{"tool": each.tool, **each.arguments} for each in entry.step.actions]
        return plain(json.dumps({"actions": actions})), plain(feedback(results))
    idents = [neutral_id(at, index) for index in range(len(entry.step.actions))]
    calls = [
        {"type": "tool_use", "id": ident, "name": each.tool, "input": each.arguments}
        for ident, each in zip(idents, entry.step.actions, strict=True)
    ]
    beside = plain(entry.step.commentary) if entry.step.commentary.strip() else []
    return [*beside, *calls], _results(idents, results)


def _results(idents: list[str], results: list[tuple[str, str]]) -> list[Json]:
    return [
        {"type": "tool_result", "tool_use_id": ident, "content": text or EMPTY}
        | ({"is_error": True} if text.startswith("error:") else {})
        for ident, (_, text) in zip(idents, results, strict=False)
    ]


def body(ask: CompletionRequest) -> Json:
    *before, last = ask.messages or [{"role": "user", "content": plain(EMPTY)}]
    *blocks, tail = last["content"]
    sent = [*before, {**last, "content": [*blocks, {**tail, **_MARK}]}]
    body: Json = {"model": ask.model, "messages": sent, "stream": True, "max_tokens": ask.max_tokens or ANSWER_TOKENS}
    if ask.system:
        body["system"] = [{"type": "text", "text": ask.system, **_MARK}]
    if ask.tools:
        body["tools"] = [_tool(tool) for tool in ask.tools]
    if ask.temperature is not None:
        body["temperature"] = ask.temperature
    return body


def _tool(tool: ToolSpec) -> Json:
    shape = tool.schema or {"type": "object", "properties": {}}
    return {"name": tool.name, "description": tool.description, "input_schema": shape}


class MessagesStream(EventStream):
    def __init__(
        self,
        name: str,
        report: Report,
        retract: Callable[[], None] = lambda: None,
        grow: Callable[[str, str, str], None] = lambda ident, name, piece: None,
    ) -> None:
        super().__init__(name, report)
        self._show = grow
        self._blocks: dict[int, Json] = {}
        self._inputs: dict[int, list[str]] = {}
        self._spent: Json = {}

    def _event(self, event: Json) -> None:
        match event.get("type"):
            case "message_start":
                message = event.get("message")
                self._count(message.get("usage") if isinstance(message, dict) else None)
            case "content_block_start":
                self._begin(number(event.get("index")), event.get("content_block"))
            case "content_block_delta":
                self._grow(number(event.get("index")), event.get("delta"))
            case "message_delta":
                delta = event.get("delta")
                reason = delta.get("stop_reason") if isinstance(delta, dict) else None
                self._finish = _ENDS.get(str(reason), str(reason)) if reason else self._finish
                self._count(event.get("usage"))
            case "message_stop":
                self._ended = True
            case "error":
                raise in_stream(self._name, event.get("error"))

    def _begin(self, index: int, block: Any) -> None:
        if isinstance(block, dict):
            self._blocks[index] = dict(block)
            self._text(block.get("text"))
            self._thought(block.get("thinking"))

    def _grow(self, index: int, delta: Any) -> None:
        block = self._blocks.get(index)
        if block is None or not isinstance(delta, dict):
            return
        match delta.get("type"):
            case "text_delta":
                block["text"] = block.get("text", "") + delta.get("text", "")
                self._text(delta.get("text"))
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta.get("thinking", "")
                self._thought(delta.get("thinking"))
            case "signature_delta":
                block["signature"] = block.get("signature", "") + delta.get("signature", "")
            case "input_json_delta":
                piece = delta.get("partial_json") or ""
                self._growth.add(len(piece))
                self._inputs.setdefault(index, []).append(piece)
                self._show(str(block.get("id")), str(block.get("name")), piece)
            case _:
                block |= {key: value for key, value in delta.items() if key != "type"}

    def _count(self, usage: Any) -> None:
        """Here, unlike elsewhere, what came from the cache is not a part of the input."""
        if not isinstance(usage, dict):
            return
        self._spent |= {key: value for key, value in usage.items() if isinstance(value, int)}
        cached = number(self._spent.get("cache_read_input_tokens"))
        stored = number(self._spent.get("cache_creation_input_tokens"))
        spent = number(self._spent.get("input_tokens")) + cached + stored
        self._usage = TokensSpent(spent, number(self._spent.get("output_tokens")), cached)

    def _whole(self, whole: Json) -> None:
        if whole.get("type") == "error" or whole.get("error"):
            raise in_stream(self._name, whole.get("error"))
        for index, block in enumerate(whole.get("content") or []):
            self._begin(index, block)
        reason = str(whole.get("stop_reason") or "end_turn")
        self._finish = _ENDS.get(reason, reason) if whole.get("content") is not None else ""
        self._count(whole.get("usage"))

    def _message(self) -> tuple[Any, list[NativeCall]]:
        blocks: list[Json] = []
        calls: list[NativeCall] = []
        for index, block in sorted(self._blocks.items()):
            if block.get("type") == "tool_use":
                written = "".join(self._inputs.get(index, []))
                arguments = written or json.dumps(block.get("input") or {})
                calls.append(NativeCall(str(block.get("id")), str(block.get("name")), arguments))
                block = {**block, "input": _input(arguments)}
            blocks.append(block)
        return blocks, calls


def _input(arguments: str) -> Json:
    try:
        return parse(arguments)
    except NoArguments:
        return {}

"""OpenAI Responses. Nothing is stored at the endpoint: its output items go back as they came, reasoning encrypted."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from portico.agents.loop.protocol import feedback
from portico.agents.loop.refusal import in_stream
from portico.agents.loop.reply import NativeCall, Report, TokensSpent
from portico.agents.loop.transcript import Entry, Exchange, UserText
from portico.agents.loop.wires.chat import EMPTY, neutral_id, usable
from portico.agents.loop.wires.frames import EventStream, number
from portico.agents.loop.wires.request import CompletionRequest
from portico.kernel.events import Json, ToolSpec

PATH = "responses"
_REASONS = re.compile(r"(?:^|/)(?:o\d|gpt-5|codex|gpt-oss)", re.IGNORECASE)
"""Models that reason: only they take a request for encrypted reasoning."""


def headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def plain(text: str) -> list[Json]:
    """The opaque message that a text alone is."""
    return [{"role": "assistant", "content": text}]


def messages(
    system: str, entries: Sequence[Entry], *, native: bool, model: str = "", pictures: bool = True
) -> list[Json]:
    found: list[Json] = []
    for at, entry in enumerate(entries):
        match entry:
            case UserText(role="user"):
                found.append({"role": "user", "content": _content(entry, pictures)})
            case UserText(said=said) if said is not None and said.wire == "responses" and said.model == model:
                found += _kept(said.message) or plain(entry.text or EMPTY)
            case UserText():
                found += plain(entry.text or EMPTY)
            case Exchange():
                found += _exchange(entry, at, native, model)
    return found


def _content(said: UserText, pictures: bool) -> str | list[Json]:
    if not said.pictures or not pictures:
        return said.text
    shown = [{"type": "input_image", "image_url": each} for each in said.pictures]
    return [{"type": "input_text", "text": said.text}, *shown]


def _kept(items: list[Json]) -> list[Json]:
    """Reasoning without its content cannot go back: the endpoint would look for an item that it has not stored."""
    return [
        each
        for each in items
        if each.get("type") != "reasoning" or each.get("encrypted_content") or each.get("content")
    ]


def _exchange(entry: Exchange, at: int, native: bool, model: str) -> list[Json]:
    results, said = entry.answered(), entry.said
    if said is not None and usable(said, "responses", model, native):
        items = _kept(said.message)
        idents = [each["call_id"] for each in items if each.get("type") == "function_call"]
        if not idents:
            return [*items, {"role": "user", "content": feedback(results)}]
        return [*(_valid(each) for each in items), *_outputs(idents, results)]
    if not native:
        actions = [{"tool": each.tool, **each.arguments} for each in entry.step.actions]
        return [*plain(json.dumps({"actions": actions})), {"role": "user", "content": feedback(results)}]
    idents = [neutral_id(at, index) for index in range(len(entry.step.actions))]
    calls = [
        {"type": "function_call", "call_id": ident, "name": each.tool, "arguments": json.dumps(each.arguments)}
        for ident, each in zip(idents, entry.step.actions, strict=True)
    ]
    beside = plain(entry.step.commentary) if entry.step.commentary else []
    return [*beside, *calls, *_outputs(idents, results)]


def _outputs(idents: list[str], results: list[tuple[str, str]]) -> list[Json]:
    pairs = zip(idents, results, strict=False)
    return [{"type": "function_call_output", "call_id": ident, "output": text} for ident, (_, text) in pairs]


def _valid(item: Json) -> Json:
    if item.get("type") != "function_call" or item.get("arguments"):
        return item
    return {**item, "arguments": "{}"}


def body(ask: CompletionRequest) -> Json:
    body: Json = {"model": ask.model, "input": list(ask.messages), "stream": True, "store": False}
    if ask.system:
        body["instructions"] = ask.system
    if _REASONS.search(ask.model):
        body["include"] = ["reasoning.encrypted_content"]
    if ask.tools:
        body["tools"] = [_tool(tool) for tool in ask.tools]
    if ask.schema is not None:
        shape = {"type": "json_schema", "name": "step", "schema": ask.schema, "strict": False}
        body["text"] = {"format": shape}
    if ask.temperature is not None:
        body["temperature"] = ask.temperature
    if ask.max_tokens is not None:
        body["max_output_tokens"] = ask.max_tokens
    if ask.cache:
        body["prompt_cache_key"] = ask.cache
    return body


def _tool(tool: ToolSpec) -> Json:
    parameters = tool.schema or {"type": "object", "properties": {}}
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
        "strict": False,
    }


class ResponsesStream(EventStream):
    def __init__(
        self,
        name: str,
        report: Report,
        retract: Callable[[], None] = lambda: None,
        grow: Callable[[str, str, str], None] = lambda ident, name, piece: None,
    ) -> None:
        super().__init__(name, report)
        self._show = grow
        self._items: list[Json] = []
        self._added: dict[str, Json] = {}

    def _event(self, event: Json) -> None:
        kind = event.get("type", "")
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            self._text(event.get("delta"))
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self._thought(event.get("delta"))
        elif kind == "response.output_item.added" and isinstance(item := event.get("item"), dict):
            self._added[str(item.get("id"))] = item
        elif kind == "response.function_call_arguments.delta":
            self._growth.add(len(str(event.get("delta"))))
            call = self._added.get(str(event.get("item_id")), {})
            self._show(str(call.get("call_id") or ""), str(call.get("name") or ""), str(event.get("delta")))
        elif kind == "response.output_item.done" and isinstance(item := event.get("item"), dict):
            self._items.append(item)
        elif kind in ("response.completed", "response.incomplete"):
            self._end(event.get("response"))
        elif kind in ("response.failed", "error") or event.get("error"):
            response = event.get("response")
            raise in_stream(self._name, event.get("error") or (response or {}).get("error") or event)

    def _end(self, response: Any) -> None:
        response = response if isinstance(response, dict) else {}
        self._items = response.get("output") or self._items
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        self._finish = {"max_output_tokens": "length", None: "stop"}.get(reason, str(reason))
        if isinstance(used := response.get("usage"), dict):
            cached = used.get("input_tokens_details")
            self._usage = TokensSpent(
                number(used.get("input_tokens")),
                number(used.get("output_tokens")),
                number(cached.get("cached_tokens")) if isinstance(cached, dict) else 0,
            )
        self._ended = True

    def _whole(self, whole: Json) -> None:
        if whole.get("error"):
            raise in_stream(self._name, whole["error"])
        for item in whole.get("output") or []:
            for part in item.get("content") or []:
                self._thought(part.get("text")) if item.get("type") == "reasoning" else self._text(part.get("text"))
            for part in item.get("summary") or []:
                self._thought(part.get("text"))
        self._end(whole)

    def _message(self) -> tuple[Any, list[NativeCall]]:
        calls = [
            NativeCall(str(each.get("call_id")), str(each.get("name")), str(each.get("arguments") or ""))
            for each in self._items
            if each.get("type") == "function_call"
        ]
        return self._items, calls

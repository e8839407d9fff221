"""Chat completions: the requests. `chat_stream.py` reads the answers."""

import json
from collections.abc import Sequence
from typing import Any

from portico.agents.loop.protocol import feedback
from portico.agents.loop.reply import Said, WireName
from portico.agents.loop.transcript import Entry, Exchange, UserText
from portico.agents.loop.wires.request import CompletionRequest
from portico.agents.loop.wires.roles import as_parts, fitted, joined
from portico.kernel.events import Json, ToolSpec

PATH = "chat/completions"


def headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def plain(text: str) -> Json:
    """The opaque message that a text alone is."""
    return {"role": "assistant", "content": text}


EMPTY = "(empty)"
"""In place of an answer without content: many endpoints reject an empty message."""


def messages(
    system: str, entries: Sequence[Entry], *, native: bool, model: str = "", pictures: bool = True
) -> list[Json]:
    found: list[Json] = [{"role": "system", "content": system}]
    for number, entry in enumerate(entries):
        match entry:
            case UserText(role="assistant"):
                found.append(_answer(entry, native, model))
            case UserText():
                _add_user(found, _content(entry, pictures))
            case Exchange():
                called, *results = _exchange(entry, number, native, model)
                found.append(called)
                for each in results:
                    if each["role"] == "user":
                        _add_user(found, each["content"])
                    else:
                        found.append(each)
    return found


def usable(said: Said | None, wire: WireName, model: str, native: bool) -> bool:
    """Whether a message goes back as it came: to the model that wrote it, asked in the same way."""
    return said is not None and said.wire == wire and said.model == model and said.native == native


def _add_user(found: list[Json], content: Any) -> None:
    """Chat templates (Mistral, Gemma) reject two messages of a user in a row: they become one."""
    if found[-1]["role"] != "user":
        found.append({"role": "user", "content": content})
        return
    found[-1] = {"role": "user", "content": joined(found[-1]["content"], content)}


def _answer(entry: UserText, native: bool, model: str) -> Json:
    said = entry.said
    if said is not None and said.wire == "chat" and said.model == model and not said.message.get("tool_calls"):
        message: Json = dict(said.message)
        return message if message.get("content") else {**message, "content": entry.text or EMPTY}
    return {"role": "assistant", "content": entry.text or EMPTY}


def _content(said: UserText, pictures: bool) -> str | list[Json]:
    if not said.pictures or not pictures:
        return said.text
    shown = [{"type": "image_url", "image_url": {"url": each}} for each in said.pictures]
    return [{"type": "text", "text": said.text}, *shown]


def _exchange(entry: Exchange, number: int, native: bool, model: str) -> list[Json]:
    said = entry.said
    results = entry.answered()
    if said is not None and usable(said, "chat", model, native):
        message: Json = said.message
        calls = message.get("tool_calls") or []
        if not calls:  # the model wrote its calls as text
            return [message, {"role": "user", "content": feedback(results)}]
        sent = {**message, "tool_calls": [_valid(call) for call in calls]}
        told = zip(calls, results, strict=False)
        return [sent, *(_result(call["id"], text) for call, (_, text) in told)]
    return _native(entry, number) if native else _textual(entry)


def _valid(call: Json) -> Json:
    """Arguments that are no JSON are sent back as an empty object: vLLM and llama.cpp parse them and fail. The result
    of the call shows the model what was wrong."""
    arguments = call["function"]["arguments"]
    if not isinstance(arguments, str) or _is_object(arguments):
        return call
    return {**call, "function": {**call["function"], "arguments": "{}"}}


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _result(ident: str, text: str) -> Json:
    return {"role": "tool", "tool_call_id": ident, "content": text}


def neutral_id(number: int, index: int) -> str:
    """The id of a call that another model has made, by the place of its step. Every vendor accepts it: Mistral wants
    nine letters and digits, OpenAI at most 40 characters, Anthropic no signs, and all of them each id only once."""
    return f"c{number % 10**6:06d}{index:02d}"


def _native(entry: Exchange, number: int) -> list[Json]:
    idents = [neutral_id(number, index) for index in range(len(entry.step.actions))]
    calls = [
        {"id": ident, "type": "function", "function": {"name": each.tool, "arguments": json.dumps(each.arguments)}}
        for ident, each in zip(idents, entry.step.actions, strict=True)
    ]
    results = zip(idents, entry.answered(), strict=False)
    return [
        {"role": "assistant", "content": entry.step.commentary or None, "tool_calls": calls},
        *(_result(ident, text) for ident, (_, text) in results),
    ]


def _textual(entry: Exchange) -> list[Json]:
    step = entry.step
    actions = [{"tool": each.tool, **each.arguments} for each in step.actions]
    said = json.dumps({"actions": actions, "commentary": step.commentary, "done": False}, ensure_ascii=False)
    return [{"role": "assistant", "content": said}, {"role": "user", "content": feedback(entry.answered())}]


def body(ask: CompletionRequest) -> Json:
    sent = fitted(ask.messages, ask.lacks)
    sent = _marked(sent) if is_claude(ask.model) else sent
    body: Json = {"model": ask.model, "messages": sent, "stream": True}
    if ask.cache:
        body["prompt_cache_key"] = ask.cache
    if ask.usage:
        body["stream_options"] = {"include_usage": True}
    if ask.tools:
        body["tools"] = [_tool(tool) for tool in ask.tools]
    if ask.schema is not None:
        shape = {"name": "step", "schema": ask.schema, "strict": False}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    if ask.temperature is not None:
        body["temperature"] = ask.temperature
    if ask.max_tokens is not None:
        body["max_completion_tokens" if "max_tokens" in ask.lacks else "max_tokens"] = ask.max_tokens
    return body


def is_claude(model: str) -> bool:
    """Gateways (OpenRouter, LiteLLM) pass Anthropic's cache marks on; without them nothing is cached."""
    return "claude" in model.lower() or model.startswith("anthropic/")


def _marked(sent: Sequence[Json]) -> list[Json]:
    """Marks what the next request repeats: the system message, and everything up to the last user or tool message."""
    last = max((at for at, each in enumerate(sent) if each["role"] in ("user", "tool")), default=0)
    return [_with_mark(each) if at in (0, last) else each for at, each in enumerate(sent)]


def _with_mark(message: Json) -> Json:
    *parts, tail = as_parts(message["content"])
    return {**message, "content": [*parts, {**tail, "cache_control": {"type": "ephemeral"}}]}


def _tool(tool: ToolSpec) -> Json:
    parameters = tool.schema or {"type": "object", "properties": {}}
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }

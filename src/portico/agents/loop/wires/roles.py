"""Messages of chat completions for endpoints that accept less: no system role, strictly alternating roles, or no fields
of other vendors. Used only after an endpoint has rejected the usual form."""

from collections.abc import Collection, Sequence
from typing import Any

from portico.agents.loop.reply import Feature
from portico.kernel.events import Json

_FIELDS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
_CALL_FIELDS = frozenset({"id", "type", "function"})
_FIRST = "(the conversation continues)"
"""In place of a user's message before the first answer."""


def fitted(messages: Sequence[Json], lacks: Collection[Feature]) -> list[Json]:
    found = list(messages)
    if "extras" in lacks:
        found = [_bare(each) for each in found]
    if "system" in lacks:
        found = _without_system(found)
    return _alternating(found) if "alternation" in lacks else found


def _bare(message: Json) -> Json:
    found = {name: value for name, value in message.items() if name in _FIELDS}
    if calls := found.get("tool_calls"):
        found["tool_calls"] = [{name: each[name] for name in each if name in _CALL_FIELDS} for each in calls]
    if isinstance(content := found.get("content"), list) and message["role"] == "assistant":
        texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        found["content"] = "".join(texts) or None
    return found


def _without_system(messages: list[Json]) -> list[Json]:
    """The instructions are the beginning of the first message."""
    if not messages or messages[0]["role"] != "system":
        return messages
    system, rest = messages[0]["content"], messages[1:]
    if rest and rest[0]["role"] == "user":
        return [{**rest[0], "content": joined(system, rest[0]["content"])}, *rest[1:]]
    return [{"role": "user", "content": system}, *rest]


def _alternating(messages: list[Json]) -> list[Json]:
    """A user's text after the result of a tool becomes part of the result; answers that follow each other are one."""
    found: list[Json] = []
    for each in messages:
        before = found[-1] if found else {"role": "system"}
        role, last = each["role"], before["role"]
        if role == "assistant" and last == "system":
            found += [{"role": "user", "content": _FIRST}, each]
        elif role == "user" and last in ("user", "tool"):
            found[-1] = {**before, "content": joined(before["content"], each["content"])}
        elif role == last == "assistant" and not before.get("tool_calls"):
            found[-1] = {**before, **each, "content": joined(before.get("content"), each.get("content"))}
        else:
            found.append(each)
    return found


def joined(before: Any, after: Any) -> Any:
    """One content of two: texts, lists of parts, or nothing."""
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n\n{after}"
    if not before or not after:
        return before or after
    return [*as_parts(before), *as_parts(after)]


def as_parts(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content

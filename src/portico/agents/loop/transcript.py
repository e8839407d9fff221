"""What a model gets to read: the conversation in neutral entries, written down in the form that its endpoint takes.

Neutral, because a fallback may change the form in the middle of a run. Bounded, because a conversation grows for ever
and a context does not: old results go first, then old turns; the goal and the last results stay.
"""

import json
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from portico.agents.loop.protocol import ModelStep, feedback
from portico.events import Json, Message
from portico.host.state import CallPart, Part, QuestionPart, TurnState

LEFT_OUT = "[left out to save room; ask again if it is needed]"
RESULT_CHARS = 2000
"""Of an earlier turn's tool result: enough to know what it was."""
WRONG_CHARS = 4000
"""Of an invalid answer that is shown back."""


SHORT_CHARS, SHORT_LINES = 120, 20
"""Of messages that no longer fit."""
PICTURE_CHARS = 4000
"""What a picture takes of the context: some thousand tokens."""


class UserText(Struct, frozen=True):
    role: Literal["user", "assistant"]
    text: str
    pictures: list[str] = []
    """As data URLs."""


class Exchange(Struct, frozen=True):
    """A step and what came of it."""

    step: ModelStep
    results: list[tuple[str, str]]


class Wrong(Struct, frozen=True):
    """An answer that was no step, and what it was told."""

    text: str
    correction: str


Entry = UserText | Exchange | Wrong


def of_turns(turns: Sequence[TurnState]) -> list[Entry]:
    """Earlier turns of the conversation, also those of a host before this one."""
    entries: list[Entry] = []
    for turn in turns:
        entries.append(UserText("user", _with_names(turn.message)))
        said = of_parts(turn.parts)
        if turn.outcome not in (None, "completed"):
            said = f"{said}\n[this turn: {turn.outcome}]".strip()
        entries.append(UserText("assistant", said or "[no answer]"))
    return entries


def _with_names(message: Message) -> str:
    """What was attached to an earlier message is named, not told again."""
    names = [str(each.get("label") or each.get("displayName") or "a file") for each in message.attachments]
    return f"{message.text}\n[attached: {', '.join(names)}]" if names else message.text


def of_parts(parts: Sequence[Part]) -> str:
    return "\n".join(text for part in parts if (text := _part(part)))


def _part(part: Part) -> str:
    if isinstance(part, CallPart):
        result = part.output or (part.error.message if part.error else "")
        return f"[{part.title or part.tool}: {part.outcome or 'running'}]\n{_cut(result, RESULT_CHARS)}".strip()
    if isinstance(part, QuestionPart):
        return ""
    return part.text.strip() if part.kind == "text" else ""


def render(system: str, entries: Sequence[Entry], *, native: bool, limit: int, pictures: bool = True) -> list[Json]:
    messages: list[Json] = [{"role": "system", "content": system}]
    for number, entry in enumerate(fitting(entries, limit - len(system))):
        match entry:
            case UserText():
                messages.append({"role": entry.role, "content": _content(entry, pictures)})
            case Wrong():
                messages.append({"role": "assistant", "content": _cut(entry.text, WRONG_CHARS) or "(empty)"})
                messages.append({"role": "user", "content": entry.correction})
            case Exchange():
                messages += _native(entry, number) if native else _textual(entry)
    return messages


def _content(said: UserText, pictures: bool) -> str | list[Json]:
    if not said.pictures or not pictures:
        return said.text
    shown = [{"type": "image_url", "image_url": {"url": each}} for each in said.pictures]
    return [{"type": "text", "text": said.text}, *shown]


def _native(entry: Exchange, number: int) -> list[Json]:
    idents = [action.id or f"call_{number}_{index}" for index, action in enumerate(entry.step.actions)]
    calls = [
        {"id": ident, "type": "function", "function": {"name": each.tool, "arguments": json.dumps(each.arguments)}}
        for ident, each in zip(idents, entry.step.actions, strict=True)
    ]
    results = zip(idents, entry.results, strict=False)
    return [
        {"role": "assistant", "content": entry.step.commentary or None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": ident, "content": text} for ident, (_, text) in results),
    ]


def _textual(entry: Exchange) -> list[Json]:
    step = entry.step
    actions = [{"tool": each.tool, **each.arguments} for each in step.actions]
    said = json.dumps({"actions": actions, "commentary": step.commentary, "done": False}, ensure_ascii=False)
    return [{"role": "assistant", "content": said}, {"role": "user", "content": feedback(entry.results)}]


def fitting(entries: Sequence[Entry], limit: int) -> list[Entry]:
    """As much as fits, the newest for certain."""
    kept = list(entries)
    excess = sum(map(size_of, kept)) - max(limit, 1000)
    for index, entry in enumerate(kept[:-1]):
        if excess <= 0:
            return kept
        if isinstance(entry, Exchange):
            lighter = Exchange(entry.step, [(name, _lighter(text)) for name, text in entry.results])
            excess -= size_of(entry) - size_of(lighter)
            kept[index] = lighter
    goal = max((index for index, entry in enumerate(kept) if isinstance(entry, UserText)), default=0)
    dropped: list[Entry] = []
    while excess > 0 and goal > 0:
        dropped.append(kept.pop(0))
        excess -= size_of(dropped[-1])
        goal -= 1
    if words := _in_short(dropped):
        kept.insert(0, UserText("user", words))
    if excess > 0 and isinstance(kept[-1], Exchange):
        room = max(500, (size_of(kept[-1]) - excess) // max(1, len(kept[-1].results)))
        kept[-1] = Exchange(kept[-1].step, [(name, _cut(text, room)) for name, text in kept[-1].results])
    return kept


def compacts(entries: Sequence[Entry], limit: int) -> bool:
    """Whether something has to be left out."""
    return sum(map(size_of, entries)) > max(limit, 1000)


def _in_short(dropped: Sequence[Entry]) -> str:
    """What was asked for before, one line each: the rest of it is left out."""
    asked = [entry.text for entry in dropped if isinstance(entry, UserText) and entry.role == "user"]
    lines = [f"- {' '.join(text.split())[:SHORT_CHARS]}" for text in asked[-SHORT_LINES:]]
    head = "[Earlier in this conversation, left out to save room, you were asked:]"
    return "\n".join([head, *lines]) if lines else ""


def _lighter(text: str) -> str:
    return LEFT_OUT if len(text) > 2 * len(LEFT_OUT) else text


def size_of(entry: Entry) -> int:
    """Characters that it takes of the context, about."""
    match entry:
        case UserText():
            return len(entry.text) + PICTURE_CHARS * len(entry.pictures)
        case Wrong():
            return min(len(entry.text), WRONG_CHARS) + len(entry.correction)
        case Exchange():
            written = sum(len(json.dumps(action.arguments)) + 40 for action in entry.step.actions)
            return written + sum(len(text) for _, text in entry.results)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"

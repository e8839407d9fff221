"""The conversation in neutral entries, from which each wire format writes its messages.

Neutral, because a fallback may change the model and the wire format in the middle of a run. A model's message is kept
beside its neutral form (`Said`) and sent back unchanged to the same model. Bounded, because a conversation grows and a
context does not: old results are left out first, then old turns; the goal and the last results stay.
"""

import json
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from portico.agents.loop.protocol import ModelStep
from portico.agents.loop.reply import Said
from portico.kernel.events import Message
from portico.kernel.state import CallPart, Part, QuestionPart, TurnState

LEFT_OUT = "[left out to save room; ask again if it is needed]"
RESULT_CHARS = 2000
"""Of a tool result in an earlier turn that has no recorded steps: enough to know what it was."""
NO_RESULT = "error: this call was interrupted before it had a result"


SHORT_CHARS, SHORT_LINES = 120, 20
"""Of messages that no longer fit."""
PICTURE_CHARS = 4000
"""What a picture takes of the context: some thousand tokens."""


class UserText(Struct, frozen=True, omit_defaults=True):
    role: Literal["user", "assistant"]
    text: str
    pictures: list[str] = []
    """As data URLs."""
    said: Said | None = None
    """An assistant's message as it came."""


class Exchange(Struct, frozen=True):
    """A step with calls, and their results in the order of the calls."""

    step: ModelStep
    results: list[tuple[str, str]]
    said: Said | None = None

    def answered(self) -> list[tuple[str, str]]:
        """A result for each call: endpoints reject a call without one."""
        missing = self.step.actions[len(self.results) :]
        return [*self.results, *((each.tool, NO_RESULT) for each in missing)]


Entry = UserText | Exchange


def of_turns(turns: Sequence[TurnState]) -> list[Entry]:
    """Earlier turns without recorded steps: other agents' turns, and logs of version 0.2."""
    entries: list[Entry] = []
    for turn in turns:
        entries.append(UserText("user", with_names(turn.message)))
        said = of_parts(turn.parts)
        if turn.outcome not in (None, "completed"):
            said = f"{said}\n[this turn: {turn.outcome}]".strip()
        entries.append(UserText("assistant", said or "[no answer]"))
    return entries


def with_names(message: Message) -> str:
    """The message with the names of what was attached to it."""
    names = [str(each.get("label") or each.get("displayName") or "a file") for each in message.attachments]
    return f"{message.text}\n[attached: {', '.join(names)}]" if names else message.text


def of_parts(parts: Sequence[Part]) -> str:
    return "\n".join(text for part in parts if (text := _part(part)))


def _part(part: Part) -> str:
    if isinstance(part, CallPart):
        result = part.output or (part.error.message if part.error else "")
        return f"[{part.title or part.tool}: {part.outcome or 'running'}]\n{cut(result, RESULT_CHARS)}".strip()
    if isinstance(part, QuestionPart):
        return ""
    return part.text.strip() if part.kind == "text" else ""


def fitting(entries: Sequence[Entry], limit: int) -> list[Entry]:
    """As much as fits, the newest for certain."""
    kept = list(entries)
    excess = sum(map(size_of, kept)) - max(limit, 1000)
    for index, entry in enumerate(kept[:-1]):
        if excess <= 0:
            return kept
        if isinstance(entry, Exchange):
            lighter = Exchange(entry.step, [(name, _lighter(text)) for name, text in entry.results], entry.said)
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
    if excess > 0 and isinstance(last := kept[-1], Exchange):
        room = max(500, (size_of(last) - excess) // max(1, len(last.results)))
        kept[-1] = Exchange(last.step, [(name, cut(text, room)) for name, text in last.results], last.said)
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
        case Exchange():
            written = sum(len(json.dumps(action.arguments)) + 40 for action in entry.step.actions)
            return written + sum(len(text) for _, text in entry.results)


def cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"

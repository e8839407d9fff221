"""What a session does now, in one line of plain words: "Running pytest -q", "Wants to change limits.py", "Thinking".

A pure function of the session's state. Lists, the inbox and notices use the same text.
"""

import json
import os
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from portico import limits
from portico.kernel.agent import QUEUED, STARTED
from portico.kernel.events import ApprovalAsked
from portico.kernel.state import Approval, CallPart, Part, QuestionPart, SessionState, TextPart, TurnState
from portico.surrogates import repair

_RUNNING = {
    "execute": "Running",
    "edit": "Editing",
    "delete": "Deleting",
    "move": "Moving",
    "read": "Reading",
    "search": "Searching",
    "fetch": "Opening",
}
_WANTED = {"shell": "Wants to run", "write": "Wants to change", "read": "Wants to read"}
_ARGUMENTS = ("command", "cmd", "path", "file_path", "file", "query", "pattern", "url")
"""Arguments that describe a call; the first one present is shown."""


NO_ANSWER_YET = "Waiting for the model"


class Waiting(Struct, omit_defaults=True):
    """An approval or a question that waits for a person."""

    id: str
    kind: Literal["approval", "question"]
    text: str


def activity(state: SessionState, waiting: Sequence[Waiting] | None = None) -> str:
    """The activity text; empty if nothing runs. `waiting`: the result of `waiting_of`, if the caller has it already."""
    turn = state.active
    if turn is None:
        return ""
    found = waiting_of(state) if waiting is None else waiting
    return found[0].text if found else QUEUED if queued(state) else _working(turn)


def queued(state: SessionState) -> bool:
    """Its turn has not begun: it waits for a place among the agents' processes."""
    for part in reversed(state.active.parts) if state.active is not None else ():
        if not isinstance(part, TextPart) or part.kind != "notice":
            return False
        if part.text.startswith((QUEUED, STARTED)):
            return part.text.startswith(QUEUED)
    return False


def doing(state: SessionState) -> str:
    """The activity without text of the agent: what waits for a person, or the running call."""
    turn, waiting = state.active, waiting_of(state)
    if turn is None or waiting:
        return waiting[0].text if waiting else ""
    calls = [part for part in _open_parts(turn) if isinstance(part, CallPart) and part.ready and _is_work(part)]
    return _line(_running(calls[-1])) if calls else ""


def waiting_of(state: SessionState) -> list[Waiting]:
    """What waits for a person, oldest first."""
    turn = state.active
    found: list[Waiting] = []
    for part in _open_parts(turn) if turn is not None else ():
        if isinstance(part, CallPart) and (approval := part.approval) is not None:
            found.append(Waiting(approval.id, "approval", wants(approval, part.tool, part.title)))
        elif isinstance(part, QuestionPart) and part.response is None:
            found.append(Waiting(part.id, "question", asks(part.text)))
    return found


def _open_parts(turn: TurnState) -> list[Part]:
    return [part for part in turn.open if not part.done]


def asks(question: str) -> str:
    return _line(f"Asks: {question}")


def wants(approval: Approval | ApprovalAsked, tool: str, title: str = "") -> str:
    if approval.result:
        return _line(f"Wants to use the result of {tool}")
    about = approval.command or (os.path.basename(approval.path) if approval.path else "")
    wanted = f"{_WANTED[approval.kind]} {about}" if approval.kind in _WANTED and about else ""
    leaves = approval.title.partition(" wants to ")[2] if tool == "network" else ""  # out of its sandbox
    text = wanted or f"Wants to {leaves or f'use {approval.title or title or tool}'}"
    if approval.unclear:  # first, so that a long command does not hide it
        text = f"Cannot be judged: {text[0].lower()}{text[1:]}"
    return _line(text)


def _working(turn: TurnState) -> str:
    for part in reversed(_open_parts(turn)):
        if isinstance(part, CallPart) and (helper := _helper(part)):
            return _line(f"{helper} helps")
        if isinstance(part, CallPart) and _is_work(part):
            return _line(_running(part))
        if isinstance(part, TextPart):
            return "Thinking" if part.kind == "reasoning" else "Writing"
    return NO_ANSWER_YET


def _is_work(call: CallPart) -> bool:
    return call.kind != "think"  # a plan stays open all along


def _helper(call: CallPart) -> str:
    """What the sub-agent is called that this call started; empty where it started none."""
    found = next((item for item in call.content if item.get("type") == "subagent"), None)
    return "" if found is None else str(found.get("agent") or found.get("title") or "A helper")


def _running(call: CallPart) -> str:
    verb, about = _RUNNING.get(call.kind), argument(call)
    named = call.title if call.title != call.tool else ""
    if verb and (about or call.kind == "execute"):
        return f"{verb} {about or named or call.tool}"
    return named or (f"{call.tool}: {about}" if about else f"Using {call.tool}")


def argument(call: CallPart) -> str:
    """What the call is about: its command, file, query or address; empty if it has none."""
    if not call.ready:
        return ""
    try:
        given = json.loads(repair(call.input))
    except ValueError:
        return ""
    if not isinstance(given, dict):
        return ""
    return next((value for name in _ARGUMENTS if isinstance(value := given.get(name), str) and value), "")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limits.ACTIVITY_CHARS else f"{line[: limits.ACTIVITY_CHARS - 1]}…"

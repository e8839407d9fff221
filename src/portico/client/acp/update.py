"""The events of a session as ACP's updates. Pure: the same events give the same updates.

`Known` is what a reader has to remember from one event to the next. ACP replaces a call's content with every update, so
what a tool prints is shown by its end while it runs and as a whole when it is done.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import acp
import msgspec
from acp.schema import (
    AgentPlanUpdate,
    AvailableCommand,
    AvailableCommandsUpdate,
    PermissionOption,
    PlanEntry,
    SessionInfoUpdate,
    ToolCallStatus,
    ToolCallUpdate,
)

from portico import events as e
from portico.events import Json, Option
from portico.host.state import CallPart, QuestionPart, TextPart, TurnState
from portico.markdown import PLAN, checklist_steps, escape, is_disguised, visible

Update = Any
"""One of the SDK's update models; `session_update` names the union."""

TAIL_CHARS = 4_000
"""Of a running tool's output, with each update: the last lines, as a terminal shows them."""
OUTPUT_CHARS = 100_000
"""Of a finished tool's output; the whole is in the host."""
_KINDS = frozenset({"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"})
_APPROVED = {"read": "read", "write": "edit", "shell": "execute"}


@dataclass
class KnownParts:
    kinds: dict[str, str] = field(default_factory=dict)
    """Of the text parts that grow, by their id."""
    plans: set[str] = field(default_factory=set)
    """Calls that show a plan: ACP has an update of its own for them."""
    output: dict[str, str] = field(default_factory=dict)
    """Of the running calls, by their id: the end of what they printed."""

    @classmethod
    def of(cls, turn: TurnState | None) -> "KnownParts":
        """For a reader that comes in the middle of this turn."""
        known = cls()
        for part in turn.parts if turn is not None else ():
            if isinstance(part, TextPart) and not part.done:
                known.kinds[part.id] = part.kind
            elif isinstance(part, CallPart) and part.tool == PLAN:
                known.plans.add(part.id)
            elif isinstance(part, CallPart) and not part.done:
                known.output[part.id] = part.output[-TAIL_CHARS:]
        return known


def updates(event: e.Event, known: KnownParts) -> list[Update]:
    match event:
        case e.PartStarted():
            known.kinds[event.part] = event.kind
        case e.PartDelta():
            return [_text(known.kinds.get(event.part, "text"), event.text)]
        case e.PartEnded():
            known.kinds.pop(event.part, None)
        case e.ToolStarted() if event.tool == PLAN:
            known.plans.add(event.call)
        case e.ToolContent() | e.ToolEnded() if event.call in known.plans:
            return _plan(event.content)
        case e.ToolReady() | e.ToolOutput() if _call_of(event) in known.plans:
            pass
        case e.ToolStarted():
            return [_started(event.call, event.title or event.tool, event.kind)]
        case e.ToolReady():
            given, title = _decoded(event.input), event.title or None
            return [acp.update_tool_call(event.call, title=title, status="in_progress", raw_input=given)]
        case e.ToolOutput():
            shown = known.output[event.part] = (known.output.get(event.part, "") + event.text)[-TAIL_CHARS:]
            return [acp.update_tool_call(event.part, content=[_words(shown)])]
        case e.ToolContent():
            content = _contents(event.content)
            return [acp.update_tool_call(event.call, content=content)] if content else []
        case e.ToolEnded():
            known.output.pop(event.call, None)
            return [_ended(event)]
        case e.SessionRenamed():
            return [SessionInfoUpdate(session_update="session_info_update", title=event.title)]
    return []


def commands_of(offered: list[Json]) -> AvailableCommandsUpdate:
    """Return the available slash commands."""
    commands = [AvailableCommand(name=each["text"][1:], description=each.get("about", "")) for each in offered]
    return AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands)


def replayed(turn: TurnState) -> list[Update]:
    """A turn of the history, also one that still runs."""
    told: list[Update] = [acp.update_user_message_text(turn.message.text)]
    for part in turn.parts:
        match part:
            case TextPart() if part.text:
                told.append(_text(part.kind, part.text))
            case CallPart():
                told += _replayed_call(part)
            case QuestionPart():
                told.append(acp.update_agent_message_text(part.text))
    if turn.outcome not in (None, "completed"):
        told.append(_text("notice", _ending(turn)))
    return told


def _ending(turn: TurnState) -> str:
    """Why a turn of the history did not come to its end."""
    reason = f": {turn.error.message}" if turn.error is not None else "."
    return f"This turn was {turn.outcome}{reason}" if turn.outcome != "failed" else f"This turn failed{reason}"


def _call_of(event: e.ToolReady | e.ToolOutput) -> str:
    return event.call if isinstance(event, e.ToolReady) else event.part


def _plan(content: list[Json]) -> list[Update]:
    text = "\n".join(str(each.get("text")) for each in content if each.get("type") == "text")
    steps = checklist_steps(text)
    entries = [PlanEntry(content=text, priority="medium", status=status) for text, status in steps]  # type: ignore[arg-type]
    return [AgentPlanUpdate(session_update="plan", entries=entries)] if entries else []


def _replayed_call(part: CallPart) -> list[Update]:
    if part.tool == PLAN:
        return _plan(part.content)
    start = _started(part.id, part.past or part.title or part.tool, part.kind)
    start.raw_input = _decoded(part.input)
    status: ToolCallStatus = "pending" if part.approval is not None else "in_progress"
    if part.done:
        status = "completed" if part.ok else "failed"
    output = part.error.message if part.error is not None else part.output
    content = [*_contents(part.content), *([_words(output[-OUTPUT_CHARS:])] if output else [])]
    return [start, acp.update_tool_call(part.id, status=status, content=content)]


def _text(kind: str, text: str) -> Update:
    if kind == "reasoning":
        return acp.update_agent_thought_text(text)
    return acp.update_agent_message_text(f"\n{text}\n" if kind == "notice" else text)


def _started(call: str, title: str, kind: str) -> Update:
    return acp.start_tool_call(call, title, kind=kind if kind in _KINDS else "other", status="pending")  # type: ignore[arg-type]


def _ended(event: e.ToolEnded) -> Update:
    output = event.error.message if event.error is not None else event.output
    content = [*_contents(event.content), *([_words(output[-OUTPUT_CHARS:])] if output else [])]
    status: ToolCallStatus = "completed" if event.ok else "failed"
    return acp.update_tool_call(event.call, title=event.title or None, status=status, content=content or None)


def _words(text: str) -> Any:
    return acp.tool_content(acp.text_block(text))


def _contents(content: list[Json]) -> list[Any]:
    """Diffs and texts; terminals of the host are no terminals of the editor."""
    found: list[Any] = []
    for each in content:
        if each.get("type") == "diff" and isinstance(each.get("path"), str):
            old = each.get("old")
            found.append(acp.tool_diff_content(each["path"], str(each.get("new") or ""), old))
        elif each.get("type") == "text" and isinstance(each.get("text"), str):
            found.append(_words(each["text"]))
    return found


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except (ValueError, RecursionError):
        return text


# -- what people are asked -------------------------------------------------------------------------------------


def asked_call(event: e.ApprovalAsked) -> ToolCallUpdate:
    """The call as the editor shows it with its question: exactly what would run."""
    shown = _shown(event)
    return ToolCallUpdate(
        tool_call_id=event.call,
        title=visible(event.title),
        kind=_APPROVED.get(event.kind, "other"),  # type: ignore[arg-type]
        status="pending",
        content=[_words(shown)] if shown else None,
        locations=[{"path": event.path}] if event.path else None,  # type: ignore[list-item]
        raw_input=_decoded(event.input),
    )


def _shown(event: e.ApprovalAsked) -> str:
    """In Markdown, with a name for everything that cannot be seen. A command that a block of code would still hide some
    of is plain text, which wraps."""
    if event.diff:
        return _fenced("diff", visible(event.diff))
    if event.command and is_disguised(event.command):
        return escape(event.command)
    return _fenced("sh", event.command) if event.command else ""


def _fenced(language: str, text: str) -> str:
    """Editors render Markdown: the fence is longer than any in the text, which so cannot end it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def permission_options(options: list[Option]) -> list[PermissionOption]:
    return [PermissionOption(option_id=each.id, name=each.label, kind=_option_kind(each)) for each in options]  # type: ignore[arg-type]


def _option_kind(option: Option) -> str:
    return f"{'allow' if option.allow else 'reject'}_{'once' if option.grant == 'once' else 'always'}"

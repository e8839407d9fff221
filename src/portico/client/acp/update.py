"""The events of a session as ACP's updates. Pure: the same events give the same updates.

`KnownParts` is what a reader has to remember from one event to the next. ACP replaces a call's content with every
update, so what a tool prints is shown by its end while it runs and as a whole when it is done. An editor that shows
terminals gets the output of a command piece by piece.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import acp
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommand,
    AvailableCommandsUpdate,
    PermissionOption,
    PlanEntry,
    SessionInfoUpdate,
    TerminalToolCallContent,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolCallUpdate,
    UserMessageChunk,
)

from portico.client.acp.content import (
    OUTPUT_CHARS,
    attached,
    contents,
    decoded,
    diff_paths,
    files_of,
    hunks,
    locations,
    words,
)
from portico.kernel import events as e
from portico.kernel.events import ErrorInfo, Json, Message, Option, Outcome
from portico.kernel.state import CallPart, QuestionPart, SessionState, TextPart, TurnState
from portico.markdown import PLAN, checklist_steps, escape, is_disguised, visible

Update = Any
"""One of the SDK's update models; `session_update` names the union."""

TAIL_CHARS = 4_000
"""Of a running tool's output, with each update: the last lines, as a terminal shows them."""
_KINDS = frozenset({"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"})
_APPROVED = {"read": "read", "write": "edit", "shell": "execute"}


@dataclass
class KnownParts:
    cwd: str = ""
    """The folder of the session: calls name files relative to it."""
    terminals: bool = False
    """The editor shows the output of commands in terminals; see `Editor.shows_terminals`."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Of the text parts of this turn, by their id."""
    texts: dict[str, list[str]] = field(default_factory=dict)
    """What the editor has of them, in pieces."""
    corrections: int = 0
    """Number of texts that were sent again."""
    plans: set[str] = field(default_factory=set)
    """Calls that show a plan: ACP has an update of its own for them."""
    output: dict[str, str] = field(default_factory=dict)
    """Of the running calls, by their id: the end of what they printed."""
    commands: set[str] = field(default_factory=set)
    """Running calls that are shown as terminals."""
    children: dict[str, str] = field(default_factory=dict)
    """Of the running calls, by their id: what their sub-agents wrote."""

    def join(self, turn: TurnState | None) -> None:
        """Continue in the middle of this turn."""
        for part in turn.parts if turn is not None else ():
            if isinstance(part, TextPart):
                self.kinds[part.id], self.texts[part.id] = part.kind, [part.text]
            elif isinstance(part, CallPart) and part.tool == PLAN:
                self.plans.add(part.id)
            elif isinstance(part, CallPart) and not part.done:
                self.output[part.id] = part.output[-TAIL_CHARS:]
                self.commands |= {part.id} if self.terminals and part.kind == "execute" else set()

    def reset(self) -> None:
        """The turn has ended."""
        for each in (self.kinds, self.texts, self.plans, self.output, self.commands, self.children):
            each.clear()


def updates(event: e.Event, known: KnownParts) -> list[Update]:
    match event:
        case e.PartStarted():
            known.kinds[event.part] = event.kind
        case e.PartDelta():
            known.texts.setdefault(event.part, []).append(event.text)
            return [_text(known.kinds.get(event.part, "text"), event.text, event.part)]
        case e.PartEnded():
            return _part_ended(event, known)
        case e.ToolStarted() if event.tool == PLAN:
            known.plans.add(event.call)
        case e.ToolContent() | e.ToolEnded() if event.call in known.plans:
            return _plan(event.content)
        case e.ToolReady() | e.ToolOutput() if _call_of(event) in known.plans:
            pass
        case e.ToolStarted():
            return [_started(event.call, event.title or event.tool, event.kind, known)]
        case e.ToolReady():
            given = decoded(event.input)
            return [
                _progress(
                    event.call,
                    title=event.title or None,
                    status="in_progress",
                    raw_input=given,
                    locations=_locations(given, known.cwd),
                )
            ]
        case e.ToolOutput():
            return [_output(event, known)]
        case e.ToolContent():
            content = contents(event.content)
            places = locations(diff_paths(event.content))
            return [_progress(event.call, content=content, locations=places)] if content else []
        case e.ToolEnded():
            return _ended(event, known)
        case e.SessionRenamed():
            return [SessionInfoUpdate(session_update="session_info_update", title=event.title)]
    return []


def _part_ended(event: e.PartEnded, known: KnownParts) -> list[Update]:
    """What the editor does not have of the text. ACP cannot replace a text, so a corrected one is sent again.

    Notices, and texts that an agent sends as a whole, have no pieces."""
    kind, seen = known.kinds.get(event.part), "".join(known.texts.get(event.part, []))
    if kind is None or event.text == seen:
        return []
    known.texts[event.part] = [event.text]
    if event.text.startswith(seen):
        return [_text(kind, event.text[len(seen) :], event.part)]
    if kind == "reasoning":
        return []
    words = "The agent replaced its text above by:" if event.text else "The agent discarded its text above."
    known.corrections += 1
    again = f"{event.part}-{known.corrections}"
    return [_text("notice", words, f"{again}-notice"), *([_text(kind, event.text, again)] if event.text else [])]


def _progress(call: str, **fields: Any) -> ToolCallProgress:
    """With the fields that are set: ACP replaces the others by nothing."""
    given = {name: value for name, value in fields.items() if value is not None}
    return ToolCallProgress(session_update="tool_call_update", tool_call_id=call, **given)


def _locations(given: Any, cwd: str) -> Any:
    return locations(files_of(given, cwd), given.get("line") if isinstance(given, dict) else None)


def _output(event: e.ToolOutput, known: KnownParts) -> Update:
    shown = known.output[event.part] = (known.output.get(event.part, "") + event.text)[-TAIL_CHARS:]
    if event.part in known.commands:
        return _progress(event.part, field_meta=_printed(event.part, event.text))
    return _progress(event.part, content=[words(shown)])


def child_update(call: str, known: KnownParts) -> Update:
    """What the sub-agents of a running call have written so far, by its end."""
    return _progress(call, content=[words(known.children[call][-TAIL_CHARS:])])


def child_text(event: e.Event) -> str:
    """What a sub-agent's event adds to the text of its call."""
    match event:
        case e.PartDelta():
            return event.text
        case e.PartEnded():
            return "\n\n"
        case e.ToolReady() if event.title:
            return f"> {event.title}\n\n"
    return ""


def written(state: SessionState) -> str:
    """What a sub-agent has written so far, as `child_text` would have collected it."""
    found = ""
    for part in (part for turn in state.turns for part in turn.parts):
        match part:
            case TextPart() if part.kind != "reasoning" and part.text:
                found += part.text + "\n\n"
            case CallPart() if part.title:
                found += f"> {part.title}\n\n"
    return found


def commands_of(offered: list[Json]) -> AvailableCommandsUpdate:
    """Return the available slash commands."""
    commands = [AvailableCommand(name=each["text"][1:], description=each.get("about", "")) for each in offered]
    return AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands)


def user_message(message: Message, turn: str) -> list[Update]:
    """The text and the attachments of a message, pictures included."""
    blocks = [acp.text_block(message.text)] if message.text else []
    blocks += [block for each in message.attachments if (block := attached(each)) is not None]
    return [UserMessageChunk(session_update="user_message_chunk", content=each, message_id=turn) for each in blocks]


def replayed(
    turn: TurnState, known: KnownParts | None = None, children: Mapping[str, str] | None = None
) -> list[Update]:
    """A turn of the history, also one that still runs. `children`: the texts of sub-agents, by their call."""
    known = known or KnownParts()
    found = user_message(turn.message, turn.id)
    for part in turn.parts:
        match part:
            case TextPart() if part.text:
                found.append(_text(part.kind, part.text, part.id))
            case CallPart():
                found += _replayed_call(part, known, (children or {}).get(part.id, ""))
            case QuestionPart():
                found.append(_text("text", part.text, part.id))
    return found + ending(turn.id, turn.outcome, turn.error)


def ending(turn: str, outcome: Outcome | None, error: ErrorInfo | None) -> list[Update]:
    """Why a turn did not end normally; nothing if it did, or still runs."""
    if outcome in (None, "completed"):
        return []
    reason = f": {error.message}" if error is not None else "."
    text = f"This turn failed{reason}" if outcome == "failed" else f"This turn was {outcome}{reason}"
    return [_text("notice", text, f"{turn}-end")]


def _call_of(event: e.ToolReady | e.ToolOutput) -> str:
    return event.call if isinstance(event, e.ToolReady) else event.part


def _plan(content: list[Json]) -> list[Update]:
    text = "\n".join(str(each.get("text")) for each in content if each.get("type") == "text")
    steps = checklist_steps(text)
    entries = [PlanEntry(content=text, priority="medium", status=status) for text, status in steps]  # type: ignore[arg-type]
    return [AgentPlanUpdate(session_update="plan", entries=entries)] if entries else []


def _replayed_call(part: CallPart, known: KnownParts, child: str) -> list[Update]:
    if part.tool == PLAN:
        return _plan(part.content)
    start = _started(part.id, part.past or part.title or part.tool, part.kind, known)
    given = decoded(part.input)
    start.raw_input, start.locations = given, _locations(given, known.cwd)
    if part.done:
        event = e.ToolEnded(
            turn="",
            call=part.id,
            ok=part.ok,
            output=part.output,
            content=part.content,
            error=part.error,
            exit_code=part.exit_code,
        )
        known.children[part.id] = child
        return [start, *_ended(event, known)]
    status: ToolCallStatus = "pending" if part.approval is not None else "in_progress"
    if part.id in known.commands:
        meta = _printed(part.id, part.output) if part.output else None
        return [start, _progress(part.id, status=status, field_meta=meta)]
    shown = "\n".join(filter(None, [child[-TAIL_CHARS:], part.output[-OUTPUT_CHARS:]]))
    content = [*contents(part.content), *([words(shown)] if shown else [])]
    return [start, _progress(part.id, status=status, content=content)]


def _text(kind: str, text: str, part: str) -> Update:
    block = acp.text_block(f"\n{text}\n" if kind == "notice" else text)
    if kind == "reasoning":
        return AgentThoughtChunk(session_update="agent_thought_chunk", content=block, message_id=part)
    return AgentMessageChunk(session_update="agent_message_chunk", content=block, message_id=part)


def _started(call: str, title: str, kind: str, known: KnownParts) -> ToolCallStart:
    kind = kind if kind in _KINDS else "other"
    start = ToolCallStart(
        session_update="tool_call",
        tool_call_id=call,
        title=title,
        kind=kind,  # type: ignore[arg-type]
        status="pending",
    )
    if known.terminals and kind == "execute":
        known.commands.add(call)
        start.content = [_terminal(call)]
        start.field_meta = {"terminal_info": {"terminal_id": call, "cwd": known.cwd}}
    return start


def _terminal(call: str) -> TerminalToolCallContent:
    return TerminalToolCallContent(type="terminal", terminal_id=call)


def _printed(call: str, text: str) -> Json:
    return {"terminal_output": {"terminal_id": call, "data": text}}


def _ended(event: e.ToolEnded, known: KnownParts) -> list[Update]:
    call, printed = event.call, known.output.pop(event.call, "")
    output = (event.error.message if event.error is not None else event.output)[-OUTPUT_CHARS:]
    child = known.children.pop(call, "").strip()[-OUTPUT_CHARS:]
    status: ToolCallStatus = "completed" if event.ok else "failed"
    before: list[Update] = []
    meta: Json | None = None
    if call in known.commands:
        known.commands.discard(call)
        if output and (not printed or event.error is not None):
            before.append(_progress(call, field_meta=_printed(call, output)))
        code = event.exit_code if event.exit_code is not None else int(not event.ok)
        meta = {"terminal_exit": {"terminal_id": call, "exit_code": code, "signal": None}}
        content = [_terminal(call), *contents(event.content)]
    else:
        texts = [output] if child in output else [child] if output in child else [child, output]
        content = [*contents(event.content), *map(words, filter(None, texts))]
    places = locations(diff_paths(event.content))
    end = _progress(
        call,
        title=event.title or None,
        status=status,
        content=content or None,
        locations=places,
        field_meta=meta,
    )
    return [*before, end]


# -- what people are asked -------------------------------------------------------------------------------------


def asked_call(event: e.ApprovalAsked, call: str = "") -> ToolCallUpdate:
    """The call as the editor shows it with its question: exactly what would run. `call`: of a sub-agent, the call of
    the session that the editor knows."""
    return ToolCallUpdate(
        tool_call_id=call or event.call,
        title=visible(event.title),
        kind=_APPROVED.get(event.kind, "other"),  # type: ignore[arg-type]
        status="pending",
        content=_shown(event) or None,
        locations=locations([*([event.path] if event.path else []), *event.files]),
        raw_input=decoded(event.input),
    )


def _shown(event: e.ApprovalAsked) -> list[Any]:
    """A diff of one file as such. Any other is text in Markdown, with a name for everything that cannot be seen: an
    editor's view of a diff would hide it. A command that a block of code would still hide some of is plain text,
    which wraps."""
    if event.diff:
        plain = visible(event.diff) == event.diff
        found = hunks(event.path, event.diff) if event.path and plain and len(event.files) < 2 else []
        return found or [words(_fenced("diff", visible(event.diff)))]
    if event.command and is_disguised(event.command):
        return [words(escape(event.command))]
    return [words(_fenced("sh", event.command))] if event.command else []


def _fenced(language: str, text: str) -> str:
    """Editors render Markdown: the fence is longer than any in the text, which so cannot end it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def permission_options(options: list[Option]) -> list[PermissionOption]:
    return [PermissionOption(option_id=each.id, name=each.label, kind=_option_kind(each)) for each in options]  # type: ignore[arg-type]


def _option_kind(option: Option) -> str:
    return f"{'allow' if option.allow else 'reject'}_{'once' if option.grant == 'once' else 'always'}"

"""Log events as events of this door: `inbound`, `fragment`, `action`, `approvalRequest`, `question`, `done` ...

Plain functions on the state that a reader has of a running turn. The frames of a record are encoded once and shared by
all readers.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from portico.doors.anywhere.identity import begun
from portico.features.chats.draft import offered_text
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.events import Json, Record
from portico.kernel.state import DRAFT, CallPart, TextPart, TurnState

FRAME_CHARS = (limits.DELTA_BYTES - 2048) // 6
"""Characters per fragment: even if all are escaped (six bytes each), the frame is below 64 KiB."""
PREVIEW_CHARS = 2_000
DETAIL_CHARS = 400

_encode = msgspec.json.Encoder().encode


class Watched(Struct):
    """The state that a reader has of the running turn of a session."""

    project: str
    turn: str
    id: str
    model: str
    kinds: dict[str, str] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    """The step of a call, if its agent counts steps."""
    announced: set[str] = field(default_factory=set)
    """Calls whose start was shown."""
    fresh: set[str] = field(default_factory=set)
    """Started parts without shown text: their deltas may have been compacted away, and the end has the whole text."""

    @classmethod
    def of(cls, project: str, ident: str, model: str, turn: TurnState) -> "Watched":
        watched = cls(project, turn.id, ident, turn.message.model or model)
        watched.model = turn.steps[-1].model or watched.model if turn.steps else watched.model
        for part in turn.parts:
            if isinstance(part, TextPart):
                watched.kinds[part.id] = part.kind
            elif isinstance(part, CallPart):
                watched.tools[part.id] = part.tool
                watched.note_step(part.id, part.meta)
                watched.announced.add(part.id)
        return watched

    def note_step(self, call: str, meta: Json) -> None:
        if isinstance(step := meta.get("step"), int):
            self.steps[call] = step


def frames(record: Record, watched: Watched) -> list[bytes]:
    """Return the frames of a record, encoded once, and update the state."""
    event = record.event
    if type(event) is e.PartDelta:
        watched.fresh.discard(event.part)
    elif isinstance(event, e.PartStarted):
        watched.kinds[event.part] = event.kind
        watched.fresh.add(event.part)
    elif isinstance(event, e.ToolStarted):
        watched.tools[event.call] = event.tool
        watched.note_step(event.call, event.meta)
        if not event.title or event.title == event.tool:
            return []  # shown when its input is known
        watched.announced.add(event.call)
    elif isinstance(event, e.ToolReady):
        if event.call in watched.announced:
            return []
        watched.announced.add(event.call)
    elif isinstance(event, e.UsageReported | e.TurnStep) and event.model:
        watched.model = event.model  # after a fallback: the model that responds
    elif isinstance(event, e.PartEnded):
        if event.part in watched.fresh:
            watched.fresh.discard(event.part)
            return _framed(record, watched)  # not shared: only this reader missed the deltas
        if not event.replaces:
            return []
        return _numbered(record.seq, _correction(event, watched))
    made: list[bytes] = record.form("anywhere", lambda record: _framed(record, watched))
    return made


def _framed(record: Record, watched: Watched) -> list[bytes]:
    """Build the frames of a record. Each has a separate id; the last has the id of the record: cursors are exact."""
    return _numbered(record.seq, _messages(record.event, watched))


def _numbered(seq: int, messages: "Told") -> list[bytes]:
    made = list(messages)
    last = len(made) - 1
    return [
        b"id: %s\nevent: %s\ndata: %s\n\n" % (_id(seq, index, last), name.encode(), _encode(data))
        for index, (name, data) in enumerate(made)
    ]


def _id(seq: int, index: int, last: int) -> bytes:
    return b"%d" % seq if index == last else b"%d-%d" % (seq, index + 1)


Told = Iterator[tuple[str, Json]]


def _messages(event: e.Event, watched: Watched) -> Told:
    if isinstance(event, e.PartDelta | e.PartEnded):
        yield from _fragments(event.part, event.text, watched)
    elif (make := _MAKERS.get(type(event))) is not None:
        name, told = make(event, watched)
        yield name, {**told, "sessionId": watched.project}


def inbound(ident: str, project: str, text: str, by: str) -> Json:
    return {"id": ident, "text": text, "source": by, "sessionId": project}


def _correction(event: e.PartEnded, watched: Watched) -> Told:
    """Build the fragments of a correction. The first one states how much of the previous text it replaces."""
    pieces = list(_fragments(event.part, event.text or " ", watched))
    for index, (name, data) in enumerate(pieces):
        data["fragment"] = data["fragment"] if event.text else ""
        yield name, {**data, "replaces": event.replaces} if index == 0 else data


def _fragments(part: str, text: str, watched: Watched) -> Told:
    kind = watched.kinds.get(part, "text")
    if kind == "reasoning":
        return  # reasoning is not part of the answer; other doors show it
    told = {"sessionId": watched.project, "model": watched.model, **({} if kind == "text" else {"kind": kind})}
    for start in range(0, len(text), FRAME_CHARS):
        yield "fragment", {"id": watched.id, "fragment": text[start : start + FRAME_CHARS], **told}


def _begun(event: e.TurnStarted, watched: Watched) -> tuple[str, Json]:
    return "inbound", {"id": watched.id, "text": event.message.text, "source": event.by}


def _tool_started(event: e.ToolStarted, watched: Watched) -> tuple[str, Json]:
    return "action", {"id": watched.id, "tool": event.tool, "summary": event.title, **_step(event.call, watched)}


def _tool_ready(event: e.ToolReady, watched: Watched) -> tuple[str, Json]:
    tool = watched.tools.get(event.call, "tool")
    return "action", {"id": watched.id, "tool": tool, "summary": event.title or tool, **_step(event.call, watched)}


def _tool_ended(event: e.ToolEnded, watched: Watched) -> tuple[str, Json]:
    tool = watched.tools.get(event.call, "tool")
    told = {"id": watched.id, "tool": tool, "ok": event.ok, "detail": detail(event)}
    return "action", {**told, **_step(event.call, watched)}


def _step(call: str, watched: Watched) -> Json:
    return {"step": watched.steps[call]} if call in watched.steps else {}


def detail(ended: e.ToolEnded | CallPart) -> str:
    error = ended.error.message if ended.error is not None else ""
    text = ended.detail or error or ended.output
    return text if len(text) <= DETAIL_CHARS else text[: DETAIL_CHARS - 1] + "…"


def _asked(event: e.ApprovalAsked, watched: Watched) -> tuple[str, Json]:
    told: Json = {"approvalId": event.approval, "id": watched.id, "action": event.tool, "title": event.title}
    shown = {"path": event.path, "command": event.command, "diff": event.diff, "contentPreview": _preview(event.input)}
    return "approvalRequest", told | {name: value for name, value in shown.items() if value is not None}


def _preview(text: str) -> str | None:
    try:
        content = msgspec.json.decode(text)["content"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    return content[:PREVIEW_CHARS] if isinstance(content, str) else None


def _answered(event: e.ApprovalAnswered, watched: Watched) -> tuple[str, Json]:
    told = {"approvalId": event.approval, "id": watched.id, "approved": event.allowed, "by": event.by}
    return "approvalDecision", told


def _question(event: e.QuestionAsked, watched: Watched) -> tuple[str, Json]:
    more = {"fields": event.fields} if event.fields else {}
    url = {"url": event.url} if event.url is not None else {}
    return "questionRequest", {"questionId": event.question, "id": watched.id, "text": event.text, **more, **url}


def _question_answered(event: e.QuestionAnswered, watched: Watched) -> tuple[str, Json]:
    told = {"questionId": event.question, "id": watched.id, "response": event.response, "by": event.by}
    return "questionAnswer", told


def _done(event: e.TurnEnded, watched: Watched) -> tuple[str, Json]:
    error = {"error": event.error.message} if event.error is not None else {}
    return "done", {"id": watched.id, "model": watched.model, "outcome": event.outcome, **error}


_MAKERS: dict[type[e.Event], Callable[[Any, Watched], tuple[str, Json]]] = {
    e.TurnStarted: _begun,
    e.ToolStarted: _tool_started,
    e.ToolReady: _tool_ready,
    e.ToolEnded: _tool_ended,
    e.ApprovalAsked: _asked,
    e.ApprovalAnswered: _answered,
    e.QuestionAsked: _question,
    e.QuestionAnswered: _question_answered,
    e.TurnEnded: _done,
}


def compacted(part: str, text: str, trail: list[tuple[int, int]], low: int, high: int, watched: Watched) -> list[bytes]:
    """Restore the pieces between two positions that were compacted away, from the whole text of the part. Small pieces
    are merged into one frame. Each frame has a valid cursor, as if the pieces still existed."""
    start = sum(size for seq, size in trail if seq <= low)
    found: list[bytes] = []
    waiting, last = "", 0
    for seq, size in (each for each in trail if low < each[0] < high):
        piece, start = text[start : start + size], start + size
        if waiting and len(waiting) + len(piece) > FRAME_CHARS:
            found += _cut(last, part, waiting, watched)
            waiting = ""
        waiting, last = waiting + piece, seq
        if len(waiting) > FRAME_CHARS:
            found += _cut(last, part, waiting, watched)
            waiting = ""
    return found + _cut(last, part, waiting, watched)


def _cut(seq: int, part: str, text: str, watched: Watched) -> list[bytes]:
    return _numbered(seq, _fragments(part, text, watched))


def removed(record: Record, project: str, session: str) -> bytes:
    """Report a queued message without a separate turn: a person removed it, or the running turn consumed it."""
    event = record.event
    assert isinstance(event, e.QueueRemoved)
    outcome = "completed" if event.reason == "steered" else "cancelled"
    data = {"id": f"{session}.{event.pending}", "sessionId": project, "outcome": outcome}
    return b"id: %d\nevent: done\ndata: %s\n\n" % (record.seq, _encode(data))


def drafted(record: Record, project: str, session: str) -> list[bytes]:
    """Report a draft that a program has put into every input. Text that people type in their editors is private."""
    event = record.event
    assert isinstance(event, e.ClientKept)
    text = offered_text(event.value) if event.key == DRAFT else ""
    if not text:
        return []
    data = inbound(f"{session}.{DRAFT}", project, text, event.by)
    return [b"id: %d\nevent: draft\ndata: %s\n\n" % (record.seq, _encode(data))]


def resumed(record: Record, watched: Watched, text: str) -> bytes:
    event = record.event
    assert isinstance(event, e.TurnResumed)
    data = inbound(watched.id, watched.project, text, event.by)
    return b"id: %d\nevent: inbound\ndata: %s\n\n" % (record.seq, _encode(data))


def start_of(record: Record, session: str) -> str | None:
    """Return the id of the run that starts with this record."""
    event = record.event
    return begun(session, record.pos, event) if isinstance(event, e.TurnStarted | e.TurnResumed) else None

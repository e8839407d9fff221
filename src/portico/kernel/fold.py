"""A session's state is a fold over its events.

`fold(state, record)` changes the state it is given (it may be megabytes) and depends on nothing but its arguments:
the same records give the same state in every process, and `state(n) + records(n..m) = state(m)`. An event that does
not fit (an unknown turn, a second answer) changes nothing.
"""

import os
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.events import Json, Record
from portico.kernel.state import (
    Approval,
    CallPart,
    ClientState,
    Flag,
    Part,
    PendingState,
    QuestionPart,
    SessionState,
    StepState,
    Stop,
    Summary,
    TextPart,
    TurnState,
    Usage,
    chat_flag,
    waiting,
)
from portico.kernel.tool_output import grow

P = TypeVar("P", TextPart, CallPart, QuestionPart)
T = TypeVar("T")
Fold = Callable[[SessionState, Any, Record], None]

_QUIET = frozenset(
    {
        e.SessionRead,
        e.SessionVendor,
        e.FolderAdded,
        e.FolderRemoved,
        e.ClientJoined,
        e.ClientLeft,
        e.ClientKept,
        e.ChatsOrdered,
        e.ChatMoved,
        e.QuestionDrafted,
    }
)
"""Events that do not make a session newer in a list."""


def fold(state: SessionState, record: Record) -> SessionState:
    event = record.event
    kind = type(event)
    handler = _FOLDS.get(kind)
    if handler is not None:
        handler(state, event, record)
        if kind not in _QUIET:
            state.modified = record.time
    elif (found := _SLICES.get(kind)) is not None:
        state.features = _folded(state, event, record, *found)
    elif isinstance(event, e.Unknown) and (tag := str(event.raw.get("type"))) not in state.unknown:
        state.unknown = [*state.unknown, tag]
    state.pos = record.pos
    return state


FoldSlice = Callable[[Any, Any, int], Any]
"""Returns the slice after an event: a pure function of the slice before it, the event and its time."""
_SLICES: dict[type[e.Event], tuple[str, type[Any], FoldSlice]] = {}


def register_slice(name: str, shape: type[Any], function: FoldSlice, *kinds: type[e.Event]) -> None:
    """Fold these events of a feature into its part of the state of every session."""
    _SLICES.update(dict.fromkeys(kinds, (name, shape, function)))


def slice_of(of: SessionState | Summary, name: str, shape: type[T]) -> T:
    """Return the slice of a feature. Decoded states contain it as JSON."""
    return msgspec.convert(of.features.get(name, {}), shape)


def _folded(
    state: SessionState, event: e.Event, record: Record, name: str, shape: type[Any], function: FoldSlice
) -> dict[str, Any]:
    after = function(slice_of(state, name, shape), event, record.time)
    others = {key: value for key, value in state.features.items() if key != name}
    return others if after == shape() else {**others, name: after}


def _started(state: SessionState, event: e.SessionStarted, record: Record) -> None:
    state.agent, state.model, state.cwd = event.agent, event.model, event.cwd
    state.title, state.title_by_person = event.title, bool(event.title)
    state.uri, state.parent, state.origin = event.uri, event.parent, event.origin
    state.config, state.by = event.config, event.by
    state.created = state.last_turn_at = record.time
    state.worktree, state.folders, state.model_config = event.worktree, list(event.folders), event.model_config
    state.draft, state.owner = event.draft, event.owner


def _renamed(state: SessionState, event: e.SessionRenamed, record: Record) -> None:
    state.title = event.title
    state.title_by_person = state.title_by_person or event.by not in ("host", "agent")


def _model(state: SessionState, event: e.SessionModel, record: Record) -> None:
    state.model, state.model_config = event.model, event.config
    state.agent = event.agent or state.agent


def _configured(state: SessionState, event: e.SessionConfigured, record: Record) -> None:
    state.config = configured(state.config, event)


def configured(config: Json, event: e.SessionConfigured) -> Json:
    """Return the settings after the event."""
    keeps = event.keeps if event.replace else config
    return {**{key: config[key] for key in keeps if key in config}, **event.values}


def _folder_added(state: SessionState, event: e.FolderAdded, record: Record) -> None:
    if event.chat:
        state.folder_subset = [*dict.fromkeys([*(state.folder_subset or []), event.folder])]
    elif event.folder not in (state.cwd, *state.folders):
        state.folders = [*state.folders, event.folder]


def _folder_removed(state: SessionState, event: e.FolderRemoved, record: Record) -> None:
    if event.chat:
        state.folder_subset = [each for each in state.folder_subset or [] if each != event.folder]
        return
    if event.folder == state.cwd and event.replacement is not None:
        state.cwd = event.replacement
    after = [event.replacement if each == event.folder else each for each in state.folders]
    state.folders = [each for each in dict.fromkeys(after) if each is not None and each != state.cwd]


def _mark(state: SessionState, flag: Flag, value: bool, only: e.Marked | None = None) -> None:
    own = chat_flag(state, flag) if only == "session" else value
    if only != "chat":
        setattr(state, flag, value)
    others = {key: each for key, each in state.chat_flags.items() if key != flag}
    state.chat_flags = others if own is getattr(state, flag) else {**others, flag: own}


def _chat_moved(state: SessionState, event: e.ChatMoved, record: Record) -> None:
    if state.id == event.session:
        state.parent, state.owner, state.promoted = event.to, event.owner, event.to is None
    else:
        others = [each for each in state.children if each != event.session]
        state.children = [*others, event.session] if state.id == event.to else others


def _truncated(state: SessionState, event: e.SessionTruncated, record: Record) -> None:
    places = [-1] if event.turn is None else [i for i, turn in enumerate(state.turns) if turn.id == event.turn]
    if places:
        del state.turns[places[0] + 1 :]
        state.history_cut = True


def _copied(state: SessionState, event: e.HistoryCopied, record: Record) -> None:
    turns = msgspec.convert(event.turns, list[TurnState])
    state.turns.extend(turns)
    for turn in turns:
        for each in (turn, *turn.parts):
            _count(state, each.id)


def _begin(state: SessionState, record: Record) -> None:
    state.draft, state.begun = False, record.pos


def _child(state: SessionState, event: e.ChildStarted, record: Record) -> None:
    if state.draft:
        _begin(state, record)
    if event.session not in state.children:
        state.children.append(event.session)


def _joined(state: SessionState, event: e.ClientJoined, record: Record) -> None:
    client = ClientState(event.client, event.name, event.tools, event.meta)
    if event.name:
        state.client_names[event.client] = event.name
        if len(state.client_names) > limits.CLIENT_NAMES:
            del state.client_names[next(iter(state.client_names))]
    others = [other for other in state.clients if other.id != event.client]
    if len(others) == len(state.clients):
        state.clients.append(client)
    else:
        state.clients = [client if other.id == event.client else other for other in state.clients]


def _left(state: SessionState, event: e.ClientLeft, record: Record) -> None:
    state.clients = [other for other in state.clients if other.id != event.client]


def _kept(state: SessionState, event: e.ClientKept, record: Record) -> None:
    if event.value is None:
        state.client_data.pop(event.key, None)
    else:
        state.client_data[event.key] = event.value


def _turn_started(state: SessionState, event: e.TurnStarted, record: Record) -> None:
    state.turns.append(TurnState(event.turn, event.message, event.by, record.time, record.pos))
    state.queue = [pending for pending in state.queue if pending.id != event.pending]
    state.last_turn_at = record.time
    if state.draft:
        _begin(state, record)
    if state.read or state.chat_flags:
        _mark(state, "read", False)
    state.queue_held = False
    state.history_cut = False
    _count(state, event.turn)


def _turn_resumed(state: SessionState, event: e.TurnResumed, record: Record) -> None:
    turn = state.turns[-1] if state.turns else None
    if turn is not None and turn.id == event.turn and turn.outcome is not None:
        if turn.error is not None:
            turn.stops.append(Stop(len(turn.parts), turn.error))
        turn.waited += max(0, record.time - (turn.ended or record.time))
        turn.outcome = turn.error = turn.ended = None
        turn.pos = record.pos
        turn.resumes += 1
        state.history_cut = False
        _mark(state, "read", False)
        state.queue_held = False


def _turn_step(state: SessionState, event: e.TurnStep, record: Record) -> None:
    turn = _active(state, event.turn)
    if turn is None:
        return
    if turn.steps and turn.steps[-1].step == event.step:
        turn.steps[-1].model, turn.steps[-1].blob = event.model, event.blob
    else:
        turn.steps.append(StepState(event.step, event.model, len(turn.parts), event.blob))


def _turn_ended(state: SessionState, event: e.TurnEnded, record: Record) -> None:
    turn = state.active
    if turn is not None and turn.id == event.turn:
        turn.outcome, turn.error, turn.ended = event.outcome, event.error, record.time
        turn.stopped_by = event.by if event.outcome == "cancelled" else ""
        _waited(turn, record.time)
        state.last_turn_at = max(turn.started, record.time)


def _part_started(state: SessionState, event: e.PartStarted, record: Record) -> None:
    turn = _active(state, event.turn)
    if turn is not None:
        began = record.time if event.kind == "reasoning" else 0
        turn.add(TextPart(event.part, event.kind, started=began))
        _count(state, event.part)


def _part_delta(state: SessionState, event: e.PartDelta, record: Record) -> None:
    part = _find(state, event.turn, event.part, TextPart)
    if part is not None and not part.done:
        part.text += event.text


def _part_ended(state: SessionState, event: e.PartEnded, record: Record) -> None:
    part = _find(state, event.turn, event.part, TextPart)
    if part is not None:
        part.text, part.done = event.text, True
        if part.started:
            part.started, part.took = 0, _took(part.started, record)
        _settle(state, part)
    if event.replaces and (turn := state.turn(event.turn)) is not None:
        turn.corrections[record.pos] = len(turn.parts)


def _took(started: int, record: Record) -> int:
    return max(0, record.time - started) if started else 0


def _usage(state: SessionState, event: e.UsageReported, record: Record) -> None:
    turn = state.turn(event.turn)
    if turn is None:
        return
    before = turn.usage or Usage()
    after = _add(Usage() if event.total else before, event)
    turn.usage = after
    total = state.usage
    state.usage = Usage(
        total.input + after.input - before.input,
        total.output + after.output - before.output,
        total.cached + after.cached - before.cached,
        total.cost + after.cost - before.cost,
        after.model,
    )


def _add(usage: Usage, event: e.UsageReported) -> Usage:
    return Usage(
        usage.input + event.input,
        usage.output + event.output,
        usage.cached + event.cached,
        usage.cost + event.cost,
        event.model or usage.model,
    )


def _tool_started(state: SessionState, event: e.ToolStarted, record: Record) -> None:
    turn = _active(state, event.turn)
    if turn is not None:
        call = CallPart(event.call, event.tool, event.title, event.kind, event.owner, event.parent, event.meta)
        call.server, call.started = event.server, record.time
        turn.add(call)
        _count(state, event.call)


def _tool_input(state: SessionState, event: e.ToolInput, record: Record) -> None:
    call = _find(state, event.turn, event.part, CallPart)
    if call is not None and not call.ready:
        call.input += event.text


def _tool_ready(state: SessionState, event: e.ToolReady, record: Record) -> None:
    call = _find(state, event.turn, event.call, CallPart)
    if call is not None and not call.done:
        call.input, call.ready = event.input, True
        call.title = event.title or call.title


def _tool_decided(state: SessionState, event: e.ToolDecided, record: Record) -> None:
    call = _find(state, event.turn, event.call, CallPart)
    if call is not None:
        call.rule, call.denied = event.rule, not event.allowed


def _sign_in(state: SessionState, event: e.SignInAsked | e.SignInSettled, record: Record) -> None:
    call = _find(state, event.turn, event.call, CallPart)
    if call is not None and not call.done:
        call.sign_in = event if isinstance(event, e.SignInAsked) else None
        _settle(state, call)


def _tool_output(state: SessionState, event: e.ToolOutput, record: Record) -> None:
    call = _find(state, event.turn, event.part, CallPart)
    if call is not None and not call.done:
        call.output, call.left_out = grow(call.output, call.left_out, event.text)


def _tool_content(state: SessionState, event: e.ToolContent, record: Record) -> None:
    call = _find(state, event.turn, event.call, CallPart)
    if call is not None and not call.done:
        call.content = event.content


def _tool_ended(state: SessionState, event: e.ToolEnded, record: Record) -> None:
    call = _find(state, event.turn, event.call, CallPart)
    if call is not None and not call.done:
        call.done, call.ok, call.outcome, call.sign_in = True, event.ok, event.outcome, None
        call.output, call.left_out, call.blob, call.error = event.output, 0, event.blob, event.error
        call.content = event.content or call.content
        call.past, call.detail, call.result = event.title, event.detail, event.result
        call.exit_code = event.exit_code
        call.started, call.took = 0, _took(call.started, record)
        if not call.ready:
            call.input = ""  # it never became whole: its pieces may be compacted, and every reader must agree
        _settle(state, call)


_ASKED = attrgetter(
    *("approval", "kind", "title", "input", "expires", "options", "path", "command", "diff", "editable", "result")
)
"""What an approval takes over, in the order of its fields."""


def _approval_asked(state: SessionState, event: e.ApprovalAsked, record: Record) -> None:
    call = _find(state, event.turn, event.call, CallPart)
    if call is not None and not call.done:
        approval = Approval(*_ASKED(event))
        approval.proposed = event.meta.get("result") or {}
        approval.file = os.path.join(state.cwd, event.path) if event.path and event.diff else ""
        approval.files, approval.why, approval.unclear = event.files, event.why, event.unclear
        call.approvals.append(approval)
        _count(state, event.approval)
        turn = state.active
        if turn is not None:
            turn.asked = turn.asked or record.time


def _approval_answered(state: SessionState, event: e.ApprovalAnswered, record: Record) -> None:
    found = find_approval(state, event.approval)
    if found is None or found[1].answered:
        return
    call, approval = found
    approval.answered, approval.allowed, approval.by = True, event.allowed, event.by
    approval.option, approval.reason, approval.meta = event.option, event.reason, event.meta
    approval.grant, approval.covers = event.grant, event.covers
    call.input = event.input or call.input
    _settle(state, call)
    _answered(state, record.time)


def _settle(state: SessionState, part: Part) -> None:
    """A part changes in the last turn, or in none that is looked at."""
    if state.turns:
        state.turns[-1].settle(part)


def _answered(state: SessionState, time: int) -> None:
    """Stop counting waiting time, if that was the last open request to a person."""
    if state.active is not None and not waiting(state.active):
        _waited(state.active, time)


def _waited(turn: TurnState, time: int) -> None:
    turn.waited += max(0, time - turn.asked) if turn.asked else 0
    turn.asked = 0


def _question_asked(state: SessionState, event: e.QuestionAsked, record: Record) -> None:
    turn = _active(state, event.turn)
    if turn is not None:
        turn.add(e.like(QuestionPart, event, id=event.question))
        turn.asked = turn.asked or record.time
        _mark(state, "read", False)
        _count(state, event.question)


def _question_drafted(state: SessionState, event: e.QuestionDrafted, record: Record) -> None:
    question = _find(state, event.turn, event.question, QuestionPart)
    if question is not None and not question.done:
        answers = {name: answer for name, answer in question.answers.items() if name != event.field}
        question.answers = answers if event.answer is None else {**answers, event.field: event.answer}


def _question_answered(state: SessionState, event: e.QuestionAnswered, record: Record) -> None:
    question = _find(state, event.turn, event.question, QuestionPart)
    if question is not None and not question.done:
        question.response, question.by = event.response, event.by
        question.answers = {**question.answers, **event.answers}
        _settle(state, question)
        _answered(state, record.time)


def _queue_added(state: SessionState, event: e.QueueAdded, record: Record) -> None:
    if state.draft:
        _begin(state, record)
    if state.pending(event.pending) is None:
        state.queue.append(PendingState(event.pending, event.kind, event.message, event.by))
        _count(state, event.pending)


def _queue_edited(state: SessionState, event: e.QueueEdited, record: Record) -> None:
    pending = state.pending(event.pending)
    if pending is not None:
        pending.message = event.message


def _queue_reordered(state: SessionState, event: e.QueueReordered, record: Record) -> None:
    """Put the named messages first, in the given order; the others follow in their old order."""
    rank = {ident: index for index, ident in reversed(list(enumerate(event.order)))}
    state.queue.sort(key=lambda pending: rank.get(pending.id, len(event.order)))


def _queue_removed(state: SessionState, event: e.QueueRemoved, record: Record) -> None:
    state.queue = [pending for pending in state.queue if pending.id != event.pending]
    state.queue_held = state.queue_held and bool(state.queue)  # an empty queue is not held


def _active(state: SessionState, turn: str) -> TurnState | None:
    active = state.active
    return active if active is not None and active.id == turn else None


def _find(state: SessionState, turn: str, ident: str, kind: type[P]) -> P | None:
    active = _active(state, turn)
    part = active.part(ident) if active is not None else None
    return part if isinstance(part, kind) else None


def find_approval(state: SessionState, ident: str) -> tuple[CallPart, Approval] | None:
    for turn in reversed(state.turns):
        for part in turn.parts:
            if isinstance(part, CallPart):
                for approval in part.approvals:
                    if approval.id == ident:
                        return part, approval
    return None


def _count(state: SessionState, ident: str) -> None:
    """Remembers the highest number of our own ids; ids that clients or agents chose do not count."""
    number = ident[ident.rfind(".") + 2 :]  # `p12`, `session-1.a4`
    if number.isdecimal() and len(number) < 16 and (count := int(number)) > state.ids:
        state.ids = count


def _set(field: str, value: Callable[[Any], object]) -> Fold:
    """For events that change one field."""
    return lambda state, event, record: setattr(state, field, value(event))


_FOLDS: dict[type[e.Event], Fold] = {
    e.SessionStarted: _started,
    e.SessionShared: lambda state, event, record: state.share(event),
    e.SessionRenamed: _renamed,
    e.SessionModel: _model,
    e.SessionConfigured: _configured,
    e.FolderAdded: _folder_added,
    e.FolderRemoved: _folder_removed,
    e.SessionArchived: lambda state, event, record: _mark(state, "archived", event.archived, event.only),
    e.SessionRead: lambda state, event, record: _mark(state, "read", event.read, event.only),
    e.SessionVendor: _set("vendor", attrgetter("id")),
    e.ChatsOrdered: _set("chat_order", attrgetter("order")),
    e.ChatMoved: _chat_moved,
    e.SessionClosed: _set("closed", lambda _: True),
    e.SessionReopened: _set("closed", lambda _: False),
    e.SessionTruncated: _truncated,
    e.HistoryCopied: _copied,
    e.ChildStarted: _child,
    e.ClientJoined: _joined,
    e.ClientLeft: _left,
    e.ClientKept: _kept,
    e.SignInAsked: _sign_in,
    e.SignInSettled: _sign_in,
    e.TurnStarted: _turn_started,
    e.TurnResumed: _turn_resumed,
    e.TurnStep: _turn_step,
    e.TurnEnded: _turn_ended,
    e.PartStarted: _part_started,
    e.PartDelta: _part_delta,
    e.PartEnded: _part_ended,
    e.UsageReported: _usage,
    e.ToolStarted: _tool_started,
    e.ToolInput: _tool_input,
    e.ToolReady: _tool_ready,
    e.ToolDecided: _tool_decided,
    e.ToolOutput: _tool_output,
    e.ToolContent: _tool_content,
    e.ToolEnded: _tool_ended,
    e.ApprovalAsked: _approval_asked,
    e.ApprovalAnswered: _approval_answered,
    e.QuestionAsked: _question_asked,
    e.QuestionDrafted: _question_drafted,
    e.QuestionAnswered: _question_answered,
    e.QueueAdded: _queue_added,
    e.QueueEdited: _queue_edited,
    e.QueueReordered: _queue_reordered,
    e.QueueRemoved: _queue_removed,
    e.QueueHeld: _set("queue_held", attrgetter("held")),
}

"""Translates log events to actions of a conversation, in both dialects: `session/…` of version 1, `chat/…` later.

`conversation(record, state, seed)` is pure. `state` is the session at the record or later: what is read from it either
never changes (a part's kind, a call's owner) or is sent in full each time. So folding the actions always gives the
state that `snapshots` computes, also when a reconnecting client receives an old record with the current state.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from portico.doors.ahp.view import card, content, message, names, parts
from portico.doors.ahp.view.snapshots import MODERN, client, model
from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json, present
from portico.doors.ahp.wire.versions import Dialect, iso
from portico.kernel import events as e
from portico.kernel.customization import KEY as CUSTOMIZATION
from portico.kernel.events import Record
from portico.kernel.state import CHANGES, DRAFT, CallPart, QuestionPart, SessionState, TextPart, TurnState, chat_flag

SEED = Dialect("1", lambda: 0)
_SINCE_AUTOMATIONS = Dialect("0.9.0", lambda: 0)


class Scene(Struct, frozen=True, gc=False):
    record: Record
    state: SessionState
    seed: bool

    @property
    def dialect(self) -> Dialect:
        return SEED if self.seed else MODERN

    def part(self, turn: str, ident: str) -> Any:
        found = self.state.turn(turn)
        return found.part(ident) if found is not None else None

    def call(self, turn: str, ident: str) -> CallPart | None:
        part = self.part(turn, ident)
        return part if isinstance(part, CallPart) else None

    def message(self, of: e.Message) -> Json:
        return {self.dialect.message: message.to_wire(of, self.dialect)}


def conversation(record: Record, state: SessionState, seed: bool) -> list[Outgoing]:
    event = record.event
    translate = _TABLE.get(type(event))
    said = translate(event, Scene(record, state, seed)) if translate is not None else []
    return [*said, activity_changed(state)] if type(event) in ACTIVE else said


def activity_changed(state: SessionState) -> Outgoing:
    """The current activity; without the field there is none."""
    words = card.activity(state)
    return Outgoing("activityChanged", {"activity": words} if words else {})


ACTIVE = frozenset(
    {
        e.TurnStarted,
        e.TurnResumed,
        e.TurnEnded,
        e.SessionTruncated,
        e.HistoryCopied,
        e.ToolReady,
        e.ToolDecided,
        e.ToolEnded,
        e.ApprovalAsked,
        e.ApprovalAnswered,
        e.QuestionAsked,
        e.QuestionAnswered,
    }
)
"""Events that may change the reported activity of a session."""


# -- turns -----------------------------------------------------------------------------------------------------


def _turn_started(event: e.TurnStarted, scene: Scene) -> list[Outgoing]:
    fields: Json = {"turnId": event.turn, **scene.message(event.message)}
    if not scene.seed:
        fields["startedAt"] = iso(scene.record.time)
    if event.pending is not None:
        fields["queuedMessageId"] = event.pending
    started = [Outgoing("turnStarted", fields, event.by)]
    if event.message.origin == message.AUTOMATION and not scene.seed:
        since = {**fields, "message": message.to_wire(event.message, _SINCE_AUTOMATIONS)}
        started = _changed_in_9("turnStarted", fields, since, event.by)
    return [*started, *(_steering(scene) if event.pending is not None else [])]


def _turn_ended(event: e.TurnEnded, scene: Scene) -> list[Outgoing]:
    fields: Json = {"turnId": event.turn}
    turn = scene.state.turn(event.turn)
    if not scene.seed:
        fields["duration"] = max(0, scene.record.time - (turn.started if turn is not None else scene.record.time))
    if event.outcome == "completed":
        return [Outgoing("turnComplete", fields)]
    if event.outcome == "cancelled":
        return [Outgoing("turnCancelled", fields, event.by)]
    told = {**fields, "error": parts.error_info(event.error)}
    if scene.seed:
        return [Outgoing("error", told)]
    # With `error` beside the part VS Code rebuilds it and forgets that the turn can be resumed.
    part = parts.error_part(event.error, turn)
    return _changed_in_9("error", {**told, "part": part}, {**fields, "part": part})


def _changed_in_9(name: str, before: Json, since: Json, by: str = "") -> list[Outgoing]:
    return [Outgoing(name, before, by, before="0.9.0"), Outgoing(name, since, by, since="0.9.0")]


def _turn_resumed(event: e.TurnResumed, scene: Scene) -> list[Outgoing]:
    """Clients without resume see the turn truncated and started again with all its parts."""
    resumed = [Outgoing("turnResume", {"turnId": event.turn}, event.by)] if not scene.seed else []
    index = next((at for at, turn in enumerate(scene.state.turns) if turn.id == event.turn), None)
    if index is None:
        return resumed
    turn = scene.state.turns[index]
    return resumed + _told_anew(scene, index, turn.stops[-1].parts if turn.stops else len(turn.parts), before="0.9.0")


def _told_anew(scene: Scene, index: int, shown: int, before: str | None = None) -> list[Outgoing]:
    """Send a turn again with its first `shown` parts: no action changes sent parts or resumes an ended turn."""
    back: Json = {"turnId": scene.state.turns[index - 1].id} if index else {}
    truncated = Outgoing("truncated", back, before=before)
    return [truncated, *_shown(scene, scene.state.turns[index], shown, before)]


def _shown(scene: Scene, turn: TurnState, shown: int, before: str | None = None) -> list[Outgoing]:
    """The start of a turn, and its first `shown` parts."""
    start: Json = {"turnId": turn.id, **scene.message(turn.message)}
    if not scene.seed:
        start["startedAt"] = iso(turn.started)
    said = [Outgoing("turnStarted", start, before=before)]
    for part in turn.parts[:shown]:
        made = parts.response_part(part, scene.dialect)
        if made is not None:
            said.append(Outgoing("responsePart", {"turnId": turn.id, "part": made}, before=before))
    if turn.usage is not None:
        spent = parts.usage(turn.usage, scene.seed)
        said.append(Outgoing("usage", {"turnId": turn.id, "usage": spent}, before=before))
    return said


def _copied(event: e.HistoryCopied, scene: Scene) -> list[Outgoing]:
    """Turns that were imported into a session that clients may show, such as those of the agent's own program."""
    said: list[Outgoing] = []
    for turn in msgspec.convert(event.turns, list[TurnState]):
        said += [*_shown(scene, turn, len(turn.parts)), *_copied_end(scene, turn)]
    return [*said, *_still_read(scene)]


def _copied_end(scene: Scene, turn: TurnState) -> list[Outgoing]:
    ended = _turn_ended(e.TurnEnded(turn.id, turn.outcome or "completed", turn.error), scene)
    if not scene.seed:
        for each in ended:
            each.fields["duration"] = parts.duration(turn)
    return ended


def _truncated(event: e.SessionTruncated, scene: Scene) -> list[Outgoing]:
    return [Outgoing("truncated", {"turnId": event.turn} if event.turn is not None else {}, event.by)]


def _part_started(event: e.PartStarted, scene: Scene) -> list[Outgoing]:
    if event.kind == "notice":
        return []
    kind = "markdown" if event.kind == "text" else "reasoning"
    return [Outgoing("responsePart", {"turnId": event.turn, "part": {"kind": kind, "id": event.part, "content": ""}})]


def _part_delta(event: e.PartDelta, scene: Scene) -> list[Outgoing]:
    part = scene.part(event.turn, event.part)
    if not isinstance(part, TextPart) or part.kind == "notice":
        return []
    name = "delta" if part.kind == "text" else "reasoning"
    return [Outgoing(name, {"turnId": event.turn, "partId": event.part, "content": event.text})]


def _part_ended(event: e.PartEnded, scene: Scene) -> list[Outgoing]:
    part = scene.part(event.turn, event.part)
    if not isinstance(part, TextPart):
        return []
    if part.kind != "notice":
        return _corrected(event, scene) if event.replaces else []
    return [
        Outgoing("responsePart", {"turnId": event.turn, "part": parts.notice(event.part, event.text, scene.seed)}),
    ]


def _corrected(event: e.PartEnded, scene: Scene) -> list[Outgoing]:
    index = next((at for at, turn in enumerate(scene.state.turns) if turn.id == event.turn), None)
    if index is None or scene.record.pos not in scene.state.turns[index].corrections:
        return []
    said = _told_anew(scene, index, scene.state.turns[index].corrections[scene.record.pos])
    return [*said, *_still_read(scene)]


def _still_read(scene: Scene) -> list[Outgoing]:
    """Restore the read flag: the start of a turn makes a session unread for clients, also if it is not a new one."""
    read = scene.state.read if scene.seed else chat_flag(scene.state, "read")
    return [Outgoing("isReadChanged", {"isRead": True})] if read else []


def _usage(event: e.UsageReported, scene: Scene) -> list[Outgoing]:
    turn = scene.state.turn(event.turn)
    if turn is None or turn.usage is None:
        return []
    return [Outgoing("usage", {"turnId": event.turn, "usage": parts.usage(turn.usage, scene.seed)})]


# -- tool calls ------------------------------------------------------------------------------------------------


def _of(turn: str, call: str) -> Json:
    return {"turnId": turn, "toolCallId": call}


def _tool_started(event: e.ToolStarted, scene: Scene) -> list[Outgoing]:
    fields: Json = {**_of(event.turn, event.call), "toolName": event.tool, "displayName": event.tool}
    if event.owner is not None:
        fields |= {"toolClientId": event.owner} if scene.seed else {"contributor": parts.contributor(event.owner)}
    elif event.server and not scene.seed:
        fields["contributor"] = parts.of_server(event.server)
    meta = card.started(event.kind, event.server, event.tool) | event.meta
    return [Outgoing("toolCallStart", fields | present(_meta=meta))]


def _tool_input(event: e.ToolInput, scene: Scene) -> list[Outgoing]:
    return [Outgoing("toolCallDelta", {**_of(event.turn, event.part), "content": event.text})]


def _tool_ready(event: e.ToolReady, scene: Scene) -> list[Outgoing]:
    call = scene.call(event.turn, event.call)
    if call is not None and (call.rule or any(not each.result for each in call.approvals)):
        return []  # the approval or the decision sends it
    return [_ready(scene, event.turn, call, "not-needed")] if call is not None else []


def _ready(scene: Scene, turn: str, call: CallPart, confirmed: str | None, **more: Any) -> Outgoing:
    """The call as it is shown from now on."""
    fields: Json = {**_of(turn, call.id), "invocationMessage": card.message(call), **more}
    if "toolInput" not in fields and (shown := card.tool_input(call)):
        fields["toolInput"] = shown
    if confirmed is not None:
        fields["confirmed"] = confirmed
    if not scene.seed and call.ready:
        fields |= card.intention(call)
    return Outgoing("toolCallReady", fields | present(_meta=parts.meta(call, scene.seed)))


def _tool_decided(event: e.ToolDecided, scene: Scene) -> list[Outgoing]:
    call = scene.call(event.turn, event.call)
    if call is None:
        return []
    if event.allowed:
        if any(each.answered for each in call.approvals):
            return []  # it is already running, approved by a person
        return [_ready(scene, event.turn, call, "setting"), *_again(event.turn, call, scene.seed)]
    return [
        _ready(scene, event.turn, call, None),
        _refusal(event.turn, call.id, parts.ruled_out(event.rule)),
    ]


def _refusal(turn: str, call: str, why: Json, option: str | None = None, by: str = "") -> Outgoing:
    fields: Json = {**_of(turn, call), "approved": False, **why}
    if option is not None:
        fields["selectedOptionId"] = option
    return Outgoing("toolCallConfirmed", fields, by)


def _again(turn: str, call: CallPart, seed: bool) -> list[Outgoing]:
    """Send the content again: a confirmation during a run makes clients drop it."""
    shown = content.content_of(call, seed)
    if not shown or call.done:
        return []
    return [
        Outgoing("toolCallContentChanged", {**_of(turn, call.id), "content": shown, **parts.later_meta(call, seed)})
    ]


def _tool_output(event: e.ToolOutput, scene: Scene) -> list[Outgoing]:
    call = scene.call(event.turn, event.part)
    if call is None or call.done:
        return []  # the end of the call contains it
    size = len(call.output)
    if content.visible(size) == content.visible(max(0, size - len(event.text))):
        return []
    return _again(event.turn, call, scene.seed)


def _tool_content(event: e.ToolContent, scene: Scene) -> list[Outgoing]:
    call = scene.call(event.turn, event.call)
    if call is None or (call.done and not event.by):
        return []
    shown = content.content_of(call, scene.seed) if not call.done else event.content
    fields: Json = {**_of(event.turn, event.call), "content": shown, **parts.later_meta(call, scene.seed)}
    return [Outgoing("toolCallContentChanged", fields, event.by)]


def _tool_ended(event: e.ToolEnded, scene: Scene) -> list[Outgoing]:
    call = scene.call(event.turn, event.call)
    if call is None:
        return []
    if event.outcome in ("cancelled", "interrupted"):
        turn = scene.state.turn(event.turn)
        if turn is None or turn.outcome is not None:
            return []  # the turn's end skips it
        return [
            _ready(scene, event.turn, call, None, **({} if call.ready else {"invocationMessage": ""})),
            _refusal(event.turn, call.id, {"reason": "skipped"}),
        ]
    said = [] if call.ready else [_ready(scene, event.turn, call, "not-needed")]
    fields: Json = {**_of(event.turn, call.id), "result": parts.result(call, scene.seed)}
    return [*said, Outgoing("toolCallComplete", {**fields, **parts.later_meta(call, scene.seed)}, event.by)]


def _sign_in_asked(event: e.SignInAsked, scene: Scene) -> list[Outgoing]:
    return [Outgoing("toolCallAuthRequired", {**_of(event.turn, event.call), "auth": parts.auth(event)})]


def _sign_in_settled(event: e.SignInSettled, scene: Scene) -> list[Outgoing]:
    """Also sent when no token was provided: the call continues and fails."""
    return [Outgoing("toolCallAuthResolved", _of(event.turn, event.call))]


def _approval_asked(event: e.ApprovalAsked, scene: Scene) -> list[Outgoing]:
    call = scene.call(event.turn, event.call)
    approval = next((each for each in call.approvals if each.id == event.approval), None) if call else None
    if call is None or approval is None:
        return []
    if event.result:
        result = parts.provisional(call, approval, scene.seed)
        fields = {**_of(event.turn, call.id), "result": result, "requiresResultConfirmation": True}
        return [Outgoing("toolCallComplete", fields, str(event.meta.get("by", "")))]
    asked = card.shown_input(call, approval, event.input)
    more = parts.confirmation(call, approval, scene.seed) | ({"toolInput": asked} if asked else {})
    return [_ready(scene, event.turn, call, None, **more)]


def _approval_answered(event: e.ApprovalAnswered, scene: Scene) -> list[Outgoing]:
    turn = scene.state.turn(event.turn)
    calls = [part for part in turn.parts if isinstance(part, CallPart)] if turn is not None else []
    asked = [(call, each) for call in calls for each in call.approvals if each.id == event.approval]
    if not asked or event.option is None:
        return []  # answered by the end of the turn, which reports it
    call, approval = asked[0]
    if approval.result:
        return [Outgoing("toolCallResultConfirmed", {**_of(event.turn, call.id), "approved": event.allowed}, event.by)]
    if not event.allowed:
        why = parts.refusal(event.meta, event.reason, scene.dialect)
        return [_refusal(event.turn, call.id, why, event.option, event.by)]
    how = event.meta.get("confirmed", "user-action")
    fields: Json = {**_of(event.turn, call.id), "approved": True, "confirmed": how}
    fields["selectedOptionId"] = event.option
    before: list[Outgoing] = []
    if event.input is not None:
        fields["editedToolInput"] = card.shown_input(call, approval, event.input)
        if not scene.seed:  # while it waits, its message can still be replaced; version 1 cannot, see `parts`
            shown = {**_of(event.turn, call.id), "invocationMessage": card.message(call)}
            before.append(Outgoing("toolCallReady", shown))
    return [*before, Outgoing("toolCallConfirmed", fields, event.by), *_again(event.turn, call, scene.seed)]


# -- questions and the queue -----------------------------------------------------------------------------------


def _question_asked(event: e.QuestionAsked, scene: Scene) -> list[Outgoing]:
    part = QuestionPart(event.question, event.text, event.fields, event.url, evidence=event.evidence)
    return [Outgoing("inputRequested", {"request": parts.request(part)})]


def _question_drafted(event: e.QuestionDrafted, scene: Scene) -> list[Outgoing]:
    fields: Json = {"requestId": event.question, "questionId": event.field}
    return [Outgoing("inputAnswerChanged", fields | ({"answer": event.answer} if event.answer else {}), event.by)]


def _question_answered(event: e.QuestionAnswered, scene: Scene) -> list[Outgoing]:
    fields: Json = {"requestId": event.question, "response": event.response}
    return [Outgoing("inputCompleted", fields | ({"answers": event.answers} if event.answers else {}), event.by)]


_KINDS = {"queue": "queued", "steer": "steering"}


def _queue_added(event: e.QueueAdded, scene: Scene) -> list[Outgoing]:
    fields = {"kind": _KINDS[event.kind], "id": event.pending, **scene.message(event.message)}
    return [Outgoing("pendingMessageSet", fields, event.by)]


def _queue_edited(event: e.QueueEdited, scene: Scene) -> list[Outgoing]:
    kind = _KINDS[event.kind]
    fields = {"kind": kind, "id": event.pending, **scene.message(event.message)}
    return [Outgoing("pendingMessageSet", fields, event.by), *(_steering(scene) if kind == "steering" else [])]


def _steering(scene: Scene) -> list[Outgoing]:
    """AHP supports one steering message, the host several: the last one is shown."""
    waiting = [each for each in scene.state.queue if each.kind == "steer"]
    if not waiting:
        return []
    fields = {"kind": "steering", "id": waiting[-1].id, **scene.message(waiting[-1].message)}
    return [Outgoing("pendingMessageSet", fields)]


def _queue_removed(event: e.QueueRemoved, scene: Scene) -> list[Outgoing]:
    removed = Outgoing("pendingMessageRemoved", {"kind": _KINDS[event.kind], "id": event.pending}, event.by)
    return [removed, *(_steering(scene) if event.kind == "steer" else [])]


def _queue_reordered(event: e.QueueReordered, scene: Scene) -> list[Outgoing]:
    return [Outgoing("queuedMessagesReordered", {"order": event.order}, event.by), *_steering(scene)]


def _kept(event: e.ClientKept, scene: Scene) -> list[Outgoing]:
    if event.key == DRAFT:
        if scene.seed:
            return []
        return [Outgoing("draftChanged", {"draft": event.value} if event.value is not None else {}, event.by)]
    if event.key == CHANGES:
        return [Outgoing("diffsChanged", {"diffs": parts.diffs(scene.state, event.value or {})})] if scene.seed else []
    if event.key.startswith(CUSTOMIZATION) and scene.seed and event.value is not None:
        if event.action.get("type") != "session/customizationToggled":
            return []  # version 1 knows no servers
        fields = {"uri": event.value["uri"], "enabled": event.value["enabled"]}
        return [Outgoing("customizationToggled", fields, event.by)]
    return []


def _folder(event: e.FolderAdded | e.FolderRemoved, scene: Scene) -> list[Outgoing]:
    if scene.seed or not event.chat:
        return []
    name = "workingDirectorySet" if isinstance(event, e.FolderAdded) else "workingDirectoryRemoved"
    return [Outgoing(name, {"directory": names.file_uri(event.folder)}, event.by)]


# -- version 1: other fields of the same state ----------------------------------------------------------------------


def _only_seed(make: Callable[[Any, Scene], list[Outgoing]]) -> Callable[[Any, Scene], list[Outgoing]]:
    return lambda event, scene: make(event, scene) if scene.seed else []


def _renamed(event: e.SessionRenamed, scene: Scene) -> list[Outgoing]:
    return [Outgoing("titleChanged", {"title": event.title}, event.by)]


def _model(event: e.SessionModel, scene: Scene) -> list[Outgoing]:
    return [Outgoing("modelChanged", {"model": model(event.model, event.config)}, event.by)]


def configured(event: e.SessionConfigured, state: SessionState) -> Outgoing:
    """A replacement that keeps some settings is sent in full: otherwise a client would drop the kept ones."""
    if event.replace:
        return Outgoing(
            "configChanged", {"config": state.config if event.keeps else event.values, "replace": True}, event.by
        )
    return Outgoing("configChanged", {"config": event.values}, event.by)


def _configured(event: e.SessionConfigured, scene: Scene) -> list[Outgoing]:
    return [configured(event, scene.state)]


def _read(event: e.SessionRead, scene: Scene) -> list[Outgoing]:
    return [Outgoing("isReadChanged", {"isRead": event.read}, event.by)] if _is_here(event, scene) else []


def _archived(event: e.SessionArchived, scene: Scene) -> list[Outgoing]:
    return [Outgoing("isArchivedChanged", {"isArchived": event.archived}, event.by)] if _is_here(event, scene) else []


def _is_here(event: e.SessionRead | e.SessionArchived, scene: Scene) -> bool:
    """Whether the flag belongs to this target: version 1 has only the flag of the session."""
    return event.only != ("chat" if scene.seed else "session")


def _client_changed(event: e.ClientJoined | e.ClientLeft, scene: Scene) -> list[Outgoing]:
    clients = scene.state.clients
    by = event.by if isinstance(event, e.ClientLeft) else str(event.meta.get("by", ""))
    if by.endswith(".session/activeClientToolsChanged") and clients:
        return [Outgoing("activeClientToolsChanged", {"tools": client(clients[-1])["tools"]}, by)]
    fields: Json = {"activeClient": client(clients[-1]) if clients else None}
    return [Outgoing("activeClientChanged", fields, by)]


def _moved(event: e.ChatMoved, scene: Scene) -> list[Outgoing]:
    """The default chat of a session stays where it is."""
    alone = event.session == scene.state.id and event.to is None and not scene.seed
    return [Outgoing("movableChanged", {"movable": False})] if alone else []


_TABLE: dict[type[e.Event], Callable[[Any, Scene], list[Outgoing]]] = {
    e.TurnStarted: _turn_started,
    e.TurnEnded: _turn_ended,
    e.TurnResumed: _turn_resumed,
    e.SessionTruncated: _truncated,
    e.HistoryCopied: _copied,
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
    e.SignInAsked: _sign_in_asked,
    e.SignInSettled: _sign_in_settled,
    e.QuestionAsked: _question_asked,
    e.QuestionDrafted: _question_drafted,
    e.QuestionAnswered: _question_answered,
    e.QueueAdded: _queue_added,
    e.QueueEdited: _queue_edited,
    e.QueueRemoved: _queue_removed,
    e.QueueReordered: _queue_reordered,
    e.ClientKept: _kept,
    e.FolderAdded: _folder,
    e.FolderRemoved: _folder,
    e.SessionRenamed: _only_seed(_renamed),
    e.SessionModel: _only_seed(_model),
    e.SessionConfigured: _only_seed(_configured),
    e.SessionRead: _read,
    e.SessionArchived: _archived,
    e.ChatMoved: _moved,
    e.ClientJoined: _only_seed(_client_changed),
    e.ClientLeft: _only_seed(_client_changed),
}
"""Chats have `isReadChanged` and `isArchivedChanged` since 1.0; the dialect's filter keeps them from older ones."""

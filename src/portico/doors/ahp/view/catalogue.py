"""From the log's events to the actions of a session's own channel: the catalogue around its chats (0.5.1 and later).

`state` is the chat that the event happened in; what concerns the session as a whole comes from the default chat alone.
"""

from collections.abc import Callable
from typing import Any

from portico.doors.ahp.view import customizations, names, snapshots, translate
from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.status import activity_bits
from portico.doors.ahp.wire.versions import iso
from portico.kernel import events as e
from portico.kernel.events import Record
from portico.kernel.state import CHANGES, ClientState, SessionState

ChatLine = Callable[[str], Json | None]
"""Maps the id of a child session to its catalogue entry in the newest version."""


def catalogue(record: Record, state: SessionState, line: ChatLine) -> list[Outgoing]:
    said = _said(record, state, line)
    return [*said, Outgoing("ready", {})] if state.parent is None and record.pos == state.begun else said


def _said(record: Record, state: SessionState, line: ChatLine) -> list[Outgoing]:
    event = record.event
    if isinstance(event, e.ChildStarted):
        summary = line(event.session)
        return _added(summary) if summary is not None else []
    if isinstance(event, e.ClientKept):
        if event.key == CHANGES:
            return [_updated(state, snapshots.counted(state))]
        return _kept(event, state) if state.parent is None else []
    if isinstance(event, e.FolderAdded | e.FolderRemoved):
        if event.chat:
            return [_updated(state, snapshots.chosen(state))]
        return _folders(event, state) if state.parent is None else []
    if isinstance(event, e.ChatsOrdered):
        return [_reordered(event, state, line)]
    if isinstance(event, e.ChatMoved):
        return _moved(event, state, line)
    if isinstance(event, e.SessionConfigured):
        return [translate.configured(event, state)] if state.parent is None else []
    said = _WHOLE[type(event)](event) if state.parent is None and type(event) in _WHOLE else []
    if isinstance(event, e.SessionRenamed):
        said = [*said, _updated(state, {"title": state.title})]
    if isinstance(event, _UNREAD) and state.parent is None:
        said = [*said, Outgoing("isReadChanged", {"isRead": state.read})]
    if type(event) in translate.ACTIVE and state.parent is None:
        said = [*said, translate.activity_changed(state)]
    if type(event) in _MOVING:
        said = [*said, *_needed(event, state)]
    if type(event) in _MOVING or (isinstance(event, _FLAGS) and event.only != "session"):
        said = [*said, *_stands(state)]
    return said


def _added(summary: Json) -> list[Outgoing]:
    added = [Outgoing("chatAdded", {"summary": summary})]
    if "movable" in summary:  # new in 1.0
        older = {key: value for key, value in summary.items() if key != "movable"}
        added = [
            Outgoing("chatAdded", {"summary": summary}, since="1.0.0"),
            Outgoing("chatAdded", {"summary": older}, before="1.0.0"),
        ]
    return [*added, *_plain(summary["resource"], summary["status"])]


def _reordered(event: e.ChatsOrdered, state: SessionState, line: ChatLine) -> Outgoing:
    found = {ident: line(ident) for ident in dict.fromkeys((*event.order, state.id, *state.children))}
    return Outgoing("chatsReordered", {"chats": [each["resource"] for each in found.values() if each is not None]})


def _moved(event: e.ChatMoved, state: SessionState, line: ChatLine) -> list[Outgoing]:
    """Actions for the session that the chat left and for the one that it joined."""
    if state.id == event.session:
        return []
    found = [each for ident in (event.session, *event.below) if (each := line(ident)) is not None]
    if state.id == event.to:
        return [said for each in found for said in _added(each)]
    return [Outgoing("chatRemoved", {"chat": each["resource"]}) for each in found]


def _stands(state: SessionState) -> list[Outgoing]:
    bits = snapshots.chat_status(state)
    changes = {"status": bits, "modifiedAt": iso(snapshots.moved(state))}
    return [_updated(state, changes), *_plain(names.chat_uri(state), bits)]


def _plain(chat: str, bits: int) -> list[Outgoing]:
    """Before 1.0 only sessions have flags: older versions receive the status again without them."""
    activity = activity_bits(bits)
    if bits == activity:
        return []
    return [Outgoing("chatUpdated", {"chat": chat, "changes": {"status": activity}}, before="1.0.0")]


def _kept(event: e.ClientKept, state: SessionState) -> list[Outgoing]:
    if customizations.is_plugin(event):
        return customizations.contributed(event, state.client_data)
    return customizations.actions(event) if customizations.is_switch(event) else []


def _updated(state: SessionState, changes: Json) -> Outgoing:
    return Outgoing("chatUpdated", {"chat": names.chat_uri(state), "changes": changes})


def _needed(event: Any, state: SessionState) -> list[Outgoing]:
    """Updates of the input needed from a person, for clients that subscribe to the session but not to its chats."""
    if isinstance(event, e.QuestionAsked | e.QuestionDrafted | e.QuestionAnswered):
        return [_need(state, event.turn, event.question, event.question)]
    if isinstance(event, _OF_CALLS):
        return [_need(state, event.turn, event.call, snapshots.needed_id(state, event.call))]
    if isinstance(event, e.ApprovalAnswered):
        call = _call_of(state, event)
        return [_need(state, event.turn, call, snapshots.needed_id(state, call))] if call else []
    return []


def _need(state: SessionState, turn_id: str, part_id: str, ident: str) -> Outgoing:
    turn = state.turn(turn_id)
    part = turn.part(part_id) if turn is not None and turn.outcome is None else None
    request = snapshots.needed(state, turn, part) if turn is not None and part is not None else None
    return (
        Outgoing("inputNeededSet", {"request": request}) if request else Outgoing("inputNeededRemoved", {"id": ident})
    )


def _call_of(state: SessionState, event: e.ApprovalAnswered) -> str | None:
    turn = state.turn(event.turn)
    for part in turn.parts if turn is not None else []:
        if any(each.id == event.approval for each in getattr(part, "approvals", [])):
            return part.id
    return None


def _folders(event: e.FolderAdded | e.FolderRemoved, state: SessionState) -> list[Outgoing]:
    directory: Json = {"directory": names.file_uri(event.folder)}
    if isinstance(event, e.FolderAdded):
        return [Outgoing("workingDirectorySet", directory, event.by)]
    if event.replacement is None:
        return [Outgoing("workingDirectoryRemoved", directory, event.by)]
    after = names.file_uri(event.replacement)
    return [
        Outgoing("workingDirectoryReplaced", {**directory, "replacement": after}, event.by),
        *_replaced(event.folder, event.replacement, state),
    ]


def _replaced(folder: str, replacement: str, state: SessionState) -> list[Outgoing]:
    """For versions without replacement. They append to the existing list, so all others are added again after the
    new first one."""
    others = state.folders if replacement == state.cwd else []
    gone = [("workingDirectoryRemoved", each) for each in (folder, *others)]
    come = [("workingDirectorySet", each) for each in (replacement, *others)]
    return [Outgoing(name, {"directory": names.file_uri(each)}, before="0.8.0") for name, each in (*gone, *come)]


def _renamed(event: e.SessionRenamed) -> list[Outgoing]:
    return [Outgoing("titleChanged", {"title": event.title}, event.by)]


def _read(event: e.SessionRead) -> list[Outgoing]:
    return [Outgoing("isReadChanged", {"isRead": event.read}, event.by)] if event.only != "chat" else []


def _archived(event: e.SessionArchived) -> list[Outgoing]:
    return [Outgoing("isArchivedChanged", {"isArchived": event.archived}, event.by)] if event.only != "chat" else []


def _joined(event: e.ClientJoined) -> list[Outgoing]:
    shown = snapshots.client(ClientState(event.client, event.name, event.tools, event.meta))
    return [Outgoing("activeClientSet", {"activeClient": shown}, str(event.meta.get("by", "")))]


def _left(event: e.ClientLeft) -> list[Outgoing]:
    return [Outgoing("activeClientRemoved", {"clientId": event.client}, event.by)]


_WHOLE: dict[type[e.Event], Callable[[Any], list[Outgoing]]] = {
    e.SessionRenamed: _renamed,
    e.SessionRead: _read,
    e.SessionArchived: _archived,
    e.ClientJoined: _joined,
    e.ClientLeft: _left,
}

_UNREAD = (e.TurnStarted, e.TurnResumed, e.QuestionAsked)
"""Events that may make a session unread."""

_OF_CALLS = (e.ApprovalAsked, e.ToolReady, e.ToolEnded, e.ToolDecided, e.SignInAsked, e.SignInSettled)

_FLAGS = (e.SessionRead, e.SessionArchived)

_MOVING = frozenset(
    {
        e.TurnStarted,
        e.TurnResumed,
        e.TurnEnded,
        e.SessionTruncated,
        e.HistoryCopied,
        e.ApprovalAsked,
        e.ApprovalAnswered,
        e.QuestionAsked,
        e.QuestionDrafted,
        e.QuestionAnswered,
        e.ToolReady,
        e.ToolDecided,
        e.ToolEnded,
        e.SignInAsked,
        e.SignInSettled,
    }
)
"""Events that may change a chat's catalogue entry. Deltas do not."""


def annotations(record: Record) -> list[Outgoing]:
    """The annotations channel repeats the action of the client."""
    event = record.event
    if not isinstance(event, e.ClientKept) or not event.key.startswith(snapshots.ANNOTATION):
        return []
    kind = str(event.action.get("type", "")).removeprefix("annotations/")
    fields = {key: value for key, value in event.action.items() if key != "type"}
    return [Outgoing(kind, fields, event.by)]

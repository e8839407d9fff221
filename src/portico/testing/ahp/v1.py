"""The session of protocol version 1: conversation and catalogue in one state, metadata nested in `summary`.

Root and terminal are alike in both dialects; see `root` and `terminal`.
"""

from typing import Any

from portico.doors.ahp.wire import status
from portico.doors.ahp.wire.record import Json, index_of, items, put, upsert, with_item, without_item
from portico.doors.ahp.wire.versions import Dialect
from portico.testing.ahp import conversation
from portico.testing.ahp.conversation import active_turn, with_status
from portico.testing.ahp.record import Handler, setter
from portico.testing.ahp.record import config_changed as merged_config
from portico.testing.ahp.status import is_archived_changed, is_read_changed, touched, with_head


def _summary_setter(field: str, *, touch: bool) -> Handler:
    def apply(state: Json, action: Json, dialect: Dialect) -> Json:
        state = with_head(state, dialect, **{field: action.get(field)})
        return touched(state, dialect) if touch else state

    return apply


def ready(state: Json, action: Json, dialect: Dialect) -> Json:
    return with_head(put(state, lifecycle="ready"), dialect, status=status.IDLE)


def creation_failed(state: Json, action: Json, _: Dialect) -> Json:
    return put(state, lifecycle="creationFailed", creationError=action.get("error"))


def turn_started(state: Json, action: Json, dialect: Dialect) -> Json:
    turn: Json = {"id": action.get("turnId"), "userMessage": action.get("userMessage"), "responseParts": []}
    return touched(conversation.started(state, action, dialect, turn), dialect)


def _ended(state: Json, action: Json, dialect: Dialect, outcome: str, activity: int, **fields: Any) -> Json:
    turn = active_turn(state, action)
    if turn is None:
        return state
    state = put(conversation.ended(state, turn, outcome, **fields), inputRequests=None)
    return touched(with_status(state, dialect, activity), dialect)


def turn_complete(state: Json, action: Json, dialect: Dialect) -> Json:
    return _ended(state, action, dialect, "complete", status.IDLE)


def turn_cancelled(state: Json, action: Json, dialect: Dialect) -> Json:
    return _ended(state, action, dialect, "cancelled", status.IDLE)


def error(state: Json, action: Json, dialect: Dialect) -> Json:
    return _ended(state, action, dialect, "error", status.ERROR, error=action.get("error"))


def truncated(state: Json, action: Json, dialect: Dialect) -> Json:
    after = conversation.truncated(state, action)
    return state if after is None else touched(with_status(put(after, inputRequests=None), dialect), dialect)


def config_changed(state: Json, action: Json, dialect: Dialect) -> Json:
    after = merged_config(state, action, dialect)
    return state if after is state else touched(after, dialect)


def server_tools_changed(state: Json, action: Json, _: Dialect) -> Json:
    return put(state, serverTools=items(action, "tools"))


def active_client_tools_changed(state: Json, action: Json, _: Dialect) -> Json:
    client = state.get("activeClient")
    return put(state, activeClient=put(client, tools=items(action, "tools"))) if client else state


def customization_toggled(state: Json, action: Json, _: Dialect) -> Json:
    entries, uri = items(state, "customizations"), action.get("uri")
    at = next((at for at, entry in enumerate(entries) if _uri(entry) == uri and uri is not None), None)
    if at is None:
        return state
    entry = put(entries[at], enabled=action.get("enabled") is True)
    return put(state, customizations=with_item(entries, at, entry))


def _uri(entry: Json) -> object:
    return (entry.get("customization") or {}).get("uri")


def input_requested(state: Json, action: Json, dialect: Dialect) -> Json:
    request, requests = action.get("request"), items(state, "inputRequests")
    if request is None:
        return state
    at = index_of(requests, request.get("id"))
    if at is not None:
        request = conversation.asked_again(request, requests[at])
    state = put(state, inputRequests=upsert(requests, request))
    return touched(with_status(state, dialect, status.INPUT_NEEDED, unread=True), dialect)


def input_answer_changed(state: Json, action: Json, dialect: Dialect) -> Json:
    requests = items(state, "inputRequests")
    at = index_of(requests, action.get("requestId"))
    if at is None:
        return state
    request = conversation.with_answer(requests[at], action)
    return touched(put(state, inputRequests=with_item(requests, at, request)), dialect)


def input_completed(state: Json, action: Json, dialect: Dialect) -> Json:
    requests = items(state, "inputRequests")
    at = index_of(requests, action.get("requestId"))
    if at is None:
        return state
    state = put(state, inputRequests=without_item(requests, at) or None)
    return touched(with_status(state, dialect), dialect)


HANDLERS: dict[str, Handler] = {
    **{f"session/{name}": handler for name, handler in conversation.HANDLERS.items()},
    "session/ready": ready,
    "session/creationFailed": creation_failed,
    "session/turnStarted": turn_started,
    "session/turnComplete": turn_complete,
    "session/turnCancelled": turn_cancelled,
    "session/error": error,
    "session/titleChanged": _summary_setter("title", touch=True),
    "session/modelChanged": _summary_setter("model", touch=True),
    "session/isReadChanged": is_read_changed,
    "session/isArchivedChanged": is_archived_changed,
    "session/activityChanged": _summary_setter("activity", touch=False),
    "session/diffsChanged": _summary_setter("diffs", touch=False),
    "session/configChanged": config_changed,
    "session/metaChanged": setter("_meta"),
    "session/serverToolsChanged": server_tools_changed,
    "session/activeClientChanged": setter("activeClient"),
    "session/activeClientToolsChanged": active_client_tools_changed,
    "session/customizationsChanged": setter("customizations"),
    "session/customizationToggled": customization_toggled,
    "session/truncated": truncated,
    "session/inputRequested": input_requested,
    "session/inputAnswerChanged": input_answer_changed,
    "session/inputCompleted": input_completed,
}

"""The chat channel of the modern dialect: `chat/…` over ChatState."""

from typing import Any

from portico.doors.ahp.wire import status
from portico.doors.ahp.wire.record import Json, index_of, items, put, upsert, with_item, without_item
from portico.doors.ahp.wire.versions import Dialect, later
from portico.testing.ahp import conversation, toolcall
from portico.testing.ahp.conversation import active_turn, is_open, with_parts, with_status
from portico.testing.ahp.directory import removed_directory, set_directory
from portico.testing.ahp.record import Handler, setter
from portico.testing.ahp.status import is_archived_changed, is_read_changed, touched


def turn_started(state: Json, action: Json, dialect: Dialect) -> Json:
    turn_id, started_at = action.get("turnId"), action.get("startedAt")
    # A replayed start must not erase the response parts that the turn has received since.
    if dialect.since("1.0.0") and _knows(state, turn_id):
        return state
    turn: Json = {"id": turn_id, "startedAt": started_at, "message": action.get("message"), "responseParts": []}
    state = conversation.started(state, action, dialect, turn)
    if dialect.since("0.9.0"):
        return state if started_at is None else put(state, modifiedAt=started_at)
    return touched(state, dialect)


def _knows(state: Json, turn_id: object) -> bool:
    active = state.get("activeTurn") or {}
    return active.get("id") == turn_id or index_of(items(state, "turns"), turn_id) is not None


def _ended(state: Json, action: Json, dialect: Dialect, outcome: str, activity: int, **fields: Any) -> Json:
    turn = active_turn(state, action)
    if turn is None:
        return state
    duration = action.get("duration")
    if duration is not None:
        duration = max(0, duration)
    state = conversation.ended(state, turn, outcome, duration=duration, **fields)
    state = with_status(state, dialect, activity)
    if not dialect.since("0.9.0"):
        return touched(state, dialect)
    moment = later(str(turn.get("startedAt")), duration or 0)
    return state if moment is None else put(state, modifiedAt=moment)


def turn_complete(state: Json, action: Json, dialect: Dialect) -> Json:
    return _ended(state, action, dialect, "complete", status.IDLE)


def turn_cancelled(state: Json, action: Json, dialect: Dialect) -> Json:
    return _ended(state, action, dialect, "cancelled", status.IDLE)


def error(state: Json, action: Json, dialect: Dialect) -> Json:
    """Up to 0.8 the turn has an `error`; later its last part is one. We send both forms and read either."""
    part = action.get("part") or {"kind": "error", "error": action.get("error")}
    if not dialect.since("0.9.0"):
        cause = action.get("error") or part.get("error")
        return _ended(state, action, dialect, "error", status.ERROR, error=cause)
    turn = active_turn(state, action)
    if turn is None:
        return state
    state = with_parts(state, [*items(turn, "responseParts"), part])
    return _ended(state, action, dialect, "error", status.ERROR)


def turn_resume(state: Json, action: Json, dialect: Dialect) -> Json:
    """Resume the last turn, if it failed in a way that its agent can resume."""
    turns = items(state, "turns")
    if state.get("activeTurn") or not turns or turns[-1].get("id") != action.get("turnId"):
        return state
    turn = turns[-1]
    last = (items(turn, "responseParts") or [{}])[-1]
    if turn.get("state") != "error" or last.get("kind") != "error" or last.get("resumable") is not True:
        return state
    active = put(turn, state=None, duration=None)
    return with_status(put(state, turns=turns[:-1], activeTurn=active), dialect, status.IN_PROGRESS, unread=True)


def truncated(state: Json, action: Json, dialect: Dialect) -> Json:
    after = conversation.truncated(state, action)
    if after is None:
        return state
    if action.get("turnId") is None:
        after = put(after, turnsNextCursor=None)
    return touched(with_status(after, dialect), dialect)


def turns_loaded(state: Json, action: Json, _: Dialect) -> Json:
    turns = items(state, "turns")
    older = [turn for turn in items(action, "turns") if index_of(turns, turn.get("id")) is None]
    return put(state, turns=[*older, *turns], turnsNextCursor=action.get("turnsNextCursor"))


def _open_part(state: Json, request_id: object) -> int | None:
    """Return the index of the unanswered request with this id in the active turn."""
    parts = items(state.get("activeTurn") or {}, "responseParts")
    return index_of([part.get("request") if is_open(part) else None for part in parts], request_id)


def _with_open(state: Json, at: int, request: Json, **fields: Any) -> Json:
    parts = items(state["activeTurn"], "responseParts")
    return with_parts(state, with_item(parts, at, put(parts[at], request=request, **fields)))


def input_requested(state: Json, action: Json, dialect: Dialect) -> Json:
    turn, request = state.get("activeTurn"), action.get("request")
    if turn is None or request is None:
        return state
    parts, at = items(turn, "responseParts"), _open_part(state, request.get("id"))
    if at is None:
        state = with_parts(state, [*parts, {"kind": "inputRequest", "request": request}])
    else:
        state = _with_open(state, at, conversation.asked_again(request, parts[at]["request"]))
    return touched(with_status(state, dialect, unread=True), dialect)


def input_answer_changed(state: Json, action: Json, dialect: Dialect) -> Json:
    at = _open_part(state, action.get("requestId"))
    if at is None:
        return state
    request = state["activeTurn"]["responseParts"][at]["request"]
    return touched(_with_open(state, at, conversation.with_answer(request, action)), dialect)


def input_completed(state: Json, action: Json, dialect: Dialect) -> Json:
    at = _open_part(state, action.get("requestId"))
    if at is None:
        return state
    request = state["activeTurn"]["responseParts"][at]["request"]
    answers = {**(request.get("answers") or {}), **(action.get("answers") or {})}
    request = put(request, answers=answers or None)
    state = _with_open(state, at, request, response=action.get("response") or "cancel")
    return touched(with_status(state, dialect), dialect)


def background_work_set(state: Json, action: Json, _: Dialect) -> Json:
    work = action.get("work")
    return put(state, backgroundWork=upsert(items(state, "backgroundWork"), work)) if work else state


def background_work_removed(state: Json, action: Json, _: Dialect) -> Json:
    work = items(state, "backgroundWork")
    at = index_of(work, action.get("id"))
    return state if at is None else put(state, backgroundWork=without_item(work, at) or None)


def _with_requests(handler: Handler) -> Handler:
    """Up to 0.5, open questions are also listed next to the turn."""

    def apply(state: Json, action: Json, dialect: Dialect) -> Json:
        if dialect.since("0.6.0"):
            return handler(state, action, dialect)
        before = put(state, inputRequests=None)  # derived from the parts: the status must not count them twice
        after = handler(before, action, dialect)
        if after is before:
            return state
        parts = items(after.get("activeTurn") or {}, "responseParts")
        return put(after, inputRequests=[part["request"] for part in parts if is_open(part)] or None)

    return apply


HANDLERS: dict[str, Handler] = {
    **{f"chat/{name}": handler for name, handler in conversation.HANDLERS.items()},
    **{f"chat/{name}": conversation.on_call(step) for name, step in toolcall.AUTH_STEPS.items()},
    "chat/turnStarted": _with_requests(turn_started),
    "chat/turnComplete": _with_requests(turn_complete),
    "chat/turnCancelled": _with_requests(turn_cancelled),
    "chat/error": _with_requests(error),
    "chat/turnResume": turn_resume,
    "chat/activityChanged": setter("activity"),
    "chat/workingDirectorySet": set_directory,
    "chat/workingDirectoryRemoved": removed_directory,
    "chat/truncated": _with_requests(truncated),
    "chat/turnsLoaded": turns_loaded,
    "chat/draftChanged": setter("draft"),
    "chat/inputRequested": _with_requests(input_requested),
    "chat/inputAnswerChanged": _with_requests(input_answer_changed),
    "chat/inputCompleted": _with_requests(input_completed),
    "chat/isReadChanged": is_read_changed,
    "chat/isArchivedChanged": is_archived_changed,
    "chat/changesetsChanged": setter("changesets"),
    "chat/backgroundWorkSet": background_work_set,
    "chat/backgroundWorkRemoved": background_work_removed,
    "chat/movableChanged": setter("movable"),
    "chat/canvasesChanged": setter("canvases"),
}

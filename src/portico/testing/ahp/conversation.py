"""What a conversation is in both dialects: the rows that version 1 calls `session/…` and later ones `chat/…`.

The state holds `turns`, `activeTurn`, `steeringMessage` and `queuedMessages`. Everything about a running turn first
checks that the action names the active one; a late or foreign action changes nothing.
"""

from collections.abc import Callable
from typing import Any

from portico.doors.ahp.wire.record import Json, index_of, items, merge, put, upsert, with_item, without_item
from portico.doors.ahp.wire.status import IDLE, IN_PROGRESS, INPUT_NEEDED, IS_READ, with_activity
from portico.doors.ahp.wire.versions import Dialect
from portico.testing.ahp import toolcall
from portico.testing.ahp.record import Handler, reorder
from portico.testing.ahp.status import status_of, with_flag, with_head


def active_turn(state: Json, action: Json) -> Json | None:
    """The active turn, if it is the one the action is about."""
    turn: Json | None = state.get("activeTurn")
    return turn if turn and turn.get("id") == action.get("turnId") else None


def with_parts(state: Json, parts: list[Any]) -> Json:
    return put(state, activeTurn=put(state["activeTurn"], responseParts=parts))


def is_open(part: Json) -> bool:
    """Return whether this part is an unanswered question."""
    return part.get("kind") == "inputRequest" and part.get("response") is None


def _waits(part: Json) -> bool:
    return is_open(part) or call_of(part).get("status") in toolcall.WAITING


def call_of(part: Json) -> Json:
    return part.get("toolCall") or {} if part.get("kind") == "toolCall" else {}


def with_status(state: Json, dialect: Dialect, activity: int | None = None, *, unread: bool = False) -> Json:
    """Set the activity, or derive it: something waits for a person > a turn runs > idle. Flags stay."""
    if activity is None:
        turn = state.get("activeTurn")
        asked = bool(items(state, "inputRequests")) or any(map(_waits, items(turn or {}, "responseParts")))
        activity = INPUT_NEEDED if asked else IN_PROGRESS if turn else IDLE
    status = with_activity(status_of(state, dialect), activity)
    return with_head(state, dialect, status=with_flag(status, IS_READ, False) if unread else status)


def started(state: Json, action: Json, dialect: Dialect, turn: Json) -> Json:
    """The state with a fresh active turn, and without the waiting message that became it."""
    state = put(state, activeTurn=turn)
    queued = action.get("queuedMessageId")
    if queued is not None:
        state = _without_steering(_without_queued(state, queued), queued)
    return with_status(state, dialect, IN_PROGRESS, unread=True)


def ended(state: Json, turn: Json, outcome: str, /, **fields: Any) -> Json:
    """Move the active turn into the history; tool calls that were still open are skipped."""
    parts = [_skipped(part) for part in items(turn, "responseParts")]
    done = put(turn, responseParts=parts, state=outcome, **fields)
    return put(state, turns=[*items(state, "turns"), done], activeTurn=None)


def _skipped(part: Json) -> Json:
    return put(part, toolCall=toolcall.skipped(part["toolCall"])) if call_of(part) else part


def truncated(state: Json, action: Json) -> Json | None:
    """The state with the turns through `turnId` (none without one) and no active turn; None for an unknown turn."""
    turn, turns = action.get("turnId"), items(state, "turns")
    if turn is None:
        return put(state, turns=[], activeTurn=None)
    at = index_of(turns, turn)
    return None if at is None else put(state, turns=turns[: at + 1], activeTurn=None)


def with_answer(request: Json, action: Json) -> Json:
    """A question's draft answer set, or removed; without any answer left the field goes."""
    answers = merge(request.get("answers") or {}, {str(action.get("questionId")): action.get("answer")})
    return put(request, answers=answers or None)


def asked_again(request: Json, before: Json) -> Json:
    """A request that replaces an older form of itself keeps the drafts, unless it brings its own."""
    answers = request.get("answers")
    return put(request, answers=before.get("answers") if answers is None else answers)


def _part_id(part: Json) -> object:
    return call_of(part).get("toolCallId") if part.get("kind") == "toolCall" else part.get("id")


def _appender(kind: str) -> Handler:
    """Append text to the first part with that id, if it is of this kind."""

    def apply(state: Json, action: Json, _: Dialect) -> Json:
        turn, wanted = active_turn(state, action), action.get("partId")
        if turn is None or wanted is None:
            return state
        parts = items(turn, "responseParts")
        at = next((at for at, part in enumerate(parts) if _part_id(part) == wanted), None)
        if at is None or parts[at].get("kind") != kind:
            return state
        text = (parts[at].get("content") or "") + (action.get("content") or "")
        return with_parts(state, with_item(parts, at, put(parts[at], content=text)))

    return apply


def response_part(state: Json, action: Json, dialect: Dialect) -> Json:
    turn, part = active_turn(state, action), action.get("part")
    if turn is None or part is None:
        return state
    # From 0.9 on an error part ends a turn, and only `chat/error` may do that.
    if part.get("kind") == "error" and dialect.since("0.9.0"):
        return state
    return with_parts(state, [*items(turn, "responseParts"), part])


def usage(state: Json, action: Json, _: Dialect) -> Json:
    turn = active_turn(state, action)
    return state if turn is None else put(state, activeTurn=put(turn, usage=action.get("usage")))


def tool_call_start(state: Json, action: Json, _: Dialect) -> Json:
    turn = active_turn(state, action)
    if turn is None:
        return state
    part = {"kind": "toolCall", "toolCall": toolcall.start(action)}
    return with_parts(state, [*items(turn, "responseParts"), part])


def on_call(step: toolcall.Step) -> Handler:
    """Lift a step of one tool call to the state that holds the call."""

    def apply(state: Json, action: Json, dialect: Dialect) -> Json:
        turn, wanted = active_turn(state, action), action.get("toolCallId")
        if turn is None or wanted is None:
            return state
        parts = items(turn, "responseParts")
        at = next((at for at, part in enumerate(parts) if call_of(part).get("toolCallId") == wanted), None)
        if at is None:
            return state
        before = parts[at]["toolCall"]
        after = step(before, action, dialect)
        if after is before:
            return state
        if not dialect.seed and action.get("_meta") is not None:
            after = put(after, _meta=action["_meta"])
        state = with_parts(state, with_item(parts, at, put(parts[at], toolCall=after)))
        return state if after.get("status") == before.get("status") else with_status(state, dialect)

    return apply


def pending_message_set(state: Json, action: Json, dialect: Dialect) -> Json:
    message = {"id": action.get("id"), dialect.message: action.get(dialect.message)}
    if action.get("kind") == "steering":
        return put(state, steeringMessage=message)
    if action.get("kind") == "queued":
        return put(state, queuedMessages=upsert(items(state, "queuedMessages"), message))
    return state


def pending_message_removed(state: Json, action: Json, _: Dialect) -> Json:
    removers: dict[object, Callable[[Json, object], Json]] = {"steering": _without_steering, "queued": _without_queued}
    remove = removers.get(action.get("kind"))
    return remove(state, action.get("id")) if remove else state


def _without_steering(state: Json, message: object) -> Json:
    steering = state.get("steeringMessage") or {}
    return put(state, steeringMessage=None) if message is not None and steering.get("id") == message else state


def _without_queued(state: Json, message: object) -> Json:
    queue = items(state, "queuedMessages")
    at = index_of(queue, message)
    return state if at is None else put(state, queuedMessages=without_item(queue, at) or None)


def queued_messages_reordered(state: Json, action: Json, _: Dialect) -> Json:
    queue = items(state, "queuedMessages")
    return put(state, queuedMessages=reorder(queue, items(action, "order"))) if queue else state


HANDLERS: dict[str, Handler] = {
    "delta": _appender("markdown"),
    "reasoning": _appender("reasoning"),
    "responsePart": response_part,
    "usage": usage,
    "toolCallStart": tool_call_start,
    **{name: on_call(step) for name, step in toolcall.STEPS.items()},
    "pendingMessageSet": pending_message_set,
    "pendingMessageRemoved": pending_message_removed,
    "queuedMessagesReordered": queued_messages_reordered,
}
"""By the name after the slash; each dialect puts its own prefix before it."""

"""The tool-call state machine: pure steps from one tool call to the next.

    streaming -> pending-confirmation | running        ready
    pending-confirmation -> running | cancelled        confirmed
    running -> pending-confirmation                    ready again: a permission in mid-execution
    running <-> auth-required                          MCP only, 0.6 and later
    running -> completed | pending-result-confirmation complete
    pending-result-confirmation -> completed | cancelled

A step returns the very call it was given when it does not apply.
"""

from collections.abc import Callable
from typing import Any

from portico.doors.ahp.wire.record import Json, index_of, items, merge, put
from portico.doors.ahp.wire.versions import Dialect

Step = Callable[[Json, Json, Dialect], Json]

_IDENTITY = ("toolCallId", "toolName", "displayName", "toolClientId", "intention", "contributor", "_meta")
_INPUT = frozenset({"invocationMessage", "toolInput"})
_RUNNING = _INPUT | {"confirmed", "selectedOption", "content"}
_RESULT = frozenset({"success", "pastTenseMessage", "content", "structuredContent", "error"})

_FIELDS: dict[str, frozenset[str]] = {
    "streaming": frozenset({"partialInput", "invocationMessage"}),
    "pending-confirmation": _INPUT | {"confirmationTitle", "riskAssessment", "edits", "editable", "options"},
    "running": _RUNNING,
    "auth-required": _RUNNING | {"auth"},
    "pending-result-confirmation": _RUNNING | _RESULT,
    "completed": _RUNNING | _RESULT,
    "cancelled": _INPUT | {"reason", "reasonMessage", "userSuggestion", "selectedOption"},
}
_STATEFUL = frozenset().union(*_FIELDS.values())
_CONFIRMATION = ("confirmationTitle", "riskAssessment", "edits", "editable", "options")

WAITING = frozenset({"pending-confirmation", "pending-result-confirmation", "auth-required"})
"""The statuses in which a person has to do something."""

_UNFINISHED = WAITING | {"streaming", "running"}


def _moved(call: Json, status: str, /, **fields: Any) -> Json:
    """The call in another status: fields that belong to other statuses go, fields we do not know stay."""
    kept = {key: value for key, value in call.items() if key not in _STATEFUL or key in _FIELDS[status]}
    return merge(kept, {**fields, "status": status})


def start(action: Json) -> Json:
    """A new call from `toolCallStart`."""
    identity = {key: action[key] for key in _IDENTITY if action.get(key) is not None}
    return {"status": "streaming", **identity}


def delta(call: Json, action: Json, dialect: Dialect) -> Json:
    if call.get("status") != "streaming":
        return call
    changes: Json = {}
    if action.get("content") is not None:
        changes["partialInput"] = (call.get("partialInput") or "") + action["content"]
    if action.get("invocationMessage") is not None:
        changes["invocationMessage"] = action["invocationMessage"]
    return put(call, **changes)


def ready(call: Json, action: Json, dialect: Dialect) -> Json:
    """The input is complete, or a running call needs another permission."""
    status = call.get("status")
    if status not in ("streaming", "running") and (dialect.seed or status != "pending-confirmation"):
        return call
    message = action.get("invocationMessage")
    changes: Json = {"invocationMessage": call.get("invocationMessage") or "" if message is None else message}
    changes |= {"toolInput": action.get("toolInput")} if dialect.seed else _refined(call, action)
    if action.get("confirmed") is not None:
        return _moved(call, "running", **changes, confirmed=action["confirmed"], content=None, selectedOption=None)
    # Only a call that was already waiting has old confirmation fields to keep; `_moved` would always keep them.
    asked = {key: action[key] for key in _CONFIRMATION if action.get(key) is not None}
    return _moved(call, "pending-confirmation", **changes, **asked)


def _refined(call: Json, action: Json) -> Json:
    """What a modern `ready` may refine. Who executes a call is settled at its start and never moves."""
    changes: Json = {}
    if action.get("toolInput") is not None:
        changes["toolInput"] = action["toolInput"]
    if action.get("intention") is not None:
        changes["intention"] = action["intention"]
    before, after = call.get("contributor") or {}, action.get("contributor") or {}
    if after and "client" not in (before.get("kind"), after.get("kind")):
        changes["contributor"] = after
    return changes


def confirmed(call: Json, action: Json, dialect: Dialect) -> Json:
    if call.get("status") != "pending-confirmation":
        return call
    options = items(call, "options")
    at = index_of(options, action.get("selectedOptionId"))
    chosen = None if at is None else options[at]
    if action.get("approved") is not True:
        return _moved(
            call,
            "cancelled",
            reason=action.get("reason") or "denied",
            reasonMessage=action.get("reasonMessage"),
            userSuggestion=action.get("userSuggestion"),
            selectedOption=chosen,
        )
    tool_input, edited = call.get("toolInput"), action.get("editedToolInput")
    # Referenced input is edited in place by the host before the echo, so the reference itself stays.
    if edited is not None and (dialect.seed or isinstance(tool_input, str)):
        tool_input = edited
    how = action.get("confirmed") or "user-action"
    return _moved(call, "running", toolInput=tool_input, confirmed=how, selectedOption=chosen)


def complete(call: Json, action: Json, dialect: Dialect) -> Json:
    status, result = call.get("status"), action.get("result") or {}
    if status == "auth-required":
        return _given_up(call, result)
    if status not in ("running", "pending-confirmation"):
        return call
    after = "pending-result-confirmation" if action.get("requiresResultConfirmation") else "completed"
    confirmation = {} if status == "running" else {"confirmed": "not-needed", "selectedOption": None}
    return _moved(call, after, **_outcome(result), **confirmation)


def _given_up(call: Json, result: Json) -> Json:
    """Only a failure can end a call that waits for a sign-in: there is no result to review or to believe."""
    if result.get("success") is not False:
        return call
    outcome = _outcome(result)
    return _moved(call, "completed", **outcome | {"content": outcome["content"] or call.get("content")})


def _outcome(result: Json) -> Json:
    """The result's fields for the call. A result comes from a client: it must not rename the call or approve it."""
    reserved = (_STATEFUL - _RESULT) | {*_IDENTITY, "status"}
    return dict.fromkeys(_RESULT) | {key: value for key, value in result.items() if key not in reserved}


def result_confirmed(call: Json, action: Json, dialect: Dialect) -> Json:
    if call.get("status") != "pending-result-confirmation":
        return call
    if action.get("approved") is True:
        return _moved(call, "completed")
    return _moved(call, "cancelled", reason="result-denied")


def content_changed(call: Json, action: Json, dialect: Dialect) -> Json:
    if call.get("status") != "running":
        return call
    return put(call, content=items(action, "content"))


def auth_required(call: Json, action: Json, dialect: Dialect) -> Json:
    contributor = call.get("contributor") or {}
    if call.get("status") != "running" or contributor.get("kind") != "mcp":
        return call
    return _moved(call, "auth-required", auth=action.get("auth") or {})


def auth_resolved(call: Json, action: Json, dialect: Dialect) -> Json:
    return _moved(call, "running") if call.get("status") == "auth-required" else call


def skipped(call: Json) -> Json:
    """The call at the end of its turn: what is not finished will not be."""
    status = call.get("status")
    if status not in _UNFINISHED:
        return call
    return _moved(
        call,
        "cancelled",
        invocationMessage=call.get("invocationMessage") or "",
        toolInput=None if status == "streaming" else call.get("toolInput"),
        selectedOption=None,
        reason="skipped",
    )


STEPS: dict[str, Step] = {
    "toolCallDelta": delta,
    "toolCallReady": ready,
    "toolCallConfirmed": confirmed,
    "toolCallComplete": complete,
    "toolCallResultConfirmed": result_confirmed,
    "toolCallContentChanged": content_changed,
}
AUTH_STEPS: dict[str, Step] = {
    "toolCallAuthRequired": auth_required,
    "toolCallAuthResolved": auth_resolved,
}

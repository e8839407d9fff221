"""What each action of a client asks of the host. A handler that returns False has changed nothing."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from portico.doors.ahp import (
    annotations,
    attachments,
    clients,
    customized,
    message,
    names,
    parts,
    plugins,
    snapshots,
    working_directories,
)
from portico.doors.ahp.deed import Deed
from portico.doors.ahp.record import Json, index_of
from portico.errors import BadRequest, Conflict, Forbidden, PorticoError
from portico.events import ErrorInfo, QuestionResponse
from portico.host.autonomy import APPROVAL_KEYS
from portico.host.config import OWN_KEYS
from portico.host.session import Session
from portico.host.state import CallPart, QuestionPart
from portico.host.tool import ToolResult

logger = logging.getLogger("portico.ahp")

# -- facts about a session -------------------------------------------------------------------------------------


async def _model(deed: Deed, session: Session) -> None:
    model = deed.action["model"]
    await session.set_model(model["id"], by=deed.by, config=model.get("config"))


async def _config_changed(deed: Deed, session: Session) -> None:
    values, replace = deed.action["config"], bool(deed.action.get("replace"))
    may_approve = deed.connection.caller.may("approve")
    schema = deed.connection.exchange.config_of(session.state)["schema"]["properties"]
    settled = {key for key, each in schema.items() if each.get("sessionMutable") is False}
    for key in settled & values.keys():
        if session.state.config.get(key) != values[key]:
            raise Conflict(f"{key!r} is settled when a session starts.")
    keeps = settled | OWN_KEYS | (frozenset() if may_approve else APPROVAL_KEYS) if replace else frozenset()
    await session.configure(values, by=deed.by, replace=replace, keeps=keeps, may_approve=may_approve)


async def _read_changed(deed: Deed, session: Session) -> bool:
    if session.state.read is deed.action["isRead"]:
        return False
    await session.mark_read(deed.action["isRead"], by=deed.by)
    return True


# -- clients and their tools -----------------------------------------------------------------------------------


async def _client_changed(deed: Deed, session: Session) -> bool:
    """Version 1: one active client, null to leave."""
    connection, client = deed.connection, deed.action.get("activeClient")
    others = [each.id for each in session.state.clients if each.id != connection.client_id]
    if client is None:
        if others or not session.state.clients:
            raise Forbidden("You are not this session's active client.")
        await clients.resign(connection, session, deed.by)
        return True
    _must_be_own(deed, client["clientId"])
    if others:
        raise Conflict(f"Another client is active: {others[-1]!r}.")
    await clients.join(connection, session, client, deed.by)
    return True


async def _tools_changed(deed: Deed, session: Session) -> None:
    connection = deed.connection
    own = next((each for each in session.state.clients if each.id == connection.client_id), None)
    if own is None:
        raise Forbidden("You are not this session's active client.")
    client = {**snapshots.client(own), "tools": deed.action["tools"]}
    await clients.join(connection, session, client, deed.by)


async def _client_set(deed: Deed, session: Session) -> None:
    client = deed.action["activeClient"]
    _must_be_own(deed, client["clientId"])
    await clients.join(deed.connection, session, client, deed.by)
    for child in deed.connection.host.catalogue.descendants(session.id):
        if child.origin is None or child.origin.kind != "agent":
            below = await deed.connection.host.get(child.id)
            await _followed(clients.join(deed.connection, below, client, deed.connection.by))


async def _client_removed(deed: Deed, session: Session) -> bool:
    _must_be_own(deed, deed.action["clientId"])
    if not any(each.id == deed.connection.client_id for each in session.state.clients):
        return False
    await clients.resign(deed.connection, session, deed.by)
    return True


def _must_be_own(deed: Deed, client_id: str) -> None:
    if client_id != deed.connection.client_id:
        raise Forbidden("A client can only speak for itself.")


async def _completed(deed: Deed, session: Session) -> None:
    _active(deed, session)
    said = deed.action["result"]
    content = said.get("content") or []
    output = "\n".join(each.get("text", "") for each in content if each.get("type") == "text")
    structured = said.get("structuredContent")
    if structured is not None:
        output = output or msgspec.json.encode(structured).decode()
        content = [*content, {"type": parts.STRUCTURED, "value": structured}]
    error = said.get("error")
    result = ToolResult(
        said["success"],
        output,
        ErrorInfo(str(error.get("code") or "tool_failed"), error["message"]) if error else None,
        content,
    )
    past = said["pastTenseMessage"]
    ident, client = deed.action["toolCallId"], deed.connection.client_id
    title = past if isinstance(past, str) else past["markdown"]
    if deed.action.get("requiresResultConfirmation"):
        await session.tools.propose(ident, result, said, client=client, title=title, by=deed.by)
    else:
        words = None if parts.is_plain(said, result, title) else said
        await session.tools.complete(ident, result, words, client=client, title=title, by=deed.by)


async def _content_changed(deed: Deed, session: Session) -> None:
    _active(deed, session)
    content = deed.action["content"]
    session.tools.report(deed.action["toolCallId"], content, client=deed.connection.client_id, by=deed.by)
    await session.host.log.settled()


# -- turns -----------------------------------------------------------------------------------------------------


async def _turn_started(deed: Deed, session: Session) -> None:
    action, seed = deed.action, deed.connection.dialect.seed
    if not action["turnId"]:
        raise BadRequest("A turn needs an id.", field="turnId")
    said = message.from_wire(await attachments.fetched(deed.connection, action["userMessage" if seed else "message"]))
    await plugins.settled(deed.connection, session)
    await session.send(said, by=deed.by, turn=action["turnId"], queue=False, pending=action.get("queuedMessageId"))


async def _turn_cancelled(deed: Deed, session: Session) -> None:
    await session.cancel(by=deed.by, turn=deed.action["turnId"])


async def _turn_resumed(deed: Deed, session: Session) -> None:
    await session.resume(by=deed.by, turn=deed.action["turnId"])


async def _truncated(deed: Deed, session: Session) -> None:
    await session.truncate(deed.action.get("turnId"), by=deed.by)


def _active(deed: Deed, session: Session) -> Any:
    turn = session.state.active
    if turn is None or turn.id != deed.action["turnId"]:
        raise Conflict(f"The turn {deed.action['turnId']!r} is not running.")
    return turn


# -- approvals -------------------------------------------------------------------------------------------------


async def _confirmed(deed: Deed, session: Session) -> None:
    action = deed.action
    ident = _approval(deed, session, result=False)
    words = action.get("reasonMessage") or ""
    words = words if isinstance(words, str) else words["markdown"]
    suggestion = action.get("userSuggestion")
    if isinstance(suggestion, dict) and suggestion.get("text"):
        words = f"{words}\n{suggestion['text']}".strip()
    await session.approvals.answer(
        ident,
        by=deed.by,
        allow=action["approved"],
        option=action.get("selectedOptionId"),
        reason=words,
        input=action.get("editedToolInput"),
        meta=_besides(action, words),
    )


def _besides(action: Json, words: str) -> Json:
    """What the answer says beyond yes or no and `words`: a call may be skipped, or a client's own setting said yes."""
    if action["approved"]:
        return {"confirmed": "setting"} if action.get("confirmed") == "setting" else {}
    said: Json = {"reason": "skipped"} if action.get("reason") == "skipped" else {}
    reason, suggestion = action.get("reasonMessage") or "", action.get("userSuggestion")
    if reason != words:
        said["reasonMessage"] = reason
    return said | ({"userSuggestion": suggestion} if suggestion else {})


async def _result_confirmed(deed: Deed, session: Session) -> None:
    await session.approvals.answer(_approval(deed, session, result=True), by=deed.by, allow=deed.action["approved"])


def _approval(deed: Deed, session: Session, *, result: bool) -> str:
    """The approval that this very call waits for."""
    deed.connection.require("approve")
    part = _active(deed, session).part(deed.action["toolCallId"])
    approval = part.approval if isinstance(part, CallPart) and not part.done else None
    if approval is None or approval.result is not result:
        raise Conflict(f"The call {deed.action['toolCallId']!r} does not wait for that.")
    return approval.id


# -- questions -------------------------------------------------------------------------------------------------


async def _drafted(deed: Deed, session: Session) -> None:
    answer = deed.action.get("answer")
    question = _question(session, deed.action["requestId"])
    _check_answer(question, deed.action["questionId"], answer)
    await session.questions.draft(question.id, deed.action["questionId"], answer, by=deed.by)


async def _answered(deed: Deed, session: Session) -> None:
    action = deed.action
    question = _question(session, action["requestId"])
    answers = action.get("answers") or {}
    for field, answer in answers.items():
        _check_answer(question, field, answer)
    given = action["response"]
    responses: dict[str, QuestionResponse] = {"accept": "accept", "decline": "decline", "cancel": "cancel"}
    if given not in responses:
        raise BadRequest(f"There is no response {given!r}.", field="response")
    await session.questions.answer(question.id, responses[given], answers, by=deed.by)


def _question(session: Session, ident: str) -> QuestionPart:
    active = session.state.active
    part = active.part(ident) if active is not None else None
    if not isinstance(part, QuestionPart) or part.done:
        raise Conflict(f"No question {ident!r} is open.")
    return part


_VALUES = {
    "text": ("text",),
    "number": ("number",),
    "integer": ("number",),
    "boolean": ("boolean",),
    "single-select": ("selected",),
    "multi-select": ("selected-many",),
}


def _check_answer(question: QuestionPart, field: str, answer: Json | None) -> None:
    """An answer must be of the kind that its question asks for."""
    asked = {each.get("id"): each for each in question.fields} or {"answer": {"kind": "text"}}
    if field not in asked:
        raise BadRequest(f"The question has no field {field!r}.", field="questionId")
    if answer is None or answer.get("state") == "skipped":
        return
    kind = (answer.get("value") or {}).get("kind")
    wanted = _VALUES.get(str(asked[field].get("kind")))
    if wanted is not None and kind not in wanted:
        raise BadRequest(f"{field!r} takes a value of kind {wanted[0]!r}, not {kind!r}.", field="answer")


# -- the queue -------------------------------------------------------------------------------------------------


async def _pending_set(deed: Deed, session: Session) -> None:
    action, seed = deed.action, deed.connection.dialect.seed
    said = message.from_wire(await attachments.fetched(deed.connection, action["userMessage" if seed else "message"]))
    ident, plain = action["id"], deed.connection.by
    if action["kind"] not in ("queued", "steering") or not ident:
        raise BadRequest(f"There is no kind {action['kind']!r} of waiting message.", field="kind")
    if session.state.pending(ident) is not None:
        await session.queue.edit(ident, said, by=deed.by)
    elif action["kind"] == "queued":
        await session.queue.add(said, by=deed.by, id=ident)
        await _followed(session.queue.release(by=plain))
    else:
        for old in [each.id for each in session.state.queue if each.kind == "steer"]:
            await session.queue.remove(old, by=plain)
        await session.queue.add(said, by=deed.by, kind="steer", id=ident)
        await _followed(session.queue.steer_now(ident, by=plain))


async def _followed(work: Awaitable[object]) -> None:
    """What comes of an action that is in the log already: it may come too late (the turn has ended, and the message has
    become one of its own), but the action itself stands."""
    try:
        await work
    except PorticoError as error:
        logger.info("after an accepted action: %s", error.message)


async def _pending_removed(deed: Deed, session: Session) -> None:
    pending = session.state.pending(deed.action["id"])
    kind = {"queued": "queue", "steering": "steer"}.get(deed.action["kind"])
    if pending is None or pending.kind != kind:
        raise Conflict(f"No message {deed.action['id']!r} is waiting.")
    await session.queue.remove(pending.id, by=deed.by)


async def _reordered(deed: Deed, session: Session) -> None:
    await session.queue.reorder(deed.action["order"], by=deed.by)


# -- what clients share through us -----------------------------------------------------------------------------


async def annotate(deed: Deed, session: Session) -> bool:
    """Annotations are kept one by one; the reducer says what becomes of the one that is meant."""
    before = snapshots.annotations(session.state)
    action = annotations.in_both_forms(deed.action, names.session_uri(session.summary))
    after = annotations.HANDLERS[deed.type](before, action, deed.connection.dialect)
    if after is before:
        raise Conflict("There is no such annotation.")
    ident = deed.action.get("annotationId") or (deed.action.get("annotation") or {}).get("id")
    at = index_of(after["annotations"], ident)
    value = after["annotations"][at] if at is not None else None
    await session.keep(f"{snapshots.ANNOTATION}{ident}", value, by=deed.by, action=action)
    return True


Handler = Callable[[Deed, Session], Awaitable[Any]]
HANDLERS: dict[str, Handler] = {
    "modelChanged": _model,
    "configChanged": _config_changed,
    "isReadChanged": _read_changed,
    "activeClientChanged": _client_changed,
    "activeClientToolsChanged": _tools_changed,
    "activeClientSet": _client_set,
    "activeClientRemoved": _client_removed,
    "toolCallComplete": _completed,
    "toolCallContentChanged": _content_changed,
    "turnStarted": _turn_started,
    "turnCancelled": _turn_cancelled,
    "turnResume": _turn_resumed,
    "truncated": _truncated,
    "toolCallConfirmed": _confirmed,
    "toolCallResultConfirmed": _result_confirmed,
    "inputAnswerChanged": _drafted,
    "inputCompleted": _answered,
    "pendingMessageSet": _pending_set,
    "pendingMessageRemoved": _pending_removed,
    "queuedMessagesReordered": _reordered,
    "workingDirectorySet": working_directories.put,
    "workingDirectoryRemoved": working_directories.remove,
    "workingDirectoryReplaced": working_directories.replace,
    "customizationToggled": customized.toggle,
    "mcpServerStartRequested": customized.start,
    "mcpServerStopRequested": customized.stop,
    "mcpServerBackgroundRequested": customized.background,
}

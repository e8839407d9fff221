"""What each action of a client asks of the host. A handler that returns False has changed nothing."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from portico.doors.ahp.act import (
    annotations,
    attachments,
    clients,
    command_prefix,
    customizations,
    plugins,
    working_directories,
)
from portico.doors.ahp.act.client_action import ClientAction
from portico.doors.ahp.view import card, message, names, parts, snapshots
from portico.doors.ahp.view.content import STRUCTURED
from portico.doors.ahp.wire.record import Json, index_of
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, Conflict, Forbidden, PorticoError
from portico.kernel.events import ErrorInfo, QuestionResponse
from portico.kernel.session import Session
from portico.kernel.state import Approval, CallPart, QuestionPart, is_subagent
from portico.kernel.tool import ToolResult

logger = logging.getLogger("portico.ahp")

# -- facts about a session -------------------------------------------------------------------------------------


async def _model(client_action: ClientAction, session: Session) -> None:
    model = client_action.action["model"]
    await client_action.do(c.SetModel(session=session.id, model=model["id"], config=model.get("config") or {}))


async def _config_changed(client_action: ClientAction, session: Session) -> None:
    values, replace = client_action.action["config"], bool(client_action.action.get("replace"))
    schema = client_action.connection.broker.config_of(session.state)["schema"]["properties"]
    settled = {key for key, each in schema.items() if each.get("sessionMutable") is False}
    for key in settled & values.keys():
        if session.state.config.get(key) != values[key]:
            raise Conflict(f"{key!r} is settled when a session starts.")
    command = c.ConfigureSession(session=session.id, values=values, replace=replace, keeps=sorted(settled))
    await client_action.do(command)


async def _read_changed(client_action: ClientAction, session: Session) -> bool:
    command = c.MarkRead(session=session.id, read=client_action.action["isRead"], only=client_action.marked)
    return await client_action.changes(session, command)


# -- clients and their tools -----------------------------------------------------------------------------------


async def _client_changed(client_action: ClientAction, session: Session) -> bool:
    """Version 1: one active client, null to leave."""
    connection, client = client_action.connection, client_action.action.get("activeClient")
    others = [each.id for each in session.state.clients if each.id != connection.client_id]
    if client is None:
        if others or not session.state.clients:
            raise Forbidden("You are not this session's active client.")
        await clients.resign(connection, session, client_action.by)
        return True
    _must_be_own(client_action, client["clientId"])
    if others:
        raise Conflict(f"Another client is active: {others[-1]!r}.")
    await clients.join(connection, session, client, client_action.by)
    return True


async def _tools_changed(client_action: ClientAction, session: Session) -> None:
    connection = client_action.connection
    own = next((each for each in session.state.clients if each.id == connection.client_id), None)
    if own is None:
        raise Forbidden("You are not this session's active client.")
    client = {**snapshots.client(own), "tools": client_action.action["tools"]}
    await clients.join(connection, session, client, client_action.by)


async def _client_set(client_action: ClientAction, session: Session) -> None:
    client = client_action.action["activeClient"]
    _must_be_own(client_action, client["clientId"])
    await clients.join(client_action.connection, session, client, client_action.by)
    for child in client_action.connection.host.catalogue.descendants(session.id):
        if not is_subagent(child):
            below = await client_action.connection.view.get(child.id)
            await _followed(clients.join(client_action.connection, below, client, client_action.connection.by))


async def _client_removed(client_action: ClientAction, session: Session) -> bool:
    _must_be_own(client_action, client_action.action["clientId"])
    if not any(each.id == client_action.connection.client_id for each in session.state.clients):
        return False
    await clients.resign(client_action.connection, session, client_action.by)
    return True


def _must_be_own(client_action: ClientAction, client_id: str) -> None:
    if client_id != client_action.connection.client_id:
        raise Forbidden("A client can only speak for itself.")


async def _completed(client_action: ClientAction, session: Session) -> None:
    part = _active(client_action, session).part(client_action.action["toolCallId"])
    if isinstance(part, CallPart) and part.sign_in is not None:
        await _declined(client_action, session, part)
        return
    said = client_action.action["result"]
    content = said.get("content") or []
    output = "\n".join(each.get("text", "") for each in content if each.get("type") == "text")
    structured = said.get("structuredContent")
    if structured is not None:
        output = output or msgspec.json.encode(structured).decode()
        content = [*content, {"type": STRUCTURED, "value": structured}]
    error = said.get("error")
    result = ToolResult(
        said["success"],
        output,
        ErrorInfo(str(error.get("code") or "tool_failed"), error["message"]) if error else None,
        content,
    )
    past = said["pastTenseMessage"]
    ident, client = client_action.action["toolCallId"], client_action.connection.client_id
    title = past if isinstance(past, str) else past["markdown"]
    confirm = bool(client_action.action.get("requiresResultConfirmation"))
    command = c.CompleteCall(
        session=session.id,
        call=ident,
        client=client,
        ok=result.ok,
        output=result.output,
        error=result.error,
        content=result.content,
        title=title,
        result=said if confirm or not parts.is_plain(said, result, title) else None,
        confirm=confirm,
    )
    await client_action.do(command)


async def _declined(client_action: ClientAction, session: Session, part: CallPart) -> None:
    """Decline a sign-in. The end of the call, with our message, is the echo."""
    if client_action.action["result"]["success"]:
        raise Conflict(f"The call {part.id!r} waits for a sign-in: it has no result yet.")
    await client_action.do(c.DeclineSignIn(session=session.id, call=part.id))


async def _content_changed(client_action: ClientAction, session: Session) -> None:
    _active(client_action, session)
    action, client = client_action.action, client_action.connection.client_id
    command = c.ReportContent(session=session.id, call=action["toolCallId"], client=client, content=action["content"])
    await client_action.do(command)


# -- turns -----------------------------------------------------------------------------------------------------


async def _turn_started(client_action: ClientAction, session: Session) -> None:
    action, seed = client_action.action, client_action.connection.dialect.seed
    if not action["turnId"]:
        raise BadRequest("A turn needs an id.", field="turnId")
    given = action["userMessage" if seed else "message"]
    line = command_prefix.line_of(client_action.connection, given["text"])
    if line is not None:
        await client_action.do(c.RunCommand(session=session.id, line=line, text=given["text"], turn=action["turnId"]))
        return
    said = message.from_wire(await attachments.fetched(client_action.connection, given))
    await plugins.settled(client_action.connection, session)
    command = c.SendMessage(
        session=session.id,
        **{field: getattr(said, field) for field in said.__struct_fields__},
        busy="refuse",
        turn=action["turnId"],
        pending=action.get("queuedMessageId"),
    )
    await client_action.do(command)


async def _turn_cancelled(client_action: ClientAction, session: Session) -> None:
    await client_action.do(c.CancelTurn(session=session.id, turn=client_action.action["turnId"]))


async def _turn_resumed(client_action: ClientAction, session: Session) -> None:
    await client_action.do(c.ResumeTurn(session=session.id, turn=client_action.action["turnId"]))


async def _truncated(client_action: ClientAction, session: Session) -> None:
    await client_action.do(c.TruncateSession(session=session.id, turn=client_action.action.get("turnId")))


def _active(client_action: ClientAction, session: Session) -> Any:
    turn = session.state.active
    if turn is None or turn.id != client_action.action["turnId"]:
        raise Conflict(f"The turn {client_action.action['turnId']!r} is not running.")
    return turn


# -- approvals -------------------------------------------------------------------------------------------------


async def _confirmed(client_action: ClientAction, session: Session) -> None:
    action = client_action.action
    call, approval = _approval(client_action, session, result=False)
    edited = action.get("editedToolInput")
    words = action.get("reasonMessage") or ""
    words = words if isinstance(words, str) else words["markdown"]
    suggestion = action.get("userSuggestion")
    if isinstance(suggestion, dict) and suggestion.get("text"):
        words = f"{words}\n{suggestion['text']}".strip()
    command = c.AnswerApproval(
        approval=approval.id,
        allow=action["approved"],
        option=action.get("selectedOptionId"),
        reason=words,
        input=card.edited_input(call, approval, edited) if edited is not None else None,
        meta=_besides(action, words),
    )
    await client_action.do(command)


def _besides(action: Json, words: str) -> Json:
    """Details of the answer besides `approved` and `words`: the call was skipped, or a client's setting approved it."""
    if action["approved"]:
        return {"confirmed": "setting"} if action.get("confirmed") == "setting" else {}
    said: Json = {"reason": "skipped"} if action.get("reason") == "skipped" else {}
    reason, suggestion = action.get("reasonMessage") or "", action.get("userSuggestion")
    if reason != words:
        said["reasonMessage"] = reason
    return said | ({"userSuggestion": suggestion} if suggestion else {})


async def _result_confirmed(client_action: ClientAction, session: Session) -> None:
    _, approval = _approval(client_action, session, result=True)
    await client_action.do(c.AnswerApproval(approval=approval.id, allow=client_action.action["approved"]))


def _approval(client_action: ClientAction, session: Session, *, result: bool) -> tuple[CallPart, Approval]:
    """The call, and the approval that it waits for."""
    part = _active(client_action, session).part(client_action.action["toolCallId"])
    approval = part.approval if isinstance(part, CallPart) and not part.done else None
    if approval is None or approval.result is not result:
        raise Conflict(f"The call {client_action.action['toolCallId']!r} does not wait for that.")
    return part, approval


# -- questions -------------------------------------------------------------------------------------------------


async def _drafted(client_action: ClientAction, session: Session) -> None:
    action = client_action.action
    question = _question(client_action, session)
    await client_action.do(c.DraftAnswer(question=question.id, field=action["questionId"], answer=action.get("answer")))


async def _answered(client_action: ClientAction, session: Session) -> None:
    action = client_action.action
    question = _question(client_action, session)
    given = action["response"]
    responses: dict[str, QuestionResponse] = {"accept": "accept", "decline": "decline", "cancel": "cancel"}
    if given not in responses:
        raise BadRequest(f"There is no response {given!r}.", field="response")
    command = c.AnswerQuestion(question=question.id, response=responses[given], answers=action.get("answers") or {})
    await client_action.do(command)


def _question(client_action: ClientAction, session: Session) -> QuestionPart:
    """The open question."""
    ident = client_action.action["requestId"]
    active = session.state.active
    part = active.part(ident) if active is not None else None
    if not isinstance(part, QuestionPart) or part.done:
        raise Conflict(f"No question {ident!r} is open.")
    return part


# -- the queue -------------------------------------------------------------------------------------------------


async def _pending_set(client_action: ClientAction, session: Session) -> None:
    action, seed = client_action.action, client_action.connection.dialect.seed
    said = message.from_wire(
        await attachments.fetched(client_action.connection, action["userMessage" if seed else "message"])
    )
    ident, connection = action["id"], client_action.connection
    if action["kind"] not in ("queued", "steering") or not ident:
        raise BadRequest(f"There is no kind {action['kind']!r} of waiting message.", field="kind")
    if session.state.pending(ident) is not None:
        fields = {field: getattr(said, field) for field in said.__struct_fields__}
        await client_action.do(c.EditQueued(session=session.id, pending=ident, **fields))
    elif action["kind"] == "queued":
        await client_action.do(c.QueueMessage(session=session.id, message=said, pending=ident))
        await _followed(connection.do(c.ReleaseQueue(session=session.id)))
    else:
        for old in [each.id for each in session.state.queue if each.kind == "steer"]:
            await connection.do(c.RemoveQueued(session=session.id, pending=old))
        await client_action.do(c.QueueMessage(session=session.id, message=said, kind="steer", pending=ident))
        await _followed(connection.do(c.SteerQueued(session=session.id, pending=ident)))


async def _followed(work: Awaitable[object]) -> None:
    """Run the follow-up of an action that is already in the log. It may be too late (the turn has ended, and the
    message has started a new one), but the action itself remains valid."""
    try:
        await work
    except PorticoError as error:
        logger.info("after an accepted action: %s", error.message)


async def _pending_removed(client_action: ClientAction, session: Session) -> None:
    pending = session.state.pending(client_action.action["id"])
    kind = {"queued": "queue", "steering": "steer"}.get(client_action.action["kind"])
    if pending is None or pending.kind != kind:
        raise Conflict(f"No message {client_action.action['id']!r} is waiting.")
    await client_action.do(c.RemoveQueued(session=session.id, pending=pending.id))


async def _reordered(client_action: ClientAction, session: Session) -> None:
    await client_action.do(c.ReorderQueue(session=session.id, order=client_action.action["order"], lenient=True))


# -- data shared between clients -------------------------------------------------------------------------------


async def annotate(client_action: ClientAction, session: Session) -> bool:
    """Store one annotation. Annotations are stored separately; the reducer computes the new value."""
    before = snapshots.annotations(session.state)
    action = annotations.in_both_forms(client_action.action, names.session_uri(session.summary))
    after = annotations.HANDLERS[client_action.type](before, action, client_action.connection.dialect)
    if after is before:
        raise Conflict("There is no such annotation.")
    ident = client_action.action.get("annotationId") or (client_action.action.get("annotation") or {}).get("id")
    at = index_of(after["annotations"], ident)
    value = after["annotations"][at] if at is not None else None
    key = f"{snapshots.ANNOTATION}{ident}"
    await client_action.do(c.ShareData(session=session.id, key=key, value=value, action=action))
    return True


Handler = Callable[[ClientAction, Session], Awaitable[Any]]
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
    "customizationToggled": customizations.toggle,
    "mcpServerStartRequested": customizations.start,
    "mcpServerStopRequested": customizations.stop,
    "mcpServerBackgroundRequested": customizations.background,
}

"""Client actions become commands of the host, or are refused.

A refused action is returned to its sender with the reason; it is not applied and not sent to other clients. An accepted
action is echoed from the log, in log order, exactly once. The resulting events carry `client:ID#NUMBER.TYPE` as `by`,
so the echo is recognized even after a restart.
"""

import logging
from typing import TYPE_CHECKING

from portico.doors.ahp.act import automations, changes, terminal_commands
from portico.doors.ahp.act.action_batch import BATCHED, ActionBatch
from portico.doors.ahp.act.client_action import ClientAction
from portico.doors.ahp.act.handlers import HANDLERS, annotate
from portico.doors.ahp.view import targets
from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire import actions, uri
from portico.doors.ahp.wire.check import check_action
from portico.doors.ahp.wire.record import Json
from portico.features.approvals.commands import ConfigureHost
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound, PorticoError
from portico.kernel.session import Session

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

logger = logging.getLogger("portico.ahp")

_RENAME = "session/titleChanged"


def note(connection: "EditorClient", params: Json) -> bool:
    """Add a plain fact to the batch. False for other actions and for invalid ones: `dispatch` reports those."""
    action = params.get("action")
    kind = action.get("type") if isinstance(action, dict) else None
    say = BATCHED.get(kind) if isinstance(kind, str) else None
    client_action = _read(connection, params) if say is not None else None
    if say is None or client_action is None:
        return False
    try:
        _check(client_action)
        batch = connection.action_batch
        session = _subject(client_action, batch)
        if session is None or not session.loaded:
            return False
    except PorticoError:
        return False
    batch.add(client_action, session, say(client_action, session))
    return True


def _subject(client_action: ClientAction, batch: ActionBatch) -> Session | None:
    """The session of the fact. Consecutive facts are usually about the same session, so its name is resolved once."""
    session = batch.subject(client_action)
    if session is None:
        target = _target(client_action)
        if _is_rename(client_action, target):
            return None  # its echo does not come from the log
        session = client_action.connection.view.find(target.ident)
        if session is not None:
            batch.remember(client_action, session)
    return session


async def dispatch(connection: "EditorClient", params: Json) -> None:
    client_action = _read(connection, params)
    if client_action is None:
        return
    try:
        _check(client_action)
        target = _target(client_action)
    except NotFound as error:
        if connection.dialect.seed:
            await connection.settle()
            client_action.refuse(error.message)
        return  # from 0.5.1 on, an action on an unknown channel is ignored, as the protocol states
    except PorticoError as error:
        await connection.settle()
        client_action.refuse(error.message)
        return
    await connection.settle()
    await _do(client_action, target)


def _check(client_action: ClientAction) -> None:
    """Check that the action is complete and that a client may dispatch it."""
    dialect = client_action.connection.dialect
    if client_action.type not in actions.dispatchable(dialect):
        raise Forbidden(f"{client_action.type!r} is not for clients to say.")
    client_action.action = check_action(dialect, client_action.action)


def _read(connection: "EditorClient", params: Json) -> ClientAction | None:
    """Parse the action. Invalid data cannot be echoed; it is only logged."""
    action, client_seq = params.get("action"), params.get("clientSeq")
    if not isinstance(action, dict) or not isinstance(action.get("type"), str):
        logger.warning("%s dispatched something that is no action", connection.client_id)
        return None
    if isinstance(client_seq, bool) or not isinstance(client_seq, int):
        logger.warning("%s dispatched %r without a clientSeq", connection.client_id, action["type"])
        return None
    inside = action.get("session") or action.get("terminal")
    name = inside if connection.dialect.seed else params.get("channel")
    return ClientAction(connection, name if isinstance(name, str) else "", action, client_seq)


def _target(client_action: ClientAction) -> Target:
    """Where the action belongs; its type and its channel must fit."""
    connection = client_action.connection
    prefix = client_action.prefix
    if prefix == "root" and (connection.dialect.seed or uri.is_root(client_action.name)):
        return targets.ROOT
    if not client_action.name:
        raise NotFound("channel", "")
    target = targets.resolve(connection.view, client_action.name, connection.dialect.seed)
    kinds = {"seed": "session", "watch": "resourceWatch", "automations": "automation", "run": "automationRun"}
    if kinds.get(target.kind, target.kind) != prefix and not _is_rename(client_action, target):
        raise BadRequest(f"{client_action.type!r} does not belong on this channel.", field="channel")
    return target


def _is_rename(client_action: ClientAction, target: Target) -> bool:
    """Editors rename on the channel of a chat: the default chat's title is the session's."""
    return client_action.type == _RENAME and target.kind == "chat"


async def _do(client_action: ClientAction, target: Target) -> None:
    try:
        if not await _perform(client_action, target):
            client_action.echo()
    except PorticoError as error:
        client_action.refuse(error.message)
    except Exception:  # a bug: the client must still be notified that its action failed
        logger.exception("%s failed", client_action.type)
        client_action.refuse("Something went wrong inside the host; its log says what.")


async def _perform(client_action: ClientAction, target: Target) -> bool:
    """Return True if the log echoes the action, False if nothing changed and only its client gets an echo."""
    connection = client_action.connection
    match target.kind:
        case "root":
            return await _configure_root(client_action)
        case "terminal":
            terminal = connection.view.terminal(target.ident)
            return await terminal_commands.act(client_action, terminal)
        case "changeset":
            await changes.review(connection, target, client_action.action, client_action.by)
            return False
        case "automations":
            await automations.act(client_action)
            return False  # its only effect is the update of the catalogue
        case "run":
            await automations.cancel(client_action, target.ident)
            return False
    session = await connection.view.get(target.ident)
    if target.kind == "annotations":
        return await annotate(client_action, session)
    if _is_rename(client_action, target):
        await connection.do(c.RenameSession(session=session.id, title=client_action.action["title"]))
        return False  # the session's channel publishes it; the echo is sent on the chat's channel
    say = BATCHED.get(client_action.type)
    if say is not None:
        await client_action.do(say(client_action, session))
        return True
    handler = HANDLERS.get(client_action.type.partition("/")[2])
    if handler is None:
        raise Conflict(f"This host has nothing that {client_action.type!r} could be about.")
    return await handler(client_action, session) is not False


# -- the root --------------------------------------------------------------------------------------------------


async def _configure_root(client_action: ClientAction) -> bool:
    """False: editors push the same settings ten times per connection."""
    action = client_action.action
    command = ConfigureHost(values=action["config"], replace=bool(action.get("replace")), action=action)
    changed: bool = await client_action.connection.host.do(command, client_action.caller)
    return changed

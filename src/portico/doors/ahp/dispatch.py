"""Client actions become commands of the host, or are refused.

A refused action goes back to whom it came from, with the reason; it is applied nowhere and shown to nobody else. An
accepted one comes back from the log, in its place among everything else, exactly once. What the host does because of
it carries `client:ID#NUMBER.TYPE` as `by`, so the echo is known again even after a restart.
"""

import logging
from typing import TYPE_CHECKING

import msgspec

from portico import events as e
from portico.doors.ahp import actions, changes, config, shapes, targets, terminal_commands, uri
from portico.doors.ahp.deed import Deed
from portico.doors.ahp.facts import FACTS
from portico.doors.ahp.handlers import HANDLERS, annotate
from portico.doors.ahp.record import Json
from portico.doors.ahp.targets import Target
from portico.errors import BadRequest, Conflict, Forbidden, NotFound, PorticoError
from portico.events import HOST
from portico.host.autonomy import APPROVAL_KEYS
from portico.host.session import Session

if TYPE_CHECKING:
    from portico.doors.ahp.connection import Connection

logger = logging.getLogger("portico.ahp")


def note(connection: "Connection", params: Json) -> bool:
    """Takes in a plain fact on the spot. False for everything else, and for what is wrong with it: `dispatch` says."""
    action = params.get("action")
    kind = action.get("type") if isinstance(action, dict) else None
    say = FACTS.get(kind) if isinstance(kind, str) else None
    deed = _read(connection, params) if say is not None else None
    if say is None or deed is None:
        return False
    try:
        _check(deed)
        session = _subject(deed)
        if session is None or not session.loaded:
            return False
        event = say(deed, session)
    except PorticoError:
        return False
    connection.facts.add(deed, session.channel, event)
    return True


def _subject(deed: Deed) -> Session | None:
    """Whose fact it is. One after the other is about the same session, so its name is resolved once."""
    facts, name = deed.connection.facts, f"{deed.prefix} {deed.name}"
    session = facts.subject(name)
    if session is None:
        session = deed.connection.host.find(_target(deed).ident)
        if session is not None:
            facts.remember(name, session)
    return session


async def dispatch(connection: "Connection", params: Json) -> None:
    deed = _read(connection, params)
    if deed is None:
        return
    try:
        _check(deed)
        target = _target(deed)
    except NotFound:
        return  # a channel that is not there (any more): silently ignored, as the protocol wants it
    except PorticoError as error:
        await connection.settle()
        deed.refuse(error.message)
        return
    await connection.settle()
    await _do(deed, target)


def _check(deed: Deed) -> None:
    """It is an action, whole, and one that a client may say."""
    dialect = deed.connection.dialect
    if not actions.is_dispatchable(dialect, deed.type):
        raise Forbidden(f"{deed.type!r} is not for clients to say.")
    deed.action = shapes.check_action(dialect, deed.action)


def _read(connection: "Connection", params: Json) -> Deed | None:
    """What is no action at all cannot be echoed; it is only noted."""
    action, client_seq = params.get("action"), params.get("clientSeq")
    if not isinstance(action, dict) or not isinstance(action.get("type"), str):
        logger.warning("%s dispatched something that is no action", connection.client_id)
        return None
    if isinstance(client_seq, bool) or not isinstance(client_seq, int):
        logger.warning("%s dispatched %r without a clientSeq", connection.client_id, action["type"])
        return None
    inside = action.get("session") or action.get("terminal")
    name = inside if connection.dialect.seed else params.get("channel")
    return Deed(connection, name if isinstance(name, str) else "", action, client_seq)


def _target(deed: Deed) -> Target:
    """Where the action belongs; its type and its channel must fit."""
    connection = deed.connection
    prefix = deed.prefix
    if prefix == "root" and (connection.dialect.seed or uri.is_root(deed.name)):
        return targets.ROOT
    if not deed.name:
        raise NotFound("channel", "")
    target = targets.resolve(connection.host, deed.name, connection.dialect.seed)
    kinds = {"seed": "session", "watch": "resourceWatch"}
    if kinds.get(target.kind, target.kind) != prefix:
        raise BadRequest(f"{deed.type!r} does not belong on this channel.", field="channel")
    return target


async def _do(deed: Deed, target: Target) -> None:
    try:
        if not await _perform(deed, target):
            deed.echo()
    except PorticoError as error:
        deed.refuse(error.message)
    except Exception:  # a bug: the client must still hear that its action came to nothing
        logger.exception("%s failed", deed.type)
        deed.refuse("Something went wrong inside the host; its log says what.")


async def _perform(deed: Deed, target: Target) -> bool:
    """True: the log echoes it. False: nothing changed, and the client hears just that."""
    connection = deed.connection
    match target.kind:
        case "root":
            return await _configure_root(deed)
        case "terminal":
            terminal = connection.host.terminals.get(target.ident)
            return await terminal_commands.act(connection, terminal, deed.action, deed.by)
        case "changeset":
            connection.require("files")
            await changes.review(connection, target, deed.action, deed.by)
            return False
    session = await connection.host.get(target.ident)
    if target.kind == "annotations":
        return await annotate(deed, session)
    say = FACTS.get(deed.type)
    if say is not None:
        await session.append(say(deed, session))
        return True
    handler = HANDLERS.get(deed.type.partition("/")[2])
    if handler is None:
        raise Conflict(f"This host has nothing that {deed.type!r} could be about.")
    return await handler(deed, session) is not False


# -- the root --------------------------------------------------------------------------------------------------


async def _configure_root(deed: Deed) -> bool:
    connection, exchange = deed.connection, deed.connection.exchange
    given, replace = deed.action["config"], bool(deed.action.get("replace"))
    values = given if replace else {**exchange.root_values, **given}
    if values == exchange.root_values:
        return False  # editors push the same settings ten times per connection
    changed = {key for key in {*values, *exchange.root_values} if values.get(key) != exchange.root_values.get(key)}
    if changed & APPROVAL_KEYS:
        connection.require("approve")
    exchange.configure(values)
    log = connection.host.log
    log.note(HOST, config.ROOT_KEY, msgspec.json.encode(values))
    await log.append(HOST, e.ClientKept(key=config.ROOT_KEY, by=deed.by, value=values, action=deed.action))
    return True

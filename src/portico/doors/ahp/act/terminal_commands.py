"""Terminals: opened and closed by command, used by actions. Only the holder of the claim may type or transfer it."""

from typing import TYPE_CHECKING, Any

from portico.doors.ahp.act.command import Method, optional, subject
from portico.doors.ahp.view import names
from portico.doors.ahp.wire.check import check
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.types import TerminalClaim
from portico.features.terminals.commands import (
    ClaimTerminal,
    ClearTerminal,
    CloseTerminal,
    OpenTerminal,
    RenameTerminal,
    ResizeTerminal,
    TypeInput,
)
from portico.features.terminals.state import TerminalState
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.errors import AlreadyExists, BadRequest, NotFound
from portico.kernel.host import Host

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient
    from portico.doors.ahp.act.client_action import ClientAction


async def create(connection: "EditorClient", params: Json) -> None:
    field = "terminal" if connection.dialect.seed else "channel"
    name = names.chosen(subject(connection, params, "terminal"), field)
    if names.find_session(connection.view, name) is not None or names.find_chat(connection.view, name) is not None:
        raise AlreadyExists(f"There is a session or chat {name!r}; call the terminal something else.", field=field)
    if names.find_terminal(connection.view, name) is not None:
        raise AlreadyExists(f"There is a terminal {name!r} already.", field=field)
    claim = _claim(connection, params.get("claim"))
    owner = _owner(connection, claim)
    cwd = params.get("cwd")
    if cwd is not None and not isinstance(cwd, str):
        raise BadRequest("'cwd' must be a URI.", field="cwd")
    command = OpenTerminal(
        cwd=names.folder_of(cwd) if cwd is not None else None,
        session=owner,
        title=(optional(params, "name", str) or "")[:200],
        cols=_size(params, "cols", 80),
        rows=_size(params, "rows", 24),
        uri=name,
        claim=claim,
    )
    await connection.do(command)


def _size(params: Json, field: str, default: int) -> int:
    given = optional(params, field, int)
    return default if given is None else given


def _claim(connection: "EditorClient", said: Any) -> Json:
    """Check the claim: a client may claim a terminal for itself or for an existing session, not for another client."""
    if said is None:
        raise BadRequest("'claim' is missing: {kind: 'client', clientId} or {kind: 'session', session}.", field="claim")
    claim: Json = check(TerminalClaim, said, "claim")
    if claim["kind"] == "client" and claim["clientId"] != connection.client_id:
        raise BadRequest("A terminal cannot be claimed for another client.", field="claim.clientId")
    return _with_chat(connection, claim)


def _with_chat(connection: "EditorClient", claim: Json) -> Json:
    """Since 0.9 a session claims through one of its chats; without a chat it is the default chat."""
    session = names.find_session(connection.view, claim["session"]) if claim["kind"] == "session" else None
    return {"chat": names.chat_uri(session.summary), **claim} if session is not None else claim


def _owner(connection: "EditorClient", claim: Json) -> str | None:
    """The session it is claimed for. A terminal of a missing session would have no owner and would never be closed."""
    if claim["kind"] != "session":
        return None
    session = names.find_session(connection.view, claim["session"])
    if session is None:
        raise NotFound("session", claim["session"])
    return session.id


async def dispose(connection: "EditorClient", params: Json) -> None:
    name = subject(connection, params, "terminal")
    terminal = names.find_terminal(connection.view, name)
    if terminal is None:
        raise NotFound("terminal", name)
    await connection.do(CloseTerminal(terminal=terminal.id))


async def act(client_action: "ClientAction", terminal: TerminalState) -> bool:
    """Run a client's action on a terminal; False when nothing is written to the log."""
    connection, action, ident = client_action.connection, client_action.action, terminal.id
    match action["type"]:
        case "terminal/input":
            await client_action.do(TypeInput(terminal=ident, data=action["data"]))
            return False
        case "terminal/resized":
            size = (terminal.cols, terminal.rows)
            await client_action.do(ResizeTerminal(terminal=ident, cols=action["cols"], rows=action["rows"]))
            return size != (action["cols"], action["rows"])
        case "terminal/claimed":
            claim = _with_chat(connection, check(TerminalClaim, action["claim"], "claim"))
            owner = _owner(connection, claim)
            await client_action.do(ClaimTerminal(terminal=ident, claim=claim, session=owner))
        case "terminal/titleChanged":
            await client_action.do(RenameTerminal(terminal=ident, title=action["title"]))
        case "terminal/cleared":
            await client_action.do(ClearTerminal(terminal=ident))
    return True


def narrow(host: Host, ident: str, ended: e.ToolEnded) -> None:
    """What a call of this session has claimed is the session's alone when the call is over."""
    for terminal in host.terminals.list():
        claim = terminal.claim
        if not host.members.owns(terminal.channel):
            continue  # its own host also receives the event
        if claim.get("toolCallId") == ended.call and claim.get("turnId", ended.turn) == ended.turn:
            owner, session = names.find_session(host, claim["session"]), host.find(ident)
            if owner is not None and session is not None and host.catalogue.root(session) is host.catalogue.root(owner):
                host.own(_narrow(host, terminal, claim), f"ahp claim {terminal.id}")


async def _narrow(host: Host, terminal: TerminalState, claim: Json) -> None:
    if terminal.claim == claim and host.terminals.find(terminal.id) is terminal:
        left = {key: value for key, value in claim.items() if key not in ("turnId", "toolCallId")}
        handing_on = ClaimTerminal(terminal=terminal.id, claim=left, session=terminal.session)
        await host.do(handing_on, c.Caller.inside("host"))


COMMANDS = {
    "createTerminal": Method(create, OpenTerminal),
    "disposeTerminal": Method(dispose, CloseTerminal),
}

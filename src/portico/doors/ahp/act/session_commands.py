"""Sessions and chats: create, list, read and delete."""

import re
from typing import TYPE_CHECKING, Any, Literal

from portico.doors.ahp.act import attachments, clients, plugins, sign_in, working_directories
from portico.doors.ahp.act.command import Method, optional, subject, text
from portico.doors.ahp.view import message, names, parts, snapshots
from portico.doors.ahp.view.targets import ROOT, Target
from portico.doors.ahp.wire import rpc, uri
from portico.doors.ahp.wire.check import check
from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.rpc import WireError
from portico.doors.ahp.wire.types import ChatSource, Message
from portico.features.chats.commands import MoveChat
from portico.features.folders.commands import ChooseFolder
from portico.features.people.families import children, descendants
from portico.kernel import commands as c
from portico.kernel.commands import Isolation
from portico.kernel.context import CONTEXT, transcript
from portico.kernel.errors import AlreadyExists, BadRequest, NotFound
from portico.kernel.events import Origin
from portico.kernel.session import Session
from portico.kernel.state import Summary, TurnState, is_subagent

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

_TURNS = 50
_TURNS_MAX = 100
"""Turns in one answer of version 1's `fetchTurns`, as its reference host does it."""


# -- sessions --------------------------------------------------------------------------------------------------


async def create_session(connection: "EditorClient", params: Json) -> None:
    field = "session" if connection.dialect.seed else "channel"
    name = names.chosen(subject(connection, params, "session"), field)
    client = clients.own(connection, params.get("activeClient"))
    config = dict(optional(params, "config", dict) or {})
    _check_free(connection, name)
    if names.find_session(connection.host, name) is not None:
        raise WireError(rpc.SESSION_EXISTS, f"There is a session {name!r} already.")
    progress = Progress(connection, optional(params, "progressToken", str))
    progress.say(0, "Making a worktree" if config.get("isolation") == "worktree" else "Starting the session")
    try:
        session = await _start(connection, params, name, config)
    except AlreadyExists as error:
        raise rpc.exists(error) from error
    if client is not None:
        await clients.join(connection, session, client, connection.by)
    progress.say(1, "Ready")


def _check_free(connection: "EditorClient", name: str) -> None:
    """Refuse the name of a terminal: names must not change their meaning, and the terminal would be found first."""
    if names.find_terminal(connection.view, name) is not None:
        raise WireError(rpc.SESSION_EXISTS, f"There is a terminal {name!r}.")


class Progress:
    """`root/progress` for a client that sent a progress token; the last one reports completion."""

    def __init__(self, connection: "EditorClient", token: str | None) -> None:
        self._connection = connection
        self._token = token if ROOT in connection.targets else None

    def say(self, progress: int, words: str) -> None:
        if self._token is not None:
            told = {"channel": uri.ROOT, "progressToken": self._token, "progress": progress, "total": 1}
            self._connection.push(rpc.notification("root/progress", {**told, "message": words}))


async def _start(connection: "EditorClient", params: Json, name: str, config: Json) -> Session:
    host = connection.host
    fork = optional(params, "fork", dict)
    if fork is not None:
        source, turns = await _history(connection, text(fork, "session"), text(fork, "turnId"), names.find_session)
        state = source.state
        await sign_in.check(connection, state.agent)
        command = c.StartSession(
            agent=state.agent,
            model=state.model or None,
            cwd=state.cwd,
            title=state.title,
            uri=name,
            origin=Origin("fork", source.id, turns[-1].id),
            config={**state.config, **config},
            folders=state.folders,
            model_config=state.model_config,
        )
    else:
        provider = optional(params, "provider", str) or _named(connection, name)
        await sign_in.check(connection, provider)
        model = _model(params)
        folders = working_directories.listed(params)
        command = c.StartSession(
            agent=provider,
            model=optional(model, "id", str),
            cwd=folders[0] if folders else None,
            uri=name,
            config=config,
            worktree=_isolation(config, name) or False,
            folders=folders[1:],
            model_config=optional(model, "config", dict) or {},
            draft=connection.expects_drafts and not connection.dialect.seed,
        )
    started: Summary = await connection.do(command)
    return await host.get(started.id)


def _model(params: Json) -> Json:
    """The selected model: an object with its id, or the id alone as in the example of version 1."""
    given = params.get("model")
    return {"id": given} if isinstance(given, str) and given else optional(params, "model", dict) or {}


def _named(connection: "EditorClient", name: str) -> str | None:
    """The agent whose id is the scheme of the name: the protocol names sessions `<provider>:/<id>`."""
    scheme = name.partition(":")[0]
    return scheme if scheme in connection.host.agents else None


def _isolation(config: Json, name: str) -> Isolation | None:
    if config.get("isolation") != "worktree":
        return None
    short = re.sub(r"[^A-Za-z0-9-]+", "-", name.rpartition("/")[2]).strip("-")[:60] or "session"
    base = config.get("branch")
    return Isolation(short, base if isinstance(base, str) and base else "HEAD")


async def _history(connection: "EditorClient", name: str, turn: str, find: Any) -> tuple[Session, list[TurnState]]:
    """The finished turns of a session through one of them."""
    found = find(connection.host, name)
    if found is None:
        raise NotFound("session", name)
    source = await connection.view.get(found.id)
    turns = [each for each in source.state.turns if each.outcome is not None]
    index = next((at for at, each in enumerate(turns) if each.id == turn), None)
    if index is None:
        raise NotFound("finished turn", turn)
    return source, turns[: index + 1]


async def dispose_session(connection: "EditorClient", params: Json) -> None:
    session = _session(connection, subject(connection, params, "session"))
    await connection.do(c.DeleteSession(session=session.id))


def _session(connection: "EditorClient", name: str) -> Session:
    found = names.find_session(connection.view, name)
    if found is None:
        raise NotFound("session", name)
    return found


async def list_sessions(connection: "EditorClient", params: Json) -> Json:
    seed = connection.dialect.seed
    seen = connection.view.list()
    found = [each for each in seen if each.agent and _listed(each, seed)]
    if seed:
        items = [snapshots.summary(each, connection.dialect, (), connection.broker.activity(each.id)) for each in found]
        return {"items": items}
    family = children(seen)
    below = {each.id: descendants(each.id, family) for each in found}
    found.sort(key=lambda each: snapshots.together(each, below[each.id]).last_turn_at, reverse=True)
    limit = optional(params, "limit", int)
    start = _cursor(found, optional(params, "cursor", str))
    end = start + min(limit, 1000) if limit is not None and limit > 0 else len(found)
    items = [
        snapshots.summary(each, connection.dialect, below[each.id], connection.broker.activity(each.id))
        | connection.broker.besides(each)
        for each in found[start:end]
    ]
    result: Json = {"items": items}
    return result | ({"nextCursor": found[end - 1].id} if end < len(found) else {})


def _listed(of: Summary, seed: bool) -> bool:
    """Version 1 has no chats: all but sub-agents are sessions there."""
    return not is_subagent(of) if seed else of.parent is None


def _cursor(found: list[Summary], cursor: str | None) -> int:
    if cursor is None:
        return 0
    index = next((at for at, each in enumerate(found) if each.id == cursor), None)
    if index is None:
        raise BadRequest("This cursor is not (or no longer) valid; list from the start.", field="cursor")
    return index + 1


# -- chats -----------------------------------------------------------------------------------------------------


async def create_chat(connection: "EditorClient", params: Json) -> None:
    host = connection.host
    owner = await host.get(_session(connection, text(params, "channel")).id)
    if owner.summary.parent is not None:
        raise NotFound("session", text(params, "channel"))
    name = names.chosen(params.get("chat"), "chat")
    _check_free(connection, name)
    if names.find_chat(host, name) is not None:
        raise WireError(rpc.SESSION_EXISTS, f"There is a chat {name!r} already.")
    first = params.get("initialMessage")
    if first is not None:
        first = await attachments.fetched(connection, check(Message, first, "initialMessage"))
    opening = message.from_wire(first) if first is not None else None
    source = optional(params, "source", dict)
    source = _source(connection, source) if source else {}
    folders = working_directories.subset(params, owner.summary)
    try:
        chat = await _open_chat(connection, owner, name, source, folders)
    except AlreadyExists as error:
        raise rpc.exists(error) from error
    for client in owner.state.clients:
        joins = c.JoinSession(session=chat.id, client=client.id, name=client.name, tools=client.tools, meta=client.meta)
        await host.do(joins, c.Caller.inside(connection.as_client.by))  # clients of the session are in its chats
    await plugins.hand_down(owner, chat)
    if opening is not None:
        said = {field: getattr(opening, field) for field in opening.__struct_fields__}
        await connection.do(c.SendMessage(session=chat.id, **said))


def _source(connection: "EditorClient", said: Json) -> Json:
    if "kind" not in said and not connection.dialect.since("0.7.0"):
        said = {**said, "kind": "fork"}  # the only kind in older versions
    checked: Json = check(ChatSource, said, "source")
    if checked.get("kind") not in ("fork", "sideChat"):
        raise BadRequest("A chat's source is a 'fork' or a 'sideChat'.", field="source.kind")
    return checked


async def _open_chat(
    connection: "EditorClient", owner: Session, name: str, source: Json, folders: list[str]
) -> Session:
    host, origin, above = connection.host, None, owner
    turns: list[TurnState] = []
    config = {key: value for key, value in owner.state.config.items() if key != CONTEXT}
    if source:
        above, turns = await _history(connection, source["chat"], source["turnId"], names.find_chat)
        if host.catalogue.root(above).id != owner.id:
            raise BadRequest("The source chat belongs to another session.", field="source.chat")
        side = source["kind"] == "sideChat"
        kind: Literal["side", "fork"] = "side" if side else "fork"
        selection = source.get("selection") or {}
        origin = Origin(kind, above.id, turns[-1].id, selection=selection, uri=names.chat_uri(above.summary))
        if side:
            config[CONTEXT] = _context(turns, origin.selection)
            turns = []
    command = c.StartSession(
        agent=owner.state.agent,
        model=owner.state.model or None,
        cwd=owner.state.cwd,
        title=f"Copy of {above.state.title}" if turns else "New chat",
        uri=name,
        parent=owner.id,  # not `above`: when that is disposed, what was made from it stays
        origin=origin,
        config=config,
    )
    started: Summary = await connection.do(command)
    for folder in folders:
        await connection.do(ChooseFolder(session=started.id, folder=folder))
    return await host.get(started.id)


def _context(turns: list[TurnState], selection: Json) -> str:
    """The context of a side chat: the transcript of its parent conversation."""
    chosen = selection.get("text")
    return transcript(turns) + (f"\n\nThe question is about this part of it:\n{chosen}" if chosen else "")


async def dispose_chat(connection: "EditorClient", params: Json) -> None:
    chat = _chat(connection, text(params, "channel"))
    if chat.summary.parent is None:
        raise BadRequest("The default chat ends with its session.", field="channel")
    await connection.do(c.DeleteSession(session=chat.id))


async def move_chat(connection: "EditorClient", params: Json) -> Json:
    chat, destination = _chat(connection, text(params, "channel")), optional(params, "destination", dict) or {}
    if destination.get("kind") not in ("session", "newSession"):
        raise BadRequest("'kind' is 'session' or 'newSession'.", field="destination.kind")
    named = text(destination, "session") if destination["kind"] == "session" else None
    to = _session(connection, named).id if named is not None else None
    after = optional(destination, "after", str)
    anchor = _chat(connection, after).id if after is not None else None
    await connection.do(MoveChat(session=chat.id, to=to, after=anchor))
    return {"session": names.session_uri(connection.host.catalogue.root(chat).summary)}


def _chat(connection: "EditorClient", name: str) -> Session:
    found = names.find_chat(connection.view, name)
    if found is None:
        raise NotFound("session", name)
    return found


# -- turns -----------------------------------------------------------------------------------------------------


async def fetch_turns(connection: "EditorClient", params: Json) -> Json:
    if connection.dialect.seed:
        return await _fetch_old(connection, params)
    chat = _chat(connection, text(params, "channel"))
    state = (await connection.view.get(chat.id)).state
    target = Target("chat", chat.id)
    cursor = optional(params, "cursor", str) or connection.oldest.get(target)
    done = [each for each in state.turns if each.outcome is not None]
    end = next((at for at, each in enumerate(done) if each.id == cursor), None)
    end = end if cursor else _told(connection, target, done)
    if end is None:
        raise BadRequest("This cursor is not valid.", field="cursor")
    start = max(0, end - _TURNS)
    fields: Json = {"turns": [parts.turn(each, connection.dialect) for each in done[start:end]]}
    if start:
        fields["turnsNextCursor"] = done[start].id
    connection.oldest[target] = done[start].id if done[start:end] else cursor or ""
    connection.say(target, Outgoing("turnsLoaded", fields))
    return {}


def _told(connection: "EditorClient", target: Target, done: list[TurnState]) -> int:
    """Where the turns begin that a client without a cursor has: one that subscribed and got all of them has no more to
    come, anybody else begins with the newest."""
    return 0 if target in connection.targets else len(done)


async def _fetch_old(connection: "EditorClient", params: Json) -> Json:
    session = await connection.view.get(_session(connection, text(params, "session")).id)
    done = [each for each in session.state.turns if each.outcome is not None]
    before = optional(params, "before", str)
    limit = optional(params, "limit", int)
    end = next((at for at, each in enumerate(done) if each.id == before), None if before else len(done))
    if end is None:
        raise BadRequest(f"This session has no finished turn {before!r}.", field="before")
    start = max(0, end - min(max(1, limit if limit is not None else _TURNS), _TURNS_MAX))
    return {"turns": [parts.turn(each, connection.dialect) for each in done[start:end]], "hasMore": start > 0}


COMMANDS = {
    "createSession": Method(create_session),
    "disposeSession": Method(dispose_session),
    "listSessions": Method(list_sessions, "sessions"),
    "createChat": Method(create_chat, seed=False),
    "disposeChat": Method(dispose_chat, seed=False),
    "moveChat": Method(move_chat, seed=False, since="1.0.0"),
    "fetchTurns": Method(fetch_turns, "sessions"),
}

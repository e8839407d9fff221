"""Full states for new subscribers, computed from the host's state."""

from collections.abc import Iterable, Sequence
from operator import attrgetter

from msgspec import structs

from portico.doors.ahp.view import card, names, parts
from portico.doors.ahp.wire import uri
from portico.doors.ahp.wire.record import Json, present
from portico.doors.ahp.wire.status import (
    ERROR,
    IDLE,
    IN_PROGRESS,
    INPUT_NEEDED,
    IS_ARCHIVED,
    IS_READ,
    activity_bits,
    blocks,
    with_activity,
)
from portico.doors.ahp.wire.versions import Dialect, iso
from portico.features.chats.move import ordered
from portico.kernel.agent import AgentInfo, Resource
from portico.kernel.events import ToolSpec
from portico.kernel.state import (
    CHANGES,
    DRAFT,
    CallPart,
    ClientState,
    QuestionPart,
    SessionState,
    Status,
    Summary,
    TurnState,
    chat_flag,
    is_subagent,
)

ANNOTATION = "annotation/"
REVIEWED = "reviewed/"

MODERN = Dialect("0.7.0", lambda: 0)
"""For data that is the same in all versions of the channel dialect."""


def waits(turn: TurnState) -> bool:
    """Whether the turn waits for a person."""
    return any(
        (isinstance(part, CallPart) and not part.done and (part.approval is not None or part.sign_in is not None))
        or (isinstance(part, QuestionPart) and not part.done)
        for part in turn.parts
    )


def activity(state: SessionState) -> int:
    turn = state.active
    if turn is not None:
        return INPUT_NEEDED if waits(turn) else IN_PROGRESS
    return ERROR if state.last_outcome in ("failed", "interrupted") else IDLE


def status(state: SessionState) -> int:
    return activity(state) | _flags(state.read, state.archived)


def chat_status(state: SessionState) -> int:
    """The status bits of a chat. Since 1.0 a chat has separate flags."""
    return activity(state) | _flags(chat_flag(state, "read"), chat_flag(state, "archived"))


def _flags(read: bool, archived: bool) -> int:
    return (IS_READ if read else 0) | (IS_ARCHIVED if archived else 0)


def standing(of: Summary) -> Status:
    """The status of a session. A turn interrupted by the end of the host counts as failed, as in its chat."""
    return "failed" if of.interrupted else of.status


def moved(of: Summary | SessionState) -> int:
    """`modifiedAt` of the channel dialect: since 0.9 only turns that begin or end change it, in lists as in chats."""
    return of.last_turn_at or of.modified  # an older Portico did not record it


_BITS: dict[Status, int] = {"idle": IDLE, "running": IN_PROGRESS, "waiting": INPUT_NEEDED, "failed": ERROR}


def _listed_status(of: Summary) -> int:
    """Of a chat."""
    return _BITS[standing(of)] | _flags(chat_flag(of, "read"), chat_flag(of, "archived"))


def together(of: Summary, below: Iterable[Summary]) -> Summary:
    """A session combined with all its chats for its catalogue entry: a waiting or failed chat sets the status of the
    session, and the newest chat sets its time."""
    chats = [of, *below]
    found = [standing(chat) for chat in chats]
    status: Status = "waiting" if "waiting" in found else "failed" if "failed" in found else of.status
    return structs.replace(of, status=status, interrupted=False, last_turn_at=max(moved(chat) for chat in chats))


def summary(of: Summary, dialect: Dialect, below: Sequence[Summary] = (), activity: str = "") -> Json:
    """A catalogue entry; `below` are the chats of the session, which version 1 lists separately."""
    chats = [of, *below]
    of = of if dialect.seed else together(of, below)
    shown: Json = {
        "resource": names.session_uri(of, seed=dialect.seed),
        "provider": of.agent,
        "title": of.title,
        "status": _BITS[standing(of)] | _flags(of.read, of.archived),
        "createdAt": of.created if dialect.seed else iso(of.created),
        "modifiedAt": of.modified if dialect.seed else iso(moved(of)),
        "workingDirectory": names.file_uri(of.cwd),
        **present(activity=activity),
    }
    if dialect.seed:
        return shown | ({"model": model(of.model, of.model_config)} if of.model else {})
    if of.changes:
        shown["changes"] = of.changes
    if dialect.since("1.0.0"):
        shown["defaultChat"] = names.chat_uri(of)
        shown["chats"] = [_listed(each, chats) for each in ordered(chats, of.chat_order, attrgetter("id"))]
    return shown | {"workingDirectories": directories(of)}


def is_movable(of: Summary | SessionState) -> bool:
    """Whether a chat can be moved: it is neither a default chat nor a sub-agent."""
    return of.parent is not None and not is_subagent(of)


def _movable(of: Summary | SessionState, dialect: Dialect) -> Json:
    return {"movable": True} if dialect.since("1.0.0") and is_movable(of) else {}


def model(ident: str, config: Json) -> Json:
    return {"id": ident, **({"config": config} if config else {})}


def _listed(of: Summary, chats: Sequence[Summary]) -> Json:
    """A chat in its session's catalogue entry."""
    above = next((each for each in chats if of.origin is not None and each.id == of.origin.session), None)
    return {
        "resource": names.chat_uri(of),
        "title": of.title,
        "status": _listed_status(of),
        "origin": origin(of, source(of, above)),
        "interactivity": "full",
        **_interactivity(of),
        **present(changes=of.changes),
    }


def source(of: Summary | SessionState, above: Summary | None) -> str:
    """The chat that this one was made from (`above`), under the name it had when that is gone."""
    if of.origin is None:
        return ""
    return names.chat_uri(above) if above is not None else of.origin.uri or names.CHAT + of.origin.session


def _interactivity(of: Summary | SessionState) -> Json:
    """Only the agent that started a sub-agent sends messages to it."""
    return {"interactivity": "read-only"} if is_subagent(of) else {}


def directories(of: Summary | SessionState) -> list[str]:
    """The directories of a session, starting with the one where its process runs."""
    return [names.file_uri(each) for each in (of.cwd, *of.folders)]


def seed_session(state: SessionState, tools: Iterable[ToolSpec], config: Json, dialect: Dialect) -> Json:
    """The one state of version 1: catalogue entry and conversation together."""
    head: Json = {
        "resource": names.session_uri(state, seed=True),
        "provider": state.agent,
        "title": state.title,
        "status": status(state),
        "createdAt": state.created,
        "modifiedAt": state.modified,
        "workingDirectory": names.file_uri(state.cwd),
    }
    head |= present(model=model(state.model, state.model_config) if state.model else None)
    head |= present(activity=card.activity(state))
    if CHANGES in state.client_data:
        head["diffs"] = parts.diffs(state, state.client_data[CHANGES])
    shown: Json = {"summary": head, "lifecycle": "ready", **_conversation(state, dialect), "config": config}
    return shown | present(
        serverTools=[tool(each) for each in tools],
        activeClient=client(state.clients[-1]) if state.clients else None,
        inputRequests=[parts.request(part) for part in parts.open_questions(state)],
    )


def chat(
    state: SessionState, dialect: Dialect, source: str = "", last: int | None = None, changesets: Sequence[Json] = ()
) -> Json:
    """`source`: the chat it was made from. `last`: only so many finished turns; `fetchTurns` brings the others."""
    shown = chat_head(state, source, dialect) | present(activity=card.activity(state)) | _conversation(state, dialect)
    if not dialect.since("1.0.0"):
        shown.pop("changes", None)
    elif changesets:
        shown["changesets"] = list(changesets)
    if last is not None and len(shown["turns"]) > last:
        shown["turns"] = shown["turns"][len(shown["turns"]) - last :]
        shown["turnsNextCursor"] = shown["turns"][0]["id"]
    asked = [] if dialect.since("0.6.0") else [parts.request(part) for part in parts.open_questions(state)]
    return shown | present(inputRequests=asked, draft=state.client_data.get(DRAFT))


def _conversation(state: SessionState, dialect: Dialect) -> Json:
    active = state.active
    done = [each for each in state.turns if each is not active]
    steering = [each for each in state.queue if each.kind == "steer"]
    return {"turns": [parts.turn(each, dialect) for each in done]} | present(
        activeTurn=parts.turn(active, dialect) if active is not None else None,
        queuedMessages=[parts.pending(each, dialect) for each in state.queue if each.kind == "queue"],
        steeringMessage=parts.pending(steering[-1], dialect) if steering else None,
    )


def chat_head(state: SessionState, source: str, dialect: Dialect) -> Json:
    """What a chat's summary and its state have in common."""
    return {
        "resource": names.chat_uri(state),
        "title": state.title,
        "status": chat_status(state) if dialect.since("1.0.0") else activity(state),
        "modifiedAt": iso(moved(state)),
        "origin": origin(state, source),
        **chosen(state),
        **counted(state),
        **_interactivity(state),
        **_movable(state, dialect),
    }


def counted(state: SessionState) -> Json:
    found = state.client_data.get(CHANGES, {})
    return {"changes": {key: value for key, value in found.items() if key != "edits"}} if found else {}


def chosen(of: Summary | SessionState) -> Json:
    """The working directories that a chat selected. Empty if it selected none: then it has all of its session."""
    return (
        {} if of.folder_subset is None else {"workingDirectories": [names.file_uri(each) for each in of.folder_subset]}
    )


def chat_line(of: Summary, source: str, dialect: Dialect) -> Json:
    """A chat in its session's catalogue, when only its summary is known."""
    bits = _listed_status(of)
    return {
        "resource": names.chat_uri(of),
        "title": of.title,
        "status": bits if dialect.since("1.0.0") else activity_bits(bits),
        "modifiedAt": iso(moved(of)),
        "origin": origin(of, source),
        **chosen(of),
        **present(changes=of.changes),
        **_interactivity(of),
        **_movable(of, dialect),
    }


def origin(of: Summary | SessionState, source: str) -> Json:
    if of.origin is None or not names.is_chat(of):
        return {"kind": "user"}
    if of.origin.kind == "agent":
        return {"kind": "tool", "chat": source, "toolCallId": of.origin.call or ""}
    kind = "fork" if of.origin.kind == "fork" else "sideChat"
    shown: Json = {"kind": kind, "chat": source, "turnId": of.origin.turn or ""}
    return shown | ({"selection": of.origin.selection} if of.origin.selection else {})


def session(
    state: SessionState,
    chats: list[Json],
    needed: list[Json],
    tools: Iterable[ToolSpec],
    config: Json,
    changesets: list[Json],
    dialect: Dialect,
) -> Json:
    """A session of the channel dialect: the catalogue around its chats."""
    bits = status(state)
    for promoted in (ERROR, INPUT_NEEDED):
        if any(activity_bits(each["status"]) == promoted for each in chats):
            bits = with_activity(bits, promoted)
    if any(blocks(each, dialect) for each in needed):
        bits = with_activity(bits, INPUT_NEEDED)
    annotations = [value for key, value in state.client_data.items() if key.startswith(ANNOTATION)]
    shown: Json = {
        "provider": state.agent,
        "title": state.title,
        "status": bits,
        "workingDirectory": names.file_uri(state.cwd),
        "workingDirectories": directories(state),
        "lifecycle": "creating" if state.draft else "ready",
        "activeClients": [client(each) for each in state.clients],
        "chats": chats,
        "defaultChat": names.chat_uri(state),
        "config": config,
        "annotations": {
            "resource": uri.annotations(names.session_uri(state)),
            "annotationCount": len(annotations),
            "entryCount": sum(len(each.get("entries", [])) for each in annotations),
        },
    }
    offered = [tool(each) for each in tools]
    return shown | present(
        serverTools=offered, activity=card.activity(state), changesets=changesets, inputNeeded=needed
    )


def input_needed(state: SessionState) -> list[Json]:
    """The requests in this chat that wait for a person, as listed on the session's channel."""
    turn = state.active
    found = [needed(state, turn, part) for part in turn.open] if turn is not None else []
    return [each for each in found if each is not None]


def needed(state: SessionState, turn: TurnState, part: object) -> Json | None:
    chat_of = names.chat_uri(state)
    if isinstance(part, QuestionPart) and not part.done:
        return {"id": part.id, "chat": chat_of, "kind": "chatInput", "request": parts.request(part)}
    if not isinstance(part, CallPart) or part.done:
        return None
    shown: Json = {"id": needed_id(state, part.id), "chat": chat_of, "turnId": turn.id}
    if part.approval is not None:
        return shown | {"kind": "toolConfirmation", "toolCall": parts.call(part, MODERN)}
    if part.sign_in is not None:
        return shown | {"kind": "toolAuthentication", "toolCall": parts.call(part, MODERN)}
    if part.owner is not None and part.ready:
        return shown | {
            "kind": "toolClientExecution",
            "clientId": part.owner,
            "toolCall": parts.call(part, MODERN),
        }
    return None


def needed_id(state: SessionState, call: str) -> str:
    return f"{state.id}.{call}"


def client(of: ClientState) -> Json:
    """As the client described itself, or from what we know of one that came through another door."""
    said = of.meta.get("ahp")
    if isinstance(said, dict):
        return said
    return {"clientId": of.id, "tools": [tool(each) for each in of.tools], **present(displayName=of.name)}


def tool(of: ToolSpec) -> Json:
    return {"name": of.name, **present(title=of.title, description=of.description, inputSchema=of.schema)}


def agent(of: AgentInfo) -> Json:
    words = " ".join(filter(None, (of.description, of.missing, f"({of.label})" if of.label else "")))
    # It is neither removed nor moved behind another one, but since 0.8 another one can take its place.
    primary: Json = {"immutablePrimary": True, "primaryReplacement": True}
    several: Json = {"multipleWorkingDirectories": primary} if of.capabilities.folders else {}
    protected: Json = {"protectedResources": [metadata(each) for each in of.resources]} if of.resources else {}
    return {
        **protected,
        "provider": of.id,
        "displayName": of.name,
        "description": words,
        "models": [
            {
                "id": each.id,
                "provider": of.id,
                "name": each.name,
                "supportsVision": each.vision,
                **present(maxContextWindow=each.context, configSchema=each.config),
                "_meta": {"multiplier": each.multiplier},
            }
            for each in of.models
        ],
        "capabilities": {"multipleChats": {"fork": True, "sideChat": True}, **several},
    }


def metadata(of: Resource) -> Json:
    """As RFC 9728 writes it."""
    return {"resource": of.resource, "required": of.required} | present(
        resource_name=of.name,
        authorization_servers=of.servers,
        scopes_supported=of.scopes,
        resource_documentation=of.documentation,
    )


def annotations(state: SessionState) -> Json:
    return {"annotations": [value for key, value in state.client_data.items() if key.startswith(ANNOTATION)]}

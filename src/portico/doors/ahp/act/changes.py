"""Changesets: what differs in a session's folder, from one of five points of view.

    SESSION/changeset/uncommitted              from the last commit, with the operations commit and discard
    SESSION/changeset/session                  from the session's first turn to its last
    SESSION/changeset/branch                   from where its branch began
    SESSION/changeset/turn/TURN                what one turn changed
    SESSION/changeset/compare/TURN/TURN        from the end of one turn to the end of another

Without git only those of the session and of a turn exist, with the edits that calls have reported (`reported_edits`).
They are computed when a client subscribes, and again for subscribers when a turn ends or an operation is done.
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from portico.doors.ahp.act import reported_edits
from portico.doors.ahp.act.command import Method, text
from portico.doors.ahp.view import names, parts
from portico.doors.ahp.view.snapshots import REVIEWED
from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json
from portico.features.changes.commands import CommitChanges, DiscardChanges
from portico.features.changes.component import captures_of
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, Conflict, NotFound, PorticoError
from portico.kernel.session import Session
from portico.kernel.state import SessionState, is_subagent
from portico.workspace.changes import Change, Changes, Differences
from portico.workspace.git import git

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient, EditorHub

OPERATIONS: list[Json] = [
    {
        "id": "commit",
        "label": "Commit all",
        "icon": "git-commit",
        "group": "commit",
        "scopes": ["changeset"],
        "status": "idle",
    },
    {
        "id": "discard",
        "label": "Discard",
        "icon": "discard",
        "group": "discard",
        "scopes": ["changeset", "resource"],
        "confirmation": "The changes are lost for good.",
        "status": "idle",
    },
]
_KINDS = {
    "uncommitted": ("Uncommitted Changes", "uncommitted"),
    "session": ("Session Changes", "session"),
    "branch": ("Branch Changes", "branch"),
    "turn": ("This Turn", "turn/{turnId}"),
    "compare-turns": ("Compare Turns", "compare/{originalTurnId}/{modifiedTurnId}"),
}
_WITHOUT_GIT = ("session", "turn")
_OF_CHAT = (*_WITHOUT_GIT, "compare-turns")
_TRUNKS = ("main", "master", "trunk")


class Changeset(NamedTuple):
    session: Session
    kind: str
    turns: tuple[str, ...] = ()

    @property
    def review_key(self) -> str:
        """The key of the reviewed files, which are stored separately for each view."""
        return REVIEWED if self.kind == "uncommitted" else f"{REVIEWED}{'/'.join((self.kind, *self.turns))}/"


class ChangedFile(NamedTuple):
    path: str
    """As reviews remember it."""
    id: str
    """The file's own name; clients find a file's changes by it. Only the new one, where it was renamed."""
    edit: Json
    content: str
    """Identifies the current text: a file with a different text must be reviewed again."""


def of_chat(state: SessionState, *, is_git: bool) -> list[Json]:
    """The changesets of one chat. None for a sub-agent, which works within a turn of another chat."""
    if is_subagent(state):
        return []
    kinds = [each for each in catalogue(state, is_git=is_git) if each["changeKind"] in _OF_CHAT]
    return [each | ({"label": "Chat Changes"} if each["changeKind"] == "session" else {}) for each in kinds]


def catalogue(of: SessionState, *, is_git: bool) -> list[Json]:
    return [
        {
            "label": label,
            "uriTemplate": names.changeset_uri(of, path),
            "changeKind": kind,
            "capabilities": {"review": {}},
        }
        for kind, (label, path) in _KINDS.items()
        if is_git or kind in _WITHOUT_GIT
    ]


# -- what is in one --------------------------------------------------------------------------------------------


def is_changeset(params: Json) -> bool:
    """Whether a subscription is one that asks git, which may take seconds."""
    name = params.get("channel") or params.get("resource")
    return isinstance(name, str) and names.is_changeset(name)


async def state(connection: "EditorClient", target: Target) -> Json:
    connection.view.require("changes")
    async with connection.broker.changeset_slots:
        return await _state(connection.broker, target)


async def _state(broker: "EditorHub", target: Target) -> Json:
    view = await _view(broker, target)
    files = [
        {"id": each.id, "edit": each.edit, "reviewed": _is_reviewed(view, each)} for each in await _files(broker, view)
    ]
    return {"status": "ready", "files": files, **_operations(view)}


def _operations(view: Changeset) -> Json:
    return {"operations": OPERATIONS} if view.kind == "uncommitted" else {}


async def _view(broker: "EditorHub", target: Target) -> Changeset:
    ident, _, rest = target.ident.partition("/")
    kind, *turns = [unquote(each) for each in rest.split("/")]
    wanted = {"uncommitted": 0, "session": 0, "branch": 0, "turn": 1, "compare": 2}
    if broker.host.find(ident) is None or wanted.get(kind) != len(turns):
        raise NotFound("changeset", target.ident)
    session = await broker.host.get(ident)
    if turns:
        session = await _chat_of(broker, session, turns[0])
    return Changeset(session, kind, tuple(turns))


async def _chat_of(broker: "EditorHub", session: Session, turn: str) -> Session:
    """A turn may be one of another chat of the session."""
    for ident in (session.id, *(each.id for each in broker.host.catalogue.descendants(session.id))):
        chat = await broker.host.get(ident)
        if chat.state.turn(turn) is not None:
            return chat
    raise NotFound("turn", turn)


async def _files(broker: "EditorHub", view: Changeset) -> list[ChangedFile]:
    found = await _differences(view)
    if found is not None:
        return [_of_git(view, each) for each in found.files]
    turn = view.turns[0] if view.turns else None
    reported = await reported_edits.edits(broker, view.session, turn) if view.kind in _WITHOUT_GIT else []
    return [_of_report(each) for each in reported]


def _of_git(view: Changeset, of: Change) -> ChangedFile:
    name = names.file_uri(f"{view.session.state.cwd}/{of.path}")
    return ChangedFile(of.path, name, parts.changed(view.session.summary, of), of.after)


def _of_report(edit: Json) -> ChangedFile:
    name, content = edit["after"]["uri"], edit["after"]["content"]["uri"]
    return ChangedFile(names.path_of(name), name, edit, content)


async def _differences(view: Changeset) -> Differences | None:
    captures = captures_of(view.session)
    match view.kind:
        case "session":
            return await captures.differences(None)
        case "turn":
            return await captures.differences(view.turns[0])
        case "compare":
            return await captures.between(*view.turns)
    changes = await Changes.open(Path(view.session.state.cwd))
    old = await (changes.base() if view.kind == "uncommitted" else _branched(changes, view.session.state))
    return await changes.between(old, (await changes.capture()).tree)


async def _branched(changes: Changes, state: SessionState) -> str:
    """Where the branch left the one it came from; a worktree remembers its beginning."""
    head = await changes.base()
    known = (state.worktree or {}).get("base")
    trunks = [known] if isinstance(known, str) and known else [*_TRUNKS, *(f"origin/{each}" for each in _TRUNKS)]
    for trunk in trunks:
        found = await git(changes.folder, "merge-base", "--end-of-options", trunk, head, fine=(0, 1, 128))
        if found.strip():
            return found.strip()
    return head


# -- updates for subscribers -----------------------------------------------------------------------------------


async def refresh(broker: "EditorHub", target: Target) -> None:
    """Send the changeset again to all subscribers. Since 1.0 the previous content stays valid during the computation.
    If a later refresh starts before this one is done, only the later one is sent: this result may be older."""
    mine = broker.refreshing[target] = object()
    for each in list(broker.hearers(target)):
        status = "recomputing" if each.dialect.since("1.0.0") else "computing"
        each.say(target, Outgoing("statusChanged", {"status": status}))
    try:
        said = [content(await _state(broker, target)), Outgoing("statusChanged", {"status": "ready"})]
    except PorticoError as error:
        failed = {"errorType": error.code, "message": error.message}
        said = [Outgoing("statusChanged", {"status": "error", "error": failed})]
    if broker.refreshing.get(target) is not mine:
        return
    del broker.refreshing[target]
    for each in list(broker.hearers(target)):
        for one in said:
            each.say(target, one)


def content(state: Json) -> Outgoing:
    """A whole changeset as an action."""
    return Outgoing("contentChanged", {key: value for key, value in state.items() if key != "status"})


async def changed(broker: "EditorHub", session: Session) -> None:
    """Update the subscribers after a finished turn or an operation."""
    watched = await broker.folder_watches.refresh(session.summary.cwd)
    for target in [each for each in broker.heard("changeset") if _is_concerned(broker, each, session)]:
        if not watched or not shows_folder(broker, target, session.summary.cwd):
            await refresh(broker, target)


def _is_concerned(broker: "EditorHub", target: Target, session: Session) -> bool:
    """True for all views of the session and its chats, and for views of other sessions on the same folder."""
    looked_at = broker.host.find(target.ident.partition("/")[0])
    if looked_at is None:
        return False
    root = broker.host.catalogue.root
    return shows_folder(broker, target, session.summary.cwd) or root(looked_at) is root(session)


def shows_folder(broker: "EditorHub", target: Target, folder: str) -> bool:
    """Whether a changeset shows the files of a folder as they are now."""
    ident, _, view = target.ident.partition("/")
    session = broker.host.find(ident)
    return view in ("uncommitted", "branch") and session is not None and session.summary.cwd == folder


def announce(broker: "EditorHub", session: Session) -> None:
    """Send the available changesets after the folder has become a repository."""
    root = broker.host.catalogue.root(session)
    for ident in (root.id, *(each.id for each in broker.host.catalogue.descendants(root.id))):
        state = broker.state(ident)
        if state is not None:
            for target in (Target("session", ident), Target("chat", ident)):
                shown = broker.changesets(state, of_chat=target.kind == "chat")
                for connection in list(broker.hearers(target)):
                    connection.say(target, Outgoing("changesetsChanged", {"changesets": shown}))


# -- operations ------------------------------------------------------------------------------------------------


async def invoke(connection: "EditorClient", params: Json) -> Json:
    broker = connection.broker
    name = text(params, "channel")
    found = names.find_changeset(connection.view, name)
    if found is None:
        raise NotFound("changeset", name)
    target = Target("changeset", found)
    connection.view.check(found.partition("/")[0], "drive")
    view = await _view(broker, target)
    name, path = text(params, "operationId"), _path(view, params)
    offered = _operations(view).get("operations", [])
    operation = next((each for each in offered if each["id"] == name), None)
    if operation is None:
        raise BadRequest(f"There is no operation {name!r} here.", field="operationId")
    if ("changeset" if path is None else "resource") not in operation["scopes"]:
        raise BadRequest(f"{name!r} is not for single files.", field="target")
    _say_status(broker, target, {"operationId": name, "status": "running"})
    try:
        words = await (
            _commit(connection, view.session) if name == "commit" else _discard(connection, view.session, path)
        )
    except PorticoError as error:
        failed = {"errorType": error.code, "message": error.message}
        _say_status(broker, target, {"operationId": name, "status": "error", "error": failed})
        raise
    await changed(broker, view.session)
    return {"message": words}


def _say_status(broker: "EditorHub", target: Target, fields: Json) -> None:
    for each in list(broker.hearers(target)):
        each.say(target, Outgoing("operationStatusChanged", fields))


def _path(view: Changeset, params: Json) -> str | None:
    """The one file that is meant, relative to the folder."""
    wanted = params.get("target")
    if wanted is None:
        return None
    if not isinstance(wanted, dict) or wanted.get("kind") != "resource":
        raise BadRequest("'target' must be a resource.", field="target.kind")
    folder, whole = Path(view.session.state.cwd), Path(names.path_of(text(wanted, "resource")))
    if not whole.is_relative_to(folder) or ".." in whole.parts or whole == folder:
        raise BadRequest("The resource is not in this changeset.", field="target.resource")
    return str(whole.relative_to(folder))


async def _commit(connection: "EditorClient", session: Session) -> str:
    title = session.state.title or "Work of an agent"
    await connection.do(CommitChanges(session=session.id, message=title, state=None))
    return "Committed."


async def _discard(connection: "EditorClient", session: Session, path: str | None) -> str:
    await connection.do(DiscardChanges(session=session.id, state=None, paths=[path] if path else []))
    return "Discarded."


# -- reviewed --------------------------------------------------------------------------------------------------


def _is_reviewed(view: Changeset, of: ChangedFile) -> bool:
    said = view.session.state.client_data.get(view.review_key + of.path)
    return said is not None and said.get("content") == of.content


async def review(connection: "EditorClient", target: Target, action: Json, by: str) -> None:
    view = await _view(connection.broker, target)
    connection.view.check(view.session.id, "drive")
    shown = {each.id: each for each in await _files(connection.broker, view)}
    unknown = [name for name in action["files"] if name not in shown]
    if unknown:
        raise Conflict(f"The changeset has no file {unknown[0]!r}.")
    for each in [shown[name] for name in action["files"]]:
        value: Json | None = {"content": each.content} if action["reviewed"] else None
        await connection.do(c.ShareData(session=view.session.id, key=view.review_key + each.path, value=value))
    for other in list(connection.broker.hearers(target)):
        if other is not connection:
            other.say(
                target, Outgoing("filesReviewChanged", {"files": action["files"], "reviewed": action["reviewed"]})
            )


COMMANDS = {"invokeChangesetOperation": Method(invoke, CommitChanges, seed=False)}

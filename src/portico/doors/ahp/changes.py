"""Changesets: what differs from the last commit in a session's folder, with commit and discard. Needs git."""

from pathlib import Path
from typing import TYPE_CHECKING

from portico.doors.ahp import names
from portico.doors.ahp.command import Command, text
from portico.doors.ahp.record import Json
from portico.doors.ahp.snapshots import REVIEWED
from portico.doors.ahp.targets import Target
from portico.doors.ahp.translate import Said
from portico.errors import BadRequest, NotFound
from portico.host.session import Session
from portico.workspace.changes import Change, Changes
from portico.workspace.git import git

if TYPE_CHECKING:
    from portico.doors.ahp.connection import Connection

OPERATIONS: list[Json] = [
    {"id": "commit", "label": "Commit all", "scopes": ["changeset"], "status": "idle"},
    {
        "id": "discard",
        "label": "Discard",
        "scopes": ["changeset", "resource"],
        "confirmation": "The changes are lost for good.",
        "status": "idle",
    },
]


async def state(connection: "Connection", target: Target) -> Json:
    connection.require("files")
    session = await _session(connection, target)
    return {"status": "ready", "files": await _files(session), "operations": OPERATIONS}


async def _session(connection: "Connection", target: Target) -> Session:
    ident, _, kind = target.ident.partition("/")
    if connection.host.find(ident) is None or kind != "uncommitted":
        raise NotFound("changeset", target.ident)
    return await connection.host.get(ident)


async def _files(session: Session) -> list[Json]:
    changes = await Changes.open(Path(session.state.cwd))
    capture = await changes.capture()
    found = await changes.between(await changes.base(), capture.tree)
    return [_file(session, each) for each in found.files]


def _file(session: Session, of: Change) -> Json:
    folder = Path(session.state.cwd)
    edit: Json = {"diff": {"added": of.added, "removed": of.removed}}
    if of.before:
        old = names.file_uri(str(folder / (of.old_path or of.path)))
        edit["before"] = {"uri": old, "content": {"uri": f"{names.GIT}{session.id}/{of.before}"}}
    if of.after:
        new = names.file_uri(str(folder / of.path))
        edit["after"] = {"uri": new, "content": {"uri": f"{names.GIT}{session.id}/{of.after}"}}
    return {"id": of.path, "edit": edit, "reviewed": REVIEWED + of.path in session.state.kept}


async def refresh(connection: "Connection", target: Target) -> None:
    """Everybody who looks at the changeset gets it anew."""
    files = await _files(await _session(connection, target))
    for each in list(connection.exchange.hearers(target)):
        each.say(target, Said("contentChanged", {"files": files, "operations": OPERATIONS}))


async def invoke(connection: "Connection", params: Json) -> Json:
    target = Target("changeset", text(params, "channel").removeprefix(names.CHANGESET))
    session = await _session(connection, target)
    folder = Path(session.state.cwd)
    match text(params, "operationId"):
        case "commit":
            await git(folder, "add", "--all", "--", ".")
            title = session.state.title or "Work of an agent"
            await git(folder, "commit", "--quiet", "--no-verify", "--message", title)
            words = "Committed."
        case "discard":
            words = await _discard(connection, folder, params)
        case other:
            raise BadRequest(f"There is no operation {other!r}.", field="operationId")
    await connection.host.audit("changes." + text(params, "operationId"), connection.by, session=session.id)
    await refresh(connection, target)
    return {"message": words}


async def _discard(connection: "Connection", folder: Path, params: Json) -> str:
    wanted = params.get("target")
    path = "."
    if isinstance(wanted, dict):
        whole = Path(names.path_of(text(wanted, "resource")))
        if not whole.is_relative_to(folder) or ".." in whole.parts:
            raise BadRequest("The resource is not in this changeset.", field="target.resource")
        path = str(whole.relative_to(folder))
    await git(folder, "restore", "--source=HEAD", "--staged", "--worktree", "--", path, fine=(0, 1))
    await git(folder, "clean", "-d", "--force", "--quiet", "--", path)
    return "Discarded."


async def review(connection: "Connection", target: Target, action: Json, by: str) -> None:
    session = await _session(connection, target)
    for name in action["files"]:
        value: Json | None = {"reviewed": True} if action["reviewed"] else None
        await session.keep(REVIEWED + name, value, by=connection.by)
    for each in list(connection.exchange.hearers(target)):
        if each is not connection:
            each.say(target, Said("filesReviewChanged", {"files": action["files"], "reviewed": action["reviewed"]}))


COMMANDS = {"invokeChangesetOperation": Command(invoke, "files", seed=False)}

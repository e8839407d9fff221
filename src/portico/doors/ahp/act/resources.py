"""Files, inside the jail: the project folders and the folders that sessions work in. Nothing leads out of them.

A resource of another scheme belongs to the client that named it; `EditorClient.ask` reads it there.
"""

import base64
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from portico.doors.ahp.act.command import Method, optional, text
from portico.doors.ahp.view import names
from portico.doors.ahp.wire import rpc
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.rpc import WireError
from portico.doors.ahp.wire.versions import iso
from portico.features.files.commands import CopyFile, DeleteFile, MakeFolder, MoveFile, WriteFile
from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound
from portico.kernel.fold import find_approval
from portico.kernel.state import CallPart
from portico.server.body import field_path
from portico.workspace import patch
from portico.workspace.changes import Changes
from portico.workspace.files import Files

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

_CONFLICT = -32011


def files(connection: "EditorClient") -> Files:
    return Files(connection.view.jail())


async def read(connection: "EditorClient", params: Json) -> Json:
    name, wanted = text(params, "uri"), optional(params, "encoding", str)
    if name.startswith(names.GIT):
        data, kind, binary = await _committed(connection, name), "", False
    elif name.startswith(names.EDIT):
        data, kind, binary = await _proposed(connection, name), "", False
    elif name.startswith(names.DIFF):
        data, kind, binary = await _edited(connection, name), "", False
    elif name.startswith(names.BLOB):
        data, kind, binary = await connection.view.blob(name.removeprefix(names.BLOB)), "text/plain", False
    else:
        found = await files(connection).read(names.path_of(name))
        data, kind, binary = found.data, found.content_type or "", found.binary
    return _encoded(data, wanted, binary) | ({"contentType": kind} if kind else {})


async def _committed(connection: "EditorClient", name: str) -> bytes:
    """A file's content as a changeset refers to it: `SESSION/BLOB`."""
    ident, blob, *_ = [*names.version_key(names.GIT, name), ""]
    session = connection.view.find(ident)
    if session is None:
        raise NotFound("resource", name)
    return await (await Changes.open(Path(session.summary.cwd))).content(blob)


async def _proposed(connection: "EditorClient", name: str) -> bytes:
    """A file as an approval shows it, before or after the edit: `APPROVAL/before` or `APPROVAL/after`."""
    ident, side, *_ = [*names.version_key(names.EDIT, name), ""]
    session = await connection.view.get(connection.view.session_of(ident))
    found = find_approval(session.state, ident)
    if found is None or not found[1].file or side not in ("before", "after"):
        raise NotFound("resource", name)
    approval = found[1]
    if approval.answered:
        raise NotFound("resource", name, "The approval was answered; look at the file itself.")
    try:
        before = (await files(connection).read(approval.file)).data
    except NotFound:
        before = b""
    if side == "before":
        return before
    return patch.apply(before.decode("utf-8", "replace"), approval.diff or "").encode()


async def _edited(connection: "EditorClient", name: str) -> bytes:
    """A file as a call has found or left it: `SESSION/CALL/INDEX/before` or `.../after`."""
    ident, call, index, side, *_ = [*names.version_key(names.DIFF, name), "", "", ""]
    session = await connection.view.get(ident)
    at, field = f"{ident}/{call}/{index}", {"before": "old", "after": "new"}.get(side)
    for part in (each for turn in session.state.turns for each in turn.parts if isinstance(each, CallPart)):
        found = next((each for each in part.content if each.get("at") == at), None)
        if found is not None and field is not None:
            return str(found.get(field) or "").encode("utf-8", "replace")
    raise NotFound("resource", name)


def _encoded(data: bytes, wanted: str | None, binary: bool) -> Json:
    if wanted != "base64" and not binary:
        try:
            return {"data": data.decode("utf-8"), "encoding": "utf-8"}
        except UnicodeDecodeError:
            pass  # binary data is always sent as base64
    return {"data": base64.b64encode(data).decode(), "encoding": "base64"}


async def write(connection: "EditorClient", params: Json) -> Json:
    path = names.path_of(text(params, "uri"))
    try:
        command = msgspec.convert(
            {
                "command": "file.write",
                "path": path,
                "data": _required(params, "data"),
                "encoding": _required(params, "encoding"),
                "mode": params.get("mode") or "truncate",
                "position": optional(params, "position", int) or 0,
                "if_match": optional(params, "ifMatch", str),
                "create_only": optional(params, "createOnly", bool) or False,
            },
            WriteFile,
        )
    except msgspec.ValidationError as error:
        field = field_path(str(error))
        raise BadRequest(f"There is no {field} {params.get(field)!r}.", field=field) from None
    try:
        await connection.do(command)
    except Conflict as error:
        raise _told(error) from error
    return {}


def _required(params: Json, name: str) -> str:
    value = optional(params, name, str)
    if value is None:
        raise BadRequest(f"{name!r} is missing.", field=name)
    return value


def _told(error: Conflict) -> Any:
    """A stale `ifMatch` is a conflict; a name that is taken keeps its own code."""
    return error if error.code == "already_exists" else WireError(_CONFLICT, error.message)


async def list_folder(connection: "EditorClient", params: Json) -> Json:
    found = await files(connection).list(names.path_of(text(params, "uri")))
    entries = [{"name": each.name, "type": each.leads_to} for each in found.entries if each.leads_to is not None]
    return {"entries": entries}


async def _transfer(kind: type[CopyFile | MoveFile], connection: "EditorClient", params: Json) -> Json:
    source, destination = names.path_of(text(params, "source")), names.path_of(text(params, "destination"))
    fail = optional(params, "failIfExists", bool) or False
    await connection.do(kind(source=source, destination=destination, fail_if_exists=fail))
    return {}


async def delete(connection: "EditorClient", params: Json) -> Json:
    path = names.path_of(text(params, "uri"))
    await connection.do(DeleteFile(path=path, recursive=optional(params, "recursive", bool) or False))
    return {}


async def resolve(connection: "EditorClient", params: Json) -> Json:
    follow = optional(params, "followSymlinks", bool)
    found = await files(connection).stat(names.path_of(text(params, "uri")), follow=follow is not False)
    shown: Json = {
        "uri": names.file_uri(found.path),
        "type": found.kind if found.kind != "other" else "file",
        "size": found.size,
        "mtime": iso(found.mtime * 1000),
        "ctime": iso(found.ctime * 1000),
        "etag": found.etag,
    }
    return shown | ({"contentType": found.content_type} if found.content_type else {})


async def mkdir(connection: "EditorClient", params: Json) -> Json:
    await connection.do(MakeFolder(path=names.path_of(text(params, "uri"))))
    return {}


async def request(connection: "EditorClient", params: Json) -> Json:
    """Access is given by the jail alone; asking for what it has is fine."""
    wanted = {key: params[key] for key in ("uri", "read", "write") if key in params}
    try:
        connection.view.jail().resolve(names.path_of(text(params, "uri")))
    except Forbidden as error:
        raise WireError(rpc.rpc_code(error), error.message, {"request": wanted}) from error
    return {}


COMMANDS = {
    "resourceRead": Method(read, "files", beside=True),
    "resourceWrite": Method(write, WriteFile, beside=True),
    "resourceList": Method(list_folder, "files", beside=True),
    "resourceCopy": Method(partial(_transfer, CopyFile), CopyFile, beside=True),
    "resourceMove": Method(partial(_transfer, MoveFile), MoveFile, beside=True),
    "resourceDelete": Method(delete, DeleteFile, beside=True),
    "resourceResolve": Method(resolve, "files", beside=True, seed=False),
    "resourceMkdir": Method(mkdir, MakeFolder, beside=True, seed=False),
    "resourceRequest": Method(request, "files", beside=True, seed=False),
}

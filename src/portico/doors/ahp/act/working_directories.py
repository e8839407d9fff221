"""Working directories: what a session has, what a chat chose of it, and how clients change both.

The agent's process runs in the first one: another one can replace it (`primaryReplacement`), but a first one must
exist (`immutablePrimary`); the others can be added and removed. Adding one widens what is allowed without approval, so
it requires the permission to approve.
"""

from typing import TYPE_CHECKING

from portico.doors.ahp.act.command import texts
from portico.doors.ahp.view import names
from portico.doors.ahp.wire.record import Json
from portico.features.folders.commands import AddFolder, ChooseFolder, RemoveFolder
from portico.kernel.errors import BadRequest
from portico.kernel.folders import whole
from portico.kernel.session import Session
from portico.kernel.state import Summary

if TYPE_CHECKING:
    from portico.doors.ahp.act.client_action import ClientAction


# -- in commands -----------------------------------------------------------------------------------------------


def listed(params: Json) -> list[str]:
    """All directories of a command, the primary first; version 1 has one, in a separate field."""
    found = texts(params, "workingDirectories")
    alone = params.get("workingDirectory")
    if not found and alone is not None:
        if not isinstance(alone, str):
            raise BadRequest("A working directory is a URI.", field="workingDirectory")
        found = [alone]
    return [names.folder_of(each) for each in found]


def subset(params: Json, of: Summary) -> list[str]:
    """The directories of a session that a new chat gets."""
    wanted = listed(params)
    for each in wanted:
        if each not in whole(of):
            raise BadRequest(f"{each!r} is no working directory of the session.", field="workingDirectories")
    return wanted


# -- changes by clients ----------------------------------------------------------------------------------------


async def put(client_action: "ClientAction", session: Session) -> bool:
    path = names.folder_of(client_action.action["directory"])
    if client_action.prefix == "chat":
        return await client_action.changes(session, ChooseFolder(session=session.id, folder=path))
    return await client_action.changes(session, AddFolder(session=session.id, folder=path))


async def remove(client_action: "ClientAction", session: Session) -> bool:
    path = names.folder_of(client_action.action["directory"])
    if client_action.prefix == "chat":
        return await client_action.changes(session, ChooseFolder(session=session.id, folder=path, chosen=False))
    return await client_action.changes(session, RemoveFolder(session=session.id, folder=path))


async def replace(client_action: "ClientAction", session: Session) -> bool:
    old, new = (names.folder_of(client_action.action[field]) for field in ("directory", "replacement"))
    return await client_action.changes(session, RemoveFolder(session=session.id, folder=old, replacement=new))

"""The folders of a conversation: where its agent may read and write, and what passes there without asking.

A session has the folder it was started in, for good (agents run there), and may be given more. A chat of it (a session
with a parent, or the session's own conversation) works in all of them, or only in those that were chosen for it.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from portico import commands as c
from portico import limits
from portico.errors import BadRequest, Conflict, Forbidden
from portico.host.agent import Checks
from portico.host.state import Summary

if TYPE_CHECKING:
    from portico.host.host import Host
    from portico.host.session import Session


def whole(of: Summary) -> list[str]:
    """All folders of a session at the root of its family."""
    return [of.cwd, *of.folders]


class Folders:
    def __init__(self, session: "Session") -> None:
        self._session = session

    def reach(self) -> list[str]:
        """Return the folders of this conversation. If its folder differs from its family's, it has only that one."""
        own, given = self._session.summary, whole(self._family())
        if own.folder_subset is not None:
            return [folder for folder in own.folder_subset if folder in given]
        return given if own.cwd in given else [own.cwd]

    def own(self) -> list[str]:
        """The folder that it runs in, and those that were chosen for it."""
        return [self._session.summary.cwd, *(self._session.summary.folder_subset or ())]

    def _family(self) -> Summary:
        return self._session.host.catalogue.root(self._session).summary


def below(folder: str, path: str) -> str | None:
    """Return the path relative to the folder, with links resolved; None if it is outside. Only for rules: code that
    opens files uses a `Jail`, because a link may change after this check."""
    if "\0" in path:
        return None
    root = os.path.realpath(folder)
    whole = os.path.realpath(os.path.join(root, path))
    if whole != root and not whole.startswith(root.rstrip("/") + "/"):
        return None
    return os.path.relpath(whole, root)


def check_folder(path: str, field: str = "cwd") -> str:
    """An absolute path of a folder that exists."""
    if "\0" in path or not os.path.isabs(path):
        raise BadRequest(f"The working directory {path!r} is not an absolute path.", field=field)
    if not os.path.isdir(path):
        raise BadRequest(f"The working directory {path!r} is not a folder.", field=field)
    return os.path.normpath(path)


def check_reach(host: "Host", caller: c.Caller, folder: str | None, *scopes: c.Scope) -> None:
    """A folder outside of the workspaces, where the host does not work yet, needs one of the scopes: agents read, and
    jobs run, in the whole folder that they are started in."""
    if folder is None or any(map(caller.may, scopes)):
        return
    known = (each for of in host.ownership.visible(caller, host.list()) for each in whole(of) if each not in ("", "/"))
    if not any(below(str(root), folder) is not None for root in (*host.workspaces, *known)):
        needed = " or ".join(map(repr, scopes))
        raise Forbidden(
            f"{folder!r} is in no workspace (portico serve --workspace FOLDER); elsewhere the scope {needed} is "
            f"needed, which the token {caller.name!r} does not have.",
            field="cwd",
        )


async def check_folders(host: "Host", agent: str, cwd: str, folders: Iterable[str]) -> list[str]:
    """The folders that a new session gets beside its own, each once."""
    more = [check_folder(each, "folders") for each in folders]
    more = [each for each in dict.fromkeys(more) if each != cwd]
    if len(more) > limits.FOLDERS:
        raise BadRequest(f"A session has at most {limits.FOLDERS} folders beside its own.", field="folders")
    if more:
        await check_agent(host, agent)
    return more


async def check_agent(host: "Host", agent: str) -> None:
    info = await host.described(agent)
    if not info.capabilities.folders and isinstance(host.agent(agent), Checks):
        await host.readiness.check(agent)  # it may have run in another version, or never
        info = await host.described(agent)
    if not info.capabilities.folders:
        raise Conflict(f"{info.name} works in one folder.")

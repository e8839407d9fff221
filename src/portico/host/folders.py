"""The folders of a conversation: where its agent may read and write, and what passes there without asking.

A session has the folder it was started in, for good (agents run there), and may be given more. A chat of it (a session
with a parent, or the session's own conversation) works in all of them, or only in those that were chosen for it.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from portico import limits
from portico.errors import BadRequest, Conflict, RateLimited
from portico.events import Event, FolderAdded, FolderRemoved
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
        """Where this conversation may work. One with a folder of its own, unlike its family's, has only that."""
        own, given = self._session.summary, whole(self._family())
        if own.folder_subset is not None:
            return [folder for folder in own.folder_subset if folder in given]
        return given if own.cwd in given else [own.cwd]

    def _family(self) -> Summary:
        return self._session.host.catalogue.root(self._session).summary

    # -- the session's -----------------------------------------------------------------------------------------

    async def add(self, path: str, *, by: str) -> bool:
        """False: it has the folder already."""
        await check_agent(self._session.host, self._session.summary.agent)
        folder = check_folder(path)
        async with self._session.lock:
            given = whole(self._session.summary)
            if folder in given:
                return False
            if len(given) > limits.FOLDERS:
                raise RateLimited(f"A session has at most {limits.FOLDERS} folders beside its own.")
            await self._append(FolderAdded(folder=folder, by=by))
        return True

    async def remove(self, folder: str, *, by: str, replacement: str | None = None) -> bool:
        """With a `replacement`, that takes its place. False: it has no such folder."""
        if replacement is not None:
            await check_agent(self._session.host, self._session.summary.agent)
            replacement = check_folder(replacement)
        async with self._session.lock:
            if folder == self._session.summary.cwd:
                raise Conflict(f"The session runs in {folder!r}; that folder stays as long as it does.")
            if folder not in self._session.summary.folders:
                return False
            await self._append(FolderRemoved(folder=folder, by=by, replacement=replacement))
        for chat in [self._session, *self._below()]:
            if chat.summary.folder_subset is not None and folder in chat.summary.folder_subset:
                await chat.load()
                await chat.folders.drop(folder, by="host")
                if replacement is not None:
                    await chat.folders.choose(replacement, by="host")
        return True

    async def _append(self, event: Event) -> None:
        await self._session.append(event)
        for chat in [self._session, *self._below()]:
            chat.runner.refresh()

    def _below(self) -> list["Session"]:
        catalogue = self._session.host.catalogue
        found = [catalogue.get(each.id) for each in catalogue.descendants(self._session.id)]
        return [session for session in found if session is not None]

    # -- the conversation's choice -----------------------------------------------------------------------------

    async def choose(self, folder: str, *, by: str) -> bool:
        """From the first choice on the conversation has only what was chosen. False: it has it already."""
        await check_agent(self._session.host, self._session.summary.agent)
        if folder not in whole(self._family()):
            raise Conflict(f"{folder!r} is none of the session's folders.")
        if folder in (self._session.summary.folder_subset or []):
            return False
        await self._session.append(FolderAdded(folder=folder, by=by, chat=True))
        self._session.runner.refresh()
        return True

    async def drop(self, folder: str, *, by: str) -> bool:
        """False: it was not chosen."""
        if folder not in (self._session.summary.folder_subset or []):
            return False
        await self._session.append(FolderRemoved(folder=folder, by=by, chat=True))
        self._session.runner.refresh()
        return True


def check_folder(path: str, field: str = "cwd") -> str:
    """An absolute path of a folder that exists."""
    if "\0" in path or not os.path.isabs(path):
        raise BadRequest(f"The working directory {path!r} is not an absolute path.", field=field)
    if not os.path.isdir(path):
        raise BadRequest(f"The working directory {path!r} is not a folder.", field=field)
    return os.path.normpath(path)


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
    info = await host.agent(agent).describe()
    if not info.capabilities.folders:
        raise Conflict(f"{info.name} works in one folder.")

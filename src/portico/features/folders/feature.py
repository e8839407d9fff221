"""The feature `folders`: adds and removes folders of a session, and chooses those that a conversation works in.

Where a conversation may read and write is decided by `kernel/folders.py`. A removed folder is removed from all
conversations of its session in one commit.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from portico.features.folders.commands import AddFolder, ChooseFolder, RemoveFolder
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.decide.decision import Context, Outcome, set_column
from portico.kernel.errors import Conflict, RateLimited, TurnInProgress
from portico.kernel.events import Channel
from portico.kernel.feature import Feature
from portico.kernel.folder_access import check_agent
from portico.kernel.folders import check_folder, whole
from portico.kernel.state import SessionState

if TYPE_CHECKING:
    from portico.kernel.session import Session


async def folder_to_add(session: "Session", command: AddFolder) -> str:
    await check_agent(session.host, session.summary.agent)
    return check_folder(command.folder)


async def replacement_of(session: "Session", command: RemoveFolder) -> tuple[str | None, list[SessionState]]:
    """The folder that takes its place, and the conversations below that run in it or have chosen it."""
    chats = [await chat.load() for chat in session.family()[1:] if command.folder in chat.folders.own()]
    for chat in chats:
        if not session.host.members.owns(chat.channel):
            raise Conflict(f"{chat.id!r} works in {command.folder!r} at another host; close it there first.")
    states = [chat.state for chat in chats]
    if command.replacement is None:
        return None, states
    await check_agent(session.host, session.summary.agent)
    return check_folder(command.replacement), states


async def family_folders(session: "Session", command: ChooseFolder) -> list[str]:
    if command.chosen:
        await check_agent(session.host, session.summary.agent)
    return whole(session.host.root(session).summary)


def add_folder(state: SessionState, command: AddFolder, context: Context) -> Outcome:
    folder: str = context.found
    given = [state.cwd, *state.folders]
    if folder in given:
        return Outcome()
    if len(given) > limits.FOLDERS:
        raise RateLimited(f"A session has at most {limits.FOLDERS} folders beside its own.")
    return Outcome([e.FolderAdded(folder=folder, by=context.by)])


def remove_folder(state: SessionState, command: RemoveFolder, context: Context) -> Outcome:
    """With what conversations below that run in it, or have chosen it, work in from now on: all in one commit."""
    replacement: str | None
    chats: Sequence[SessionState]
    replacement, chats = context.found
    if command.replacement is not None:
        context.require("approve")
    if command.folder == state.cwd:
        _check_movable(state, replacement)
    elif command.folder not in state.folders:
        return Outcome()
    removed = e.FolderRemoved(folder=command.folder, by=context.by, replacement=replacement)
    others: list[tuple[Channel, e.Event]] = []
    for chat in chats:
        if chat.cwd == command.folder:
            _check_movable(chat, replacement)
            moved = e.FolderRemoved(folder=command.folder, by="host", replacement=replacement)
            others.append((f"session/{chat.id}", moved))
        others += [(f"session/{chat.id}", each) for each in _unchoose(chat, command.folder, replacement)]
    return Outcome([removed, *_unchoose(state, command.folder, replacement)], others=others)


def _unchoose(chat: SessionState, folder: str, replacement: str | None) -> list[e.Event]:
    chosen = chat.folder_subset or []
    if folder not in chosen:
        return []
    removed = e.FolderRemoved(folder=folder, by="host", chat=True)
    if replacement is None or replacement in chosen:
        return [removed]
    return [removed, e.FolderAdded(folder=replacement, by="host", chat=True)]


def _check_movable(state: SessionState, replacement: str | None) -> None:
    """Its agent's process runs in the first folder: another one can take its place between two turns."""
    if replacement is None:
        raise Conflict(f"The session runs in {state.cwd!r}: another folder can take its place, but one there must be.")
    if state.worktree:
        raise Conflict(f"The session has a worktree of its own in {state.cwd!r}, and stays there.")
    if state.active is not None:
        raise TurnInProgress(f"A turn is running in {state.cwd!r}; wait for its end.")


def choose_folder(state: SessionState, command: ChooseFolder, context: Context) -> Outcome:
    """Choose a folder. After the first choice the conversation has only the chosen folders."""
    chosen = command.folder in (state.folder_subset or [])
    if chosen is command.chosen:
        return Outcome()
    if not command.chosen:
        return Outcome([e.FolderRemoved(folder=command.folder, by=context.by, chat=True)])
    if command.folder not in context.found:
        raise Conflict(f"{command.folder!r} is none of the session's folders.")
    return Outcome([e.FolderAdded(folder=command.folder, by=context.by, chat=True)])


set_column("ask", folder_to_add, replacement_of, family_folders)
set_column("decide", add_folder, remove_folder, choose_folder)


class FoldersFeature(Feature):
    name = "folders"
    commands = (AddFolder, RemoveFolder, ChooseFolder)

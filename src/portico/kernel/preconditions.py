"""What has to be asked of the world before a decision: does the folder exist, is the model known. In one place, with an
answer that becomes an argument."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from portico.kernel import commands as c
from portico.kernel.decide.decision import set_column
from portico.kernel.errors import Conflict
from portico.kernel.folder_access import check_agent
from portico.kernel.folders import check_folder, whole
from portico.kernel.state import SessionState

if TYPE_CHECKING:
    from portico.kernel.session import Session


async def _model(session: "Session", command: c.SetModel | c.ChangeSession | c.SendMessage) -> Mapping[str, object]:
    if command.model is not None:
        (await session.host.described(session.state.agent)).check_model(command.model)
    return session.host.agents


async def _folder(session: "Session", command: c.AddFolder) -> str:
    await check_agent(session.host, session.summary.agent)
    return check_folder(command.folder)


async def _replacement(session: "Session", command: c.RemoveFolder) -> tuple[str | None, list[SessionState]]:
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


async def _family_folders(session: "Session", command: c.ChooseFolder) -> list[str]:
    if command.chosen:
        await check_agent(session.host, session.summary.agent)
    return whole(session.host.root(session).summary)


async def _agents(
    session: "Session", command: c.ConfigureSession | c.QueueMessage | c.EditQueued
) -> Mapping[str, object]:
    return session.host.agents


async def _covers(session: "Session", command: c.AnswerApproval) -> list[str] | None:
    return session.approvals.covers(command.approval, command.covers)


set_column("ask", _model, _covers, _agents, _folder, _replacement, _family_folders)

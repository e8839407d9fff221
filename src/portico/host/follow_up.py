"""What a command promises beyond its events: the caller's answer waits for these effects."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from portico import commands as c
from portico.host.decide.decision import Outcome

if TYPE_CHECKING:
    from portico.host.session import Session


async def follow_up(session: "Session", command: c.Command, decision: Outcome, caller: c.Caller) -> Any:
    """The command's answer; the session's summary where the decision gave none."""
    following = _FOLLOWING.get(type(command))
    answer = decision.answer
    if following is not None:
        answer = await following(session, command, decision, caller) or answer
    return session.summary if answer is None else answer


async def _settle(session: "Session", command: c.Command, decision: Outcome, caller: c.Caller) -> None:
    await session.settle()


async def _truncated(session: "Session", command: c.Command, decision: Outcome, caller: c.Caller) -> None:
    await session.settle()
    await session.go_on()


async def _released(session: "Session", command: c.Command, decision: Outcome, caller: c.Caller) -> None:
    await session.go_on()


async def _sent(session: "Session", command: c.SendMessage, decision: Outcome, caller: c.Caller) -> Any:
    queued = decision.answer
    if command.busy != "steer" or not isinstance(queued, c.Queued):
        return None
    taken = await session.queue.offer(queued.pending, caller.by)
    return c.Steered(taken, not taken)


async def _left(session: "Session", command: c.LeaveSession, decision: Outcome, caller: c.Caller) -> None:
    if command.abandon:
        await session.tools.abandon(command.client)


async def _folder_removed(session: "Session", command: c.RemoveFolder, decision: Outcome, caller: c.Caller) -> None:
    """Conversations that had chosen it, or run in it, have its replacement now, or it no more."""
    for chat in session.family() if decision.events else ():
        if chat is not session and chat.summary.cwd == command.folder:
            await chat.load()
            await chat.folders.remove(command.folder, by="host", replacement=command.replacement)
        if command.folder in (chat.summary.folder_subset or ()):
            await chat.folders.drop(command.folder, by="host")
            if command.replacement is not None:
                await chat.folders.choose(command.replacement, by="host")


_FOLLOWING: dict[type[c.Command], Callable[["Session", Any, Outcome, c.Caller], Awaitable[Any]]] = {
    c.CloseSession: _settle,
    c.TruncateSession: _truncated,
    c.ReleaseQueue: _released,
    c.SendMessage: _sent,
    c.LeaveSession: _left,
    c.RemoveFolder: _folder_removed,
}

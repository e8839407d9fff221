"""Commands that are more than a decision about one session: beginnings and ends, what runs, what the host shares."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.clients import check_client, identify
from portico.kernel.decide.decision import by_type
from portico.kernel.decide.session import check_announced
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json
from portico.kernel.folder_access import check_reach
from portico.kernel.state import Summary, TurnState
from portico.kernel.tool import ToolResult

if TYPE_CHECKING:
    from portico.kernel.host import Host


def install(host: "Host") -> None:
    for kind, handler in _HANDLERS.items():
        host.commands.handle(kind, partial(handler, host))


# -- sessions --------------------------------------------------------------------------------------------------


async def _start(host: "Host", command: c.StartSession, caller: c.Caller) -> Summary:
    if (command.place or command.label) and not host.members.several:
        raise BadRequest("This host is alone on its log: leave 'place' and 'label' out.", field="place")
    check_announced({}, command.config, caller)
    origin = command.origin
    history: list[TurnState] = []
    shared: Json | None = None
    if origin is not None and origin.kind == "fork":
        source = await host.get(origin.session)
        history, shared = source.finished_turns(origin.turn), source.state.worktree
    for folder in (command.cwd, *command.folders) if not shared else ():
        check_reach(host, caller, folder, "approve", "terminal")
    parent = host.find(command.parent) if command.parent is not None else None
    above = caller if parent is None else host.ownership.within(caller, host.ownership.of_session(parent))
    isolation = c.Isolation() if command.worktree is True else command.worktree or None
    session = await host.start(
        by=caller.by,
        agent=command.agent,
        model=command.model,
        cwd=command.cwd,
        title=command.title,
        uri=command.uri,
        parent=command.parent,
        origin=origin,
        config=command.config,
        history=history,
        worktree=isolation or shared,
        folders=command.folders,
        model_config=command.model_config,
        may_approve=above.may("approve"),
        draft=command.draft,
        owner=host.ownership.owner_for(caller),
        events=[e.ClientKept(key=key, value=value, by=caller.by) for key, value in command.data.items()],
    )
    return session.summary


async def _fork(host: "Host", command: c.ForkSession, caller: c.Caller) -> Summary:
    forked = await host.fork(command.session, by=caller.by, turn=command.turn, uri=command.uri)
    return forked.summary


async def _delete(host: "Host", command: c.DeleteSession, caller: c.Caller) -> c.Deleted:
    return c.Deleted(await host.delete(command.session, by=caller.by))


async def _cancel(host: "Host", command: c.CancelTurn, caller: c.Caller) -> Summary:
    session = await host.get(command.session)
    await session.cancel(by=caller.by, turn=command.turn)
    return session.summary


async def _steer(host: "Host", command: c.SteerQueued, caller: c.Caller) -> c.Offered:
    session = await host.get(command.session)
    return c.Offered(await session.queue.offer(command.pending, caller.by))


# -- clients ---------------------------------------------------------------------------------------------------


async def _complete(host: "Host", command: c.CompleteCall, caller: c.Caller) -> c.Done:
    await check_client(host, command.client, caller)
    tools = (await host.get(command.session)).tools
    result = ToolResult(command.ok, command.output, command.error, command.content)
    if command.confirm:
        words = command.result or {}
        await tools.propose(command.call, result, words, client=command.client, title=command.title, by=caller.by)
    else:
        await tools.complete(
            command.call, result, command.result, client=command.client, title=command.title, by=caller.by
        )
    return c.Done()


async def _report(host: "Host", command: c.ReportContent, caller: c.Caller) -> c.Done:
    await check_client(host, command.client, caller)
    session = await host.get(command.session)
    session.tools.report(command.call, command.content, client=command.client, by=caller.by)
    await host.log.flush()
    return c.Done()


_HANDLERS: dict[type[c.Command], Callable[["Host", Any, c.Caller], Awaitable[Any]]] = by_type(
    "command",
    *(_start, _fork, _delete, _cancel, _steer, _complete, _report, identify),
)

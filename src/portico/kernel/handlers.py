"""Commands that are more than a decision about one session: beginnings and ends, what runs, what the host shares."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.action import Action
from portico.kernel.agent import Authenticates
from portico.kernel.approval import Request
from portico.kernel.clients import check_client, identify
from portico.kernel.decide.decision import by_type
from portico.kernel.decide.session import check_announced
from portico.kernel.errors import AgentError, BadRequest, Conflict, Forbidden
from portico.kernel.events import Json
from portico.kernel.folder_access import check_reach
from portico.kernel.state import Summary, TurnState
from portico.kernel.tool import ToolResult

if TYPE_CHECKING:
    from portico.kernel.host import Host
    from portico.kernel.session import Session


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


async def _ask_server(host: "Host", command: c.AskServer, caller: c.Caller) -> c.ServerReply:
    """Ask an MCP server. Tool calls are audited before and after. The scope is their approval; rules can deny them."""
    session = await host.get(command.session)
    if not (await host.described(session.state.agent)).capabilities.servers:
        raise Conflict(f"The MCP servers of {session.state.agent!r} are its own: nobody else can ask them.")
    async with session.lock:
        servers = await session.runner.servers(caller.client)
    about: Json = {"session": session.id, "server": command.server}
    called = command.operation == "tools/call"
    if called:
        about["tool"] = str(command.params.get("name", ""))
        _check_rules(session, servers.tool_name(command.server, about["tool"]), command.params)
        await host.audit("server.asked", caller.by, **about)
    reply: Json = {}
    try:
        async with asyncio.timeout(limits.SERVER_SECONDS):
            reply = await servers.ask_server(command.server, command.operation, command.params)
    except TimeoutError:
        raise AgentError(f"{command.server!r} did not answer within {limits.SERVER_SECONDS:g} seconds.") from None
    finally:
        if called:
            failed = "result" not in reply or bool(reply["result"].get("isError"))
            await host.audit("server.answered", caller.by, **about, ok=not failed)
    return c.ServerReply(reply.get("result"), reply.get("error"))


def _check_rules(session: "Session", tool: str, params: Json) -> None:
    given = msgspec.json.encode(params.get("arguments") or {}).decode()
    request = Request(Action(), tool, call="", title=tool, input=given, home=session.state.cwd)
    ruling = session.approvals.rule(request)
    if ruling is not None and not ruling.allowed:
        raise Forbidden(f"{tool!r} may not run here ({ruling.rule}).")


async def _sign_in(host: "Host", command: c.SignIn, caller: c.Caller) -> c.Done:
    """A token goes to the agents that asked for it and nowhere else: not into the log, not into an error. It counts for
    the client that gave it."""
    if len(command.token) > limits.LOGIN_TOKEN_CHARS:
        raise BadRequest(f"A 'token' has at most {limits.LOGIN_TOKEN_CHARS} characters.", field="token")
    if caller.outside and not caller.client:
        caller.require("admin")  # it counts for all sessions that no editor has begun
    asking = [info.id for info in await host.describe() if any(r.resource == command.resource for r in info.resources)]
    agents = [agent for ident in asking if isinstance(agent := host.agent(ident), Authenticates)]
    if not agents:
        raise BadRequest(f"Nothing here asks for a token of {command.resource!r}.", field="resource")
    for agent in agents:
        if command.token:
            await agent.authenticate(command.resource, command.token, command.seconds, caller.client)
        else:
            agent.sign_out(caller.client)
    await host.audit("authenticate" if command.token else "sign_out", caller.by, resource=command.resource)
    return c.Done()


# -- other hosts on this log -------------------------------------------------------------------------------------


async def _drain(host: "Host", command: c.DrainHost, caller: c.Caller) -> c.Member:
    found = await host.members.drain(command.name)
    await host.audit("host.drained", caller.by, host=command.name)
    return found


async def _give_up(host: "Host", command: c.GiveUpHost, caller: c.Caller) -> c.GivenUp:
    ended = await host.members.give_up(command.name)
    await host.audit("host.given-up", caller.by, host=command.name, sessions=ended)
    return c.GivenUp(ended)


_HANDLERS: dict[type[c.Command], Callable[["Host", Any, c.Caller], Awaitable[Any]]] = by_type(
    "command",
    *(_start, _fork, _delete, _cancel, _steer, _complete, _report, _ask_server, identify, _sign_in),
    *(_drain, _give_up),
)

"""Commands that are more than a decision about one session: beginnings and ends, what runs, what the host shares."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from portico import commands as c
from portico import events as e
from portico.errors import BadRequest
from portico.events import HOST, Grant, Json
from portico.host import terminal_rules
from portico.host.autonomy import APPROVAL_KEYS
from portico.host.folders import check_reach
from portico.host.state import Summary, TurnState
from portico.host.terminals import OpenTerminal
from portico.host.tool import ToolResult

if TYPE_CHECKING:
    from portico.host.host import Host

_GRANT_SECONDS_MAX = 365 * 86400
"""A year: what was allowed before that is forgotten by everybody."""


def install(host: "Host") -> None:
    for kind, handler in _HANDLERS.items():
        host.commands.handle(kind, partial(handler, host))


# -- sessions --------------------------------------------------------------------------------------------------


async def _start(host: "Host", command: c.StartSession, caller: c.Caller) -> Summary:
    origin = command.origin
    history: list[TurnState] = []
    shared: Json | None = None
    if origin is not None and origin.kind == "fork":
        source = await host.get(origin.session)
        history, shared = source.finished_turns(origin.turn), source.state.worktree
    for folder in (command.cwd, *command.folders) if not shared else ():
        check_reach(host, caller, folder, "approve", "terminal")
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
        may_approve=caller.may("approve"),
        draft=command.draft,
        owner=host.ownership.owner_for(caller),
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


# -- people ----------------------------------------------------------------------------------------------------


async def _approve(host: "Host", command: c.AnswerApproval, caller: c.Caller) -> c.Decided:
    session = await host.get(host.session_of(command.approval))
    decision = await session.approvals.answer(
        command.approval,
        by=caller.by,
        allow=command.allow,
        option=command.option,
        reason=command.reason,
        input=command.input,
        meta=command.meta,
    )
    return c.Decided(command.approval, decision.allowed, decision.by)


async def _grant(host: "Host", command: c.AddGrant, caller: c.Caller) -> Grant:
    if not 0 < command.seconds <= _GRANT_SECONDS_MAX:
        raise BadRequest("A grant lasts more than 0 seconds and at most a year.", field="seconds")
    return await host.grants.add(
        agent=command.agent,
        tool=command.tool,
        allow=command.allow,
        by=caller.by,
        session=command.session,
        project=command.project,
        pattern=command.pattern,
        seconds=command.seconds,
        owner=caller.person if command.project is not None else "",
    )


async def _revoke(host: "Host", command: c.RevokeGrant, caller: c.Caller) -> c.Done:
    await host.grants.revoke(command.grant, by=caller.by)
    return c.Done()


# -- clients ---------------------------------------------------------------------------------------------------


async def _complete(host: "Host", command: c.CompleteCall, caller: c.Caller) -> c.Done:
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
    session = await host.get(command.session)
    session.tools.report(command.call, command.content, client=command.client, by=caller.by)
    await host.log.flush()
    return c.Done()


async def _configure(host: "Host", command: c.ConfigureHost, caller: c.Caller) -> bool:
    """The rules change with the commit, and only then. False: nothing is new, and nothing was written."""
    async with host.configuring:
        before = host.client_settings
        values = command.values if command.replace else {**before, **command.values}
        changed = {key for key in {*values, *before} if values.get(key) != before.get(key)}
        if not changed:
            return False
        if changed & APPROVAL_KEYS:
            caller.require("approve")
            host.ownership.check_whole(caller, "These settings change what is asked in everybody's sessions")
        await host.log.append(
            HOST, e.ClientKept(key=CLIENT_SETTINGS, by=caller.by, value=values, action=command.action)
        )
        host.log.put_kv(HOST, CLIENT_SETTINGS, msgspec.json.encode(values))
    return True


CLIENT_SETTINGS = "ahp.root"
"""Beside the host's channel: the settings that editors push. The name is that of the first protocol that had them."""


# -- terminals -------------------------------------------------------------------------------------------------


async def _open(host: "Host", command: c.OpenTerminal, caller: c.Caller) -> OpenTerminal:
    return await host.terminals.start(
        claim=command.claim or {"kind": "client", "clientId": caller.by},
        cwd=terminal_rules.folder(host, command, caller),
        by=caller.by,
        title=terminal_rules.checked_title(command.title),
        cols=command.cols,
        rows=command.rows,
        uri=command.uri,
        session=command.session,
        owner=host.ownership.owner_for(caller),
    )


async def _type(host: "Host", command: c.TypeInput, caller: c.Caller) -> c.Done:
    terminal = host.terminals.get(command.terminal)
    terminal_rules.check_input(terminal, command.data, caller, host.connected)
    terminal.input(command.data)
    return c.Done()


async def _resize(host: "Host", command: c.ResizeTerminal, caller: c.Caller) -> OpenTerminal:
    terminal = _free(host, command.terminal, caller)
    if (command.cols, command.rows) != (terminal.cols, terminal.rows):
        await terminal.resize(command.cols, command.rows, by=caller.by)
    return terminal


async def _claim(host: "Host", command: c.ClaimTerminal, caller: c.Caller) -> OpenTerminal:
    terminal = _free(host, command.terminal, caller)
    await terminal.claim_for(command.claim, by=caller.by, session=command.session)
    return terminal


async def _rename(host: "Host", command: c.RenameTerminal, caller: c.Caller) -> OpenTerminal:
    terminal = _free(host, command.terminal, caller)
    if not command.title.strip():
        raise BadRequest("A title has at least one character.", field="title")
    await terminal.rename(command.title, by=caller.by)
    return terminal


async def _clear(host: "Host", command: c.ClearTerminal, caller: c.Caller) -> OpenTerminal:
    terminal = _free(host, command.terminal, caller)
    await terminal.clear(by=caller.by)
    return terminal


async def _close(host: "Host", command: c.CloseTerminal, caller: c.Caller) -> c.Done:
    """Also one that an agent uses; what a connected editor holds, no other editor closes."""
    terminal_rules.check_close(host.terminals.get(command.terminal), caller, host.connected)
    await host.terminals.dispose(command.terminal, by=caller.by)
    return c.Done()


def _free(host: "Host", ident: str, caller: c.Caller) -> OpenTerminal:
    terminal = host.terminals.get(ident)
    terminal_rules.check_free(terminal, caller, host.connected)
    return terminal


_HANDLERS: dict[type[c.Command], Callable[["Host", Any, c.Caller], Awaitable[Any]]] = {
    c.StartSession: _start,
    c.ForkSession: _fork,
    c.DeleteSession: _delete,
    c.CancelTurn: _cancel,
    c.SteerQueued: _steer,
    c.AnswerApproval: _approve,
    c.AddGrant: _grant,
    c.RevokeGrant: _revoke,
    c.CompleteCall: _complete,
    c.ReportContent: _report,
    c.ConfigureHost: _configure,
    c.OpenTerminal: _open,
    c.TypeInput: _type,
    c.ResizeTerminal: _resize,
    c.ClaimTerminal: _claim,
    c.RenameTerminal: _rename,
    c.ClearTerminal: _clear,
    c.CloseTerminal: _close,
}

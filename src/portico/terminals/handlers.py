"""What people ask of terminals."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from portico import commands as c
from portico.errors import BadRequest
from portico.host.host import Host
from portico.terminals import rules
from portico.terminals.terminals import OpenTerminal, Terminals


async def _open(terminals: Terminals, command: c.OpenTerminal, caller: c.Caller) -> OpenTerminal:
    return await terminals.start(
        claim=command.claim or {"kind": "client", "clientId": caller.by},
        cwd=rules.folder(terminals.host, command),
        by=caller.by,
        title=rules.checked_title(command.title),
        cols=command.cols,
        rows=command.rows,
        uri=command.uri,
        session=command.session,
    )


async def _type(terminals: Terminals, command: c.TypeInput, caller: c.Caller) -> c.Done:
    terminal = terminals.get(command.terminal)
    rules.check_input(terminal, command.data, caller, terminals.host.connected)
    terminal.input(command.data)
    return c.Done()


async def _resize(terminals: Terminals, command: c.ResizeTerminal, caller: c.Caller) -> OpenTerminal:
    terminal = _free(terminals, command.terminal, caller)
    if (command.cols, command.rows) != (terminal.cols, terminal.rows):
        await terminal.resize(command.cols, command.rows, by=caller.by)
    return terminal


async def _claim(terminals: Terminals, command: c.ClaimTerminal, caller: c.Caller) -> OpenTerminal:
    terminal = _free(terminals, command.terminal, caller)
    await terminal.claim_for(command.claim, by=caller.by, session=command.session)
    return terminal


async def _rename(terminals: Terminals, command: c.RenameTerminal, caller: c.Caller) -> OpenTerminal:
    terminal = _free(terminals, command.terminal, caller)
    if not command.title.strip():
        raise BadRequest("A title has at least one character.", field="title")
    await terminal.rename(command.title, by=caller.by)
    return terminal


async def _clear(terminals: Terminals, command: c.ClearTerminal, caller: c.Caller) -> OpenTerminal:
    terminal = _free(terminals, command.terminal, caller)
    await terminal.clear(by=caller.by)
    return terminal


async def _close(terminals: Terminals, command: c.CloseTerminal, caller: c.Caller) -> c.Done:
    """Also one that an agent uses; what a connected editor holds, no other editor closes."""
    rules.check_close(terminals.get(command.terminal), caller, terminals.host.connected)
    await terminals.dispose(command.terminal, by=caller.by)
    return c.Done()


def _free(terminals: Terminals, ident: str, caller: c.Caller) -> OpenTerminal:
    terminal = terminals.get(ident)
    rules.check_free(terminal, caller, terminals.host.connected)
    return terminal


_HANDLERS: dict[type[c.Command], Callable[[Terminals, Any, c.Caller], Awaitable[Any]]] = {
    c.OpenTerminal: _open,
    c.TypeInput: _type,
    c.ResizeTerminal: _resize,
    c.ClaimTerminal: _claim,
    c.RenameTerminal: _rename,
    c.ClearTerminal: _clear,
    c.CloseTerminal: _close,
}


def open_terminals(host: Host) -> Terminals:
    """The room's share in the host, with its commands."""
    terminals = Terminals(host)
    for kind, handler in _HANDLERS.items():
        host.commands.handle(kind, partial(handler, terminals))
    return terminals

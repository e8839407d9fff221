"""Handlers of terminal commands: decided by pure functions, appended to the log, then executed."""

import asyncio
from typing import Any

from portico import commands as c
from portico.errors import BadRequest, NotFound, PorticoError
from portico.files.jail import jail_of
from portico.host.host import Host
from portico.host.ownership import Access
from portico.locks import KeyedLocks
from portico.terminals import command_turn
from portico.terminals.commands import AboutTerminal, CloseTerminal, OpenTerminal, TypeInput
from portico.terminals.decide import DECISIONS, TerminalContext, decide
from portico.terminals.terminals import PERSON, LiveTerminal, Terminals


def open_terminals(host: Host) -> Terminals:
    """Create the terminals of a host and register their commands."""
    terminals = Terminals(host)
    host.run_command = command_turn.run

    async def begin(command: OpenTerminal, caller: c.Caller) -> LiveTerminal:
        return await terminals.start(
            claim=command.claim or {"kind": "client", "clientId": caller.by},
            cwd=_folder(host, command, caller),
            by=caller.by,
            title=command.title,
            cols=command.cols,
            rows=command.rows,
            uri=command.uri,
            session=command.session,
            owner=host.ownership.owner_for(caller),
            policy=PERSON,
        )

    async def perform(command: Any, caller: c.Caller) -> Any:
        terminal = terminals.get(command.terminal)
        decision = decide(terminal, command, TerminalContext(caller, host.connected))
        if decision.events:
            await host.log.append(terminal.channel, *decision.events)
        elif isinstance(command, TypeInput):
            terminals.program(terminal.id).input(command.data)
        elif isinstance(command, CloseTerminal):
            await terminals.dispose(terminal.id, by=caller.by)
        return terminal if decision.answer is None else decision.answer

    def access(ident: str) -> Access | None:
        """A terminal with an agent's command belongs to its session; a shell to the person who opened it."""
        terminal = terminals.find(ident)
        if terminal is None:
            return None
        session = host.find(terminal.session) if terminal.command and terminal.session else None
        return host.ownership.of_session(session) if session is not None else Access(terminal.owner)

    host.ownership.finders["terminal"] = access
    locks = KeyedLocks()

    def lock_of(command: AboutTerminal) -> asyncio.Lock:
        terminal = terminals.find(command.terminal)
        return locks.of(terminal.id if terminal is not None else "")

    host.commands.handle(OpenTerminal, begin)
    for kind in DECISIONS:
        host.commands.handle(kind, perform, lock_of)
    return terminals


def _folder(host: Host, command: OpenTerminal, caller: c.Caller) -> str:
    """Return the folder of a new shell: that of the session it is opened from, a workspace, or any session's folder."""
    first: list[str] = []
    if command.session is not None:
        found = host.find(command.session)
        if found is None:
            raise NotFound("session", command.session)
        first = [found.summary.cwd] if found.summary.cwd not in ("", "/") else []
    try:
        jail = jail_of(host, *first, caller=caller)
        where = jail.resolve(command.cwd if command.cwd is not None else str(jail.root))
    except PorticoError as error:
        error.field = "cwd"
        raise
    if not where.is_dir():
        raise BadRequest(f"There is no folder {str(where)!r}.", field="cwd")
    return str(where)

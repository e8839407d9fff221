"""Handlers of terminal commands: decided by pure functions, appended to the log, then executed."""

from typing import TYPE_CHECKING, Any

from portico.features.files.jail import jail_of
from portico.features.terminals.commands import CloseTerminal, OpenTerminal, TypeInput
from portico.features.terminals.decide import DecidedCommand, TerminalContext, decide
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, NotFound, PorticoError
from portico.kernel.feature import handle
from portico.kernel.host import Host
from portico.sandbox.policy import Unconfined

if TYPE_CHECKING:
    from portico.features.terminals.terminals import LiveTerminal, Terminals

PERSON = Unconfined("a terminal of a person")


class TerminalHandlers:
    def __init__(self, terminals: "Terminals") -> None:
        self._terminals = terminals
        self._host = terminals.host

    @handle
    async def open(self, command: OpenTerminal, caller: c.Caller) -> "LiveTerminal":
        return await self._terminals.start(
            claim=command.claim or {"kind": "client", "clientId": caller.by},
            cwd=_folder(self._host, command, caller),
            by=caller.by,
            title=command.title,
            cols=command.cols,
            rows=command.rows,
            uri=command.uri,
            session=command.session,
            owner=self._host.ownership.owner_for(caller),
            policy=PERSON,
        )

    @handle
    async def perform(self, command: DecidedCommand, caller: c.Caller) -> Any:
        terminal = self._terminals.get(command.terminal)
        decision = decide(terminal, command, TerminalContext(caller, self._host.connected))
        if decision.events:
            await self._host.log.append(terminal.channel, *decision.events)
        elif isinstance(command, TypeInput):
            self._terminals.program(terminal.id).input(command.data)
        elif isinstance(command, CloseTerminal):
            await self._terminals.dispose(terminal.id, by=caller.by)
        return terminal if decision.answer is None else decision.answer


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

"""Commands of a conversation that run while the agent continues. People can watch their terminals."""

from portico.agents.terminal_commands import TerminalCommands
from portico.features.terminals.command_turn import CommandOutput
from portico.kernel.action import Action
from portico.kernel.errors import Conflict, NotFound
from portico.kernel.session import Session

RUNNING_MAX = 8
"""Commands of one conversation that run at the same time."""


class BackgroundCommands:
    """They outlive their turn and end with the conversation. Those that have ended can be read until others start."""

    def __init__(self) -> None:
        self._terminals = TerminalCommands()
        self._commands: dict[str, CommandOutput] = {}
        self._count = 0

    async def start(self, action: Action, session: Session) -> tuple[str, CommandOutput]:
        """The caller has asked whether it may run. Returns the name by which the model refers to it."""
        running = [name for name, each in self._commands.items() if each.status is None]
        if len(running) >= RUNNING_MAX:
            raise Conflict(f"{len(running)} commands are running ({', '.join(running)}): stop one first.")
        if len(self._commands) >= 2 * RUNNING_MAX:
            await self._drop(next(name for name in self._commands if name not in running))
        started = await self._terminals.start(action, None, session)
        self._count += 1
        name = f"cmd{self._count}"
        self._commands[name] = started
        return name, started

    async def _drop(self, name: str) -> None:
        terminal = self._commands.pop(name).terminal
        if terminal is not None:
            await self._terminals.release({"terminalId": terminal.id})

    def get(self, name: str) -> CommandOutput:
        if name not in self._commands:
            raise NotFound("command", name, f"There are: {', '.join(self._commands) or 'none'}.")
        return self._commands[name]

    async def close(self) -> None:
        await self._terminals.close()

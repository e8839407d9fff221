"""Commands that an agent runs in terminals of the host: people watch them while the agent waits or continues.

There is no keyboard input. The program gets EOF on its input immediately, as in a pipe, so it never waits for a person
that the agent does not have. The agent gets the output as text; escapes and terminal line ends are for watchers.
"""

import asyncio
import contextlib

from portico.agents.agent import Json
from portico.features.sandboxes.feature import confine
from portico.features.terminals.command_turn import CommandOutput
from portico.kernel.action import Action
from portico.kernel.errors import BadRequest, Conflict, NotFound
from portico.kernel.session import Session
from portico.workspace.process import command_environment, shell

OUTPUT_BYTES = 1024 * 1024
"""Of a command's output, when the agent names no limit."""
OUTPUT_MAX = 16 * OUTPUT_BYTES
"""The most that an agent gets: it is kept in memory, and no model reads more."""
COLS, ROWS = 120, 30
"""Wide enough for a compiler's lines."""
_QUIET = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}
"""What is written here is read by a model: no drawing, and no pager that waits for a key."""


class TerminalCommands:
    """Those of one conversation."""

    def __init__(self) -> None:
        self._running: dict[str, CommandOutput] = {}
        self._of_turn: list[CommandOutput] = []
        self._stopped = False
        self._shown: set[str] = set()
        """Those that calls of the agent show."""

    async def start(self, action: Action, limit: object, session: Session) -> CommandOutput:
        """The caller has asked whether it may run, and it is this very value that was judged and shown."""
        command = CommandOutput(" ".join(action.argv) or action.line or "", _limit(limit))
        command.terminal = await session.host.terminals.start(
            claim={"kind": "session", "session": session.id},
            cwd=action.cwd,
            by="agent",
            title=command.title,
            cols=COLS,
            rows=ROWS,
            session=session.id,
            command=_arguments(action),
            env={**command_environment(), **_QUIET, **dict(action.env)},
            listener=command.hear,
            owner=session.host.owner_of(session),
            policy=await confine(session),
        )
        self._running[command.terminal.id] = command
        self._of_turn.append(command)
        if self._stopped:  # it was on its way when the turn was cancelled
            await command.terminal.kill()
        return command

    def begin(self) -> None:
        """A new turn: what an earlier one left running is not its own."""
        self._of_turn.clear()
        self._shown &= self._running.keys()
        self._stopped = False

    async def stop(self) -> None:
        """End the commands of a cancelled turn immediately. Their output is kept."""
        self._stopped = True
        running = [each.terminal for each in self._of_turn if each.status is None and each.terminal is not None]
        await asyncio.gather(*(terminal.kill() for terminal in running))

    def show(self, ident: str) -> CommandOutput | None:
        """For a call of the agent that shows it."""
        self._shown.add(ident)
        return self._running.get(ident)

    def is_shown(self, command: CommandOutput) -> bool:
        return command.terminal is not None and command.terminal.id in self._shown

    def output(self, params: Json) -> Json:
        command = self._get(params)
        answer: Json = {"output": command.output, "truncated": command.cut}
        return answer if command.status is None else {**answer, "exitStatus": command.status}

    async def wait(self, params: Json) -> Json:
        command = self._get(params)
        await command.ended.wait()
        assert command.status is not None  # it has ended
        return command.status

    async def kill(self, params: Json) -> Json:
        """It stays, with its output."""
        command = self._get(params)
        assert command.terminal is not None  # it was started
        await command.terminal.kill()
        return {}

    async def release(self, params: Json) -> Json:
        command = self._get(params)
        del self._running[str(params.get("terminalId"))]
        await _close(command)
        return {}

    def _get(self, params: Json) -> CommandOutput:
        ident = str(params.get("terminalId"))
        if ident not in self._running:
            raise NotFound("terminal", ident)
        return self._running[ident]

    async def close(self) -> None:
        running, self._running = self._running, {}
        await asyncio.gather(*(_close(each) for each in running.values()))


async def _close(command: CommandOutput) -> None:
    terminal = command.terminal
    assert terminal is not None  # it was started
    with contextlib.suppress(NotFound, Conflict):  # a client has closed it, or is closing it
        await terminal.close(by="agent")


def _arguments(action: Action) -> list[str]:
    if not (action.line or "".join(action.argv[:1])).strip():
        raise BadRequest("There is no command to run.", field="command")
    return list(action.argv) or shell(action.line or "")


def _limit(wanted: object) -> int:
    if wanted is None:
        return OUTPUT_BYTES
    if not isinstance(wanted, int) or wanted < 1:
        raise BadRequest(f"A limit is a number of bytes, not {wanted!r}.", field="outputByteLimit")
    return min(wanted, OUTPUT_MAX)

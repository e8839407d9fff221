"""A turn that runs a command line in the session's folder instead of the agent, to show its output to a person.

It is part of the conversation for people, and is never sent to the agent. The command has no input: the program reads
end-of-file immediately.
"""

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

import msgspec

from portico.features.sandboxes.feature import confine
from portico.kernel import limits
from portico.kernel.errors import Conflict, NotFound
from portico.kernel.events import ErrorInfo, Json
from portico.kernel.turn import Turn
from portico.workspace.escapes import Plain
from portico.workspace.process import Clip, command_environment, shell
from portico.workspace.terminal import Data, Event, Exited

if TYPE_CHECKING:
    from portico.features.terminals.terminals import LiveTerminal

_TITLE_CHARS = 200


class CommandOutput:
    """A command in a terminal and its output, which stay available after the terminal is closed. The output is text
    without escape sequences and terminal line endings, which are only for clients that show the terminal."""

    def __init__(self, line: str, limit: int) -> None:
        self.line = line
        self.status: Json | None = None
        self.ended = asyncio.Event()
        self.terminal: LiveTerminal | None = None
        self._plain = Plain()
        self._clip = Clip(0, limit)

    def hear(self, event: Event) -> None:
        match event:
            case Data(text):
                self._clip.add(self._plain.feed(text).encode("utf-8", "replace"))
            case Exited(code, signal):
                self.status = {"exitCode": None if signal else code, "signal": signal}
                self.ended.set()

    @property
    def title(self) -> str:
        return self.line[:_TITLE_CHARS]

    @property
    def output(self) -> str:
        return re.sub(r"\r+\n", "\n", self._clip.data().decode("utf-8", "ignore"))

    @property
    def cut(self) -> bool:
        return self._clip.dropped > 0

    @property
    def shown(self) -> Json:
        """The terminal as part of the content of a call."""
        where = self.terminal.id if self.terminal is not None else ""
        told: Json = {"type": "terminal", "terminal": where, "title": self.title}
        return told if self.status is None else {**told, "code": self.status["exitCode"]}


async def run(turn: Turn, line: str) -> None:
    """Run a command line from the start of the call to its recorded end. Canceling the turn ends the program."""
    session, command = turn.session, CommandOutput(line, limits.CALL_BYTES)
    call = turn.tool("terminal", kind="execute", title=command.title)
    call.ready(msgspec.json.encode({"command": line}).decode(), command.title)
    await turn.settled()
    terminal = command.terminal = await session.host.terminals.start(
        claim={"kind": "session", "session": session.id},
        cwd=session.state.cwd,
        by=_author(turn),
        title=command.title,
        session=session.id,
        command=shell(line),
        env=command_environment(),
        listener=command.hear,
        owner=session.host.owner_of(session),
        policy=await confine(session),
    )
    try:
        call.content([command.shown])
        await command.ended.wait()
        code = (command.status or {}).get("exitCode")
        error = None if code == 0 else ErrorInfo("command_failed", f"It ended with {_ending(command)}.")
        await call.end(ok=code == 0, output=command.output, error=error, content=[command.shown])
    finally:
        with contextlib.suppress(NotFound, Conflict):  # a client has closed it, or is about to
            await terminal.close(by="host")


def _author(turn: Turn) -> str:
    found = turn.session.state.turn(turn.id)
    return found.by if found is not None else "host"


def _ending(command: CommandOutput) -> str:
    status = command.status or {}
    return f"the signal {status['signal']}" if status.get("signal") else f"exit code {status.get('exitCode')}"

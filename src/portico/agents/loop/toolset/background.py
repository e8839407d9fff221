"""`startCommand`, `commandOutput`, `stopCommand`: commands that run while the agent continues, such as a server.

See `loop/background.py`.
"""

import asyncio
import contextlib

from msgspec import Struct

from portico.agents.loop.tools import PlannedCall
from portico.agents.loop.toolset.tool import TEXT, ExtraTool, ToolContext, declare
from portico.agents.loop.transcript import cut
from portico.features.terminals.command_turn import CommandOutput
from portico.kernel.action import Action, command
from portico.kernel.call import Call
from portico.kernel.errors import BadRequest

SHOWN_CHARS = 30_000
"""Of the output that one call returns."""
FIRST_SECONDS = 1.0
"""A command that fails immediately is reported by the call that starts it."""
WAIT_MAX = 120.0


class StartArguments(Struct, forbid_unknown_fields=True):
    command: str | list[str]
    cwd: str = "."


class OutputArguments(Struct, forbid_unknown_fields=True):
    id: str
    seconds: float = 0


class StopArguments(Struct, forbid_unknown_fields=True):
    id: str


async def _plan_start(wanted: StartArguments, context: ToolContext) -> PlannedCall:
    if not wanted.command:
        raise BadRequest("startCommand needs a command.", field="command")
    folder = await asyncio.to_thread(context.roots.jail.resolve, context.roots.within(wanted.cwd))
    action = command(wanted.command, cwd=str(folder))

    async def act(call: Call) -> str:
        name, started = await context.commands.start(action, call.turn.session)
        call.content([started.shown])
        await _ended(started, FIRST_SECONDS)
        return f"Started as {name!r}.\n{_report(started)}"

    return PlannedCall(action, f"Start {action.text}"[:200], act)


async def _plan_output(wanted: OutputArguments, context: ToolContext) -> PlannedCall:
    found = context.commands.get(wanted.id)

    async def act(call: Call) -> str:
        await _ended(found, min(max(0.0, wanted.seconds), WAIT_MAX))
        return _report(found)

    return PlannedCall(Action("read"), f"Output of {found.title}", act, free=True)


async def _plan_stop(wanted: StopArguments, context: ToolContext) -> PlannedCall:
    found = context.commands.get(wanted.id)

    async def act(call: Call) -> str:
        if found.terminal is not None and found.status is None:
            await found.terminal.kill()
            await _ended(found, WAIT_MAX)
        return _report(found)

    return PlannedCall(Action("read"), f"Stop {found.title}", act, free=True)


async def _ended(started: CommandOutput, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await started.ended.wait()


def _report(started: CommandOutput) -> str:
    state = "still running"
    if started.status is not None:
        code, signal = started.status["exitCode"], started.status.get("signal")
        state = f"ended by signal {signal}" if signal else f"exit code {code}"
    return f"{cut(started.output.rstrip(), SHOWN_CHARS)}\n[{state}]".lstrip()


START = ExtraTool(
    declare(
        "startCommand",
        "Starts a command that goes on in the background (a server, a watcher, a long build) and returns its id.",
        ["command"],
        command={"type": ["string", "array"], "items": TEXT},
        cwd=TEXT,
    ),
    StartArguments,
    _plan_start,
    kind="execute",
)
OUTPUT = ExtraTool(
    declare(
        "commandOutput",
        f"Output of a background command so far; waits up to 'seconds' (at most {WAIT_MAX:g}) for its end.",
        ["id"],
        id=TEXT,
        seconds={"type": "number"},
    ),
    OutputArguments,
    _plan_output,
    kind="read",
    reads=True,
)
STOP = ExtraTool(
    declare("stopCommand", "Ends a background command.", ["id"], id=TEXT), StopArguments, _plan_stop, kind="execute"
)

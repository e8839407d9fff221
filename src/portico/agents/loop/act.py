"""One tool call of the built-in agent, from its start to its recorded end.

Append, then act, then record: every call is in the log before it runs and ends there. What a model writes is only a
request; what is allowed is decided by the settings, the grants and people.
"""

from collections.abc import Awaitable

import msgspec

from portico.agents.loop.protocol import QUOTE, ModelAction
from portico.agents.loop.record import STEP, result_text
from portico.agents.loop.settings import Current
from portico.agents.loop.tools import CommandFailed, LoopToolbox, PlannedCall
from portico.agents.loop.toolset.choice import EXTRAS
from portico.agents.mcp.sign_in import SignInNeeded, asked
from portico.kernel.approval import Decision
from portico.kernel.call import Call
from portico.kernel.errors import Forbidden, PorticoError
from portico.kernel.events import ErrorInfo, Json
from portico.kernel.turn import Turn

_KINDS = {name: each.kind for name, each in EXTRAS.items()} | {
    "listFiles": "search",
    "readFiles": "read",
    "search": "search",
    "createFile": "edit",
    "editFile": "edit",
    "runCommand": "execute",
}


def kind_of(tool: str) -> str:
    return _KINDS.get(tool, "other")


def begin(turn: Turn, action: ModelAction, step: int = 0, origin: Json | None = None, title: str = "") -> Call:
    """The call appears in the log with the number of its step."""
    origin = origin or {}
    meta = {**origin.pop("meta", {}), **({STEP: step} if step else {})}
    shown = title or action.tool
    return turn.tool(action.tool, id=action.id, kind=kind_of(action.tool), title=shown, meta=meta, **origin)


async def perform_own(turn: Turn, action: ModelAction, toolbox: LoopToolbox, current: Current) -> str:
    """One call of our own tools."""
    planned = toolbox.plan(action.tool, action.arguments)
    return await perform(begin(turn, action), action.arguments, planned, current)


async def perform(call: Call, wanted: Json, planned: Awaitable[PlannedCall], current: Current) -> str:
    """Runs a call that has begun; returns what the model reads."""
    arguments = msgspec.json.encode(wanted).decode()
    try:
        plan = await planned
    except PorticoError as error:
        call.ready(arguments, call.tool)
        return await fail(call, error)
    call.ready(arguments, plan.title)
    try:
        decision = None if plan.free else await _decide(call, plan, current)
        if decision is not None and not decision.allowed:
            refused = ErrorInfo("denied", f"Refused: {decision.reason or 'a person said no'}.")
            await call.end(ok=False, error=refused, outcome="cancelled")
            return result_text(False, "", refused)
        if plan.changes:
            await call.turn.settled()
        text = await _acted(plan, call)
    except PorticoError as error:
        return await fail(call, error, error.by if isinstance(error, SignInNeeded) else "")
    except OSError as error:  # a full disk, an unreadable folder: the model may find another way
        problem = ErrorInfo("agent_failed", f"{error.strerror or error}")
        await call.end(ok=False, error=problem)
        return result_text(False, "", problem)
    exit_code = 0 if plan.exits else None
    await call.end(output=text, title=plan.title, content=plan.content or None, exit_code=exit_code)
    return result_text(True, text, None)


async def _acted(plan: PlannedCall, call: Call) -> str:
    """Does it; a server that wants a token first gets one from a person, or the call fails."""
    while True:
        try:
            return await plan.act(call)
        except SignInNeeded as needed:
            if not await asked(needed, call):
                raise


async def fail(call: Call, error: PorticoError, by: str = "") -> str:
    """The model gets the error as the result; a path outside the allowed folders is also audited."""
    turn = call.turn
    if isinstance(error, Forbidden):
        who = f"session:{turn.session.id}"
        await turn.session.host.audit("path.refused", who, tool=call.tool, reason=error.message[:QUOTE])
    exit_code = error.exit_code if isinstance(error, CommandFailed) else None
    problem = ErrorInfo(error.code, error.message[:QUOTE])
    await call.end(ok=False, output=error.message, error=problem, exit_code=exit_code, by=by)
    return result_text(False, error.message, problem)


async def _decide(call: Call, plan: PlannedCall, current: Current) -> Decision:
    """`agent.require_approval` names what asks; a rule or a grant that denies counts in any case."""
    wanted = current.agent.require_approval
    asks = wanted == "all" or (wanted == "edits" and plan.changes)
    return await call.approve(
        action=plan.action,
        title=plan.title,
        diff=plan.diff,
        strict=asks,
        passing="" if asks else f"agent.require_approval = {wanted}",
    )

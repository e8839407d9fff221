"""`delegate`: a sub-agent with its own context window, in a child session that people can open and watch."""

import asyncio
from collections.abc import Awaitable, Callable

from portico.agents.loop.tools import PlannedCall
from portico.agents.loop.toolset.tool import TEXT, Delegation, ExtraTool, ToolContext, declare
from portico.kernel.action import Action
from portico.kernel.call import Call
from portico.kernel.errors import BadRequest, PorticoError
from portico.kernel.events import ErrorInfo
from portico.kernel.turn import Turn

TITLE_CHARS = 80
NO_REPORT = "The sub-agent ended without a report."


async def _plan(wanted: Delegation, context: ToolContext) -> PlannedCall:
    delegate = context.delegate
    if delegate is None:
        raise BadRequest("A sub-agent starts no others: do it yourself.", field="task")
    if not wanted.task.strip():
        raise BadRequest("'task' is empty: write what to do, with all that the sub-agent has to know.", field="task")

    async def act(call: Call) -> str:
        return await delegate(call, wanted)

    return PlannedCall(Action("read"), f"Delegate: {title_of(wanted)}", act, free=True)


def title_of(wanted: Delegation) -> str:
    return (wanted.title or " ".join(wanted.task.split()))[:TITLE_CHARS]


async def run_in_child(call: Call, wanted: Delegation, work: Callable[[Turn], Awaitable[str]]) -> str:
    """Run `work` in the turn of a child session. The child ends with it, also when it fails or is cancelled."""
    title = title_of(wanted)
    child = await call.turn.spawn(wanted.task, title=title, call=call, agent="explore" if wanted.readOnly else "work")
    call.content(
        [{"type": "subagent", "session": child.session.id, "title": title, "agent": child.session.state.agent}]
    )
    try:
        report = await work(child)
    except PorticoError as error:
        await child.finish("failed", ErrorInfo(error.code, error.message))
        raise
    except BaseException:  # also a cancel: the child session gets its end in any case
        await asyncio.shield(child.finish("cancelled"))
        raise
    await child.finish()
    return report.strip() or NO_REPORT


DELEGATE = ExtraTool(
    declare(
        "delegate",
        "Gives a task to a sub-agent with its own context and returns its report. It knows nothing of this "
        "conversation: write all that it needs into the task. readOnly (default): it only looks; several such tasks in "
        "one answer run at the same time. Good for searching through much code.",
        ["task"],
        task=TEXT,
        title=TEXT,
        readOnly={"type": "boolean"},
    ),
    Delegation,
    _plan,
    kind="other",
)

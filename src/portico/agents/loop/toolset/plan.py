"""`plan`: the list of steps that a model works through. Every door shows it as a plan."""

from typing import Literal

from msgspec import Struct

from portico.agents.loop.tools import PlannedCall
from portico.agents.loop.toolset.tool import TEXT, ExtraTool, ToolContext, declare
from portico.kernel.action import Action
from portico.kernel.call import Call
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json
from portico.markdown import checklist

STEPS_MAX = 50
"""A longer plan is no overview."""
Status = Literal["pending", "in_progress", "completed"]


class PlanStep(Struct, forbid_unknown_fields=True):
    text: str
    status: Status = "pending"


class PlanArguments(Struct, forbid_unknown_fields=True):
    steps: list[PlanStep]


async def _plan(wanted: PlanArguments, context: ToolContext) -> PlannedCall:
    if not 1 <= len(wanted.steps) <= STEPS_MAX:
        raise BadRequest(f"A plan has 1 to {STEPS_MAX} steps.", field="steps")
    done = sum(step.status == "completed" for step in wanted.steps)
    content: list[Json] = [{"type": "text", "text": checklist((step.text, step.status) for step in wanted.steps)}]

    async def act(call: Call) -> str:
        call.content(content)
        return f"The plan is shown: {done} of {len(wanted.steps)} steps are done."

    return PlannedCall(Action("read"), f"Plan: {done} of {len(wanted.steps)} done", act, content=content, free=True)


PLAN = ExtraTool(
    declare(
        "plan",
        "Shows your plan to the person. For work of more than three steps: give all steps first, then again with the "
        "new states when one begins or is done. At most one is in_progress.",
        ["steps"],
        steps={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": TEXT,
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                },
                "required": ["text", "status"],
            },
        },
    ),
    PlanArguments,
    _plan,
    kind="think",
)

"""`skill`: loads the text of a skill. Offered where there are skills."""

from msgspec import Struct

from portico.agents.loop.tools import PlannedCall
from portico.agents.loop.toolset.tool import TEXT, ExtraTool, ToolContext, declare
from portico.kernel.action import Action
from portico.kernel.call import Call
from portico.kernel.errors import NotFound


class SkillArguments(Struct, forbid_unknown_fields=True):
    name: str


async def _plan(wanted: SkillArguments, context: ToolContext) -> PlannedCall:
    found = next((each for each in context.skills if each.name == wanted.name), None)
    if found is None:
        names = ", ".join(each.name for each in context.skills) or "none"
        raise NotFound("skill", wanted.name, f"There are: {names}.")

    async def act(call: Call) -> str:
        return await found.text()

    return PlannedCall(Action("read"), f"Skill {found.name}", act, free=True)


SKILL = ExtraTool(
    declare("skill", "Loads one of the listed skills: instructions for a kind of task.", ["name"], name=TEXT),
    SkillArguments,
    _plan,
    kind="read",
    reads=True,
)

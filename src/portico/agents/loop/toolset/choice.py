"""Which tools a model gets, and the plan of a call of any of them.

The choice depends on `[agents.loop] tools` and on the size of the model: small models choose worse among many tools.
"""

from collections.abc import Collection
from typing import Literal

from msgspec.structs import replace

from portico.agents.loop.fields import fitted
from portico.agents.loop.looking_commands import only_looks
from portico.agents.loop.other_tools import translated
from portico.agents.loop.protocol import ModelAction
from portico.agents.loop.tools import READS, TOOLS, LoopToolbox, PlannedCall
from portico.agents.loop.toolset.ask import ASK
from portico.agents.loop.toolset.background import OUTPUT, START, STOP
from portico.agents.loop.toolset.delegate import DELEGATE
from portico.agents.loop.toolset.picture import VIEW
from portico.agents.loop.toolset.plan import PLAN
from portico.agents.loop.toolset.skill import SKILL
from portico.agents.loop.toolset.tool import ExtraTool, ToolContext
from portico.agents.loop.toolset.web import FETCH
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json, ToolSpec

_EXTRAS = (PLAN, ASK, VIEW, FETCH, START, OUTPUT, STOP, DELEGATE, SKILL)
EXTRAS: dict[str, ExtraTool] = {each.name: each for each in _EXTRAS}
NAMES = (*(tool.name for tool in TOOLS), *EXTRAS)
LOOKING = frozenset({*READS, VIEW.name, SKILL.name})
"""The tools of a sub-agent that only looks."""
_LOOSE = frozenset(name for name, each in EXTRAS.items() if each.reads) | {PLAN.name, ASK.name}
"""Tools beside `READS` that change nothing."""
Choice = Literal["auto", "basic", "all"]


def choose(choice: Choice, off: Collection[str], small: bool) -> list[str]:
    """The names of the tools that are offered."""
    basic = choice == "basic" or (choice == "auto" and small)
    names = [tool.name for tool in TOOLS] if basic else list(NAMES)
    return [name for name in names if name not in off]


class Toolset:
    """The tools of one run."""

    def __init__(self, names: Collection[str], toolbox: LoopToolbox, context: ToolContext) -> None:
        self._toolbox = toolbox
        self._context = context
        self.specs: list[ToolSpec] = [tool for tool in TOOLS if tool.name in names]
        extras = EXTRAS.values() if context.skills else (each for each in EXTRAS.values() if each is not SKILL)
        self.specs += [each.spec for each in extras if each.name in names]
        self._names = {spec.name for spec in self.specs}
        self.roots = toolbox.roots

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def adapt(self, action: ModelAction) -> ModelAction:
        """The call in the form in which it is judged, shown and run."""
        if action.tool not in self._names:
            action = translated(action, self._names, self.roots.has)
        if action.problem or action.tool not in self._names:
            return action
        schema = next(spec.schema for spec in self.specs if spec.name == action.tool)
        arguments = fitted(action.arguments, schema, reads=action.tool in READS or action.tool in _LOOSE)
        if isinstance(path := arguments.get("path"), str):
            arguments["path"] = self.roots.similar(path)
        if isinstance(files := arguments.get("files"), list):
            arguments["files"] = [self.roots.similar(each) if isinstance(each, str) else each for each in files]
        return replace(action, arguments=arguments)

    async def plan(self, name: str, arguments: Json) -> PlannedCall:
        if name not in self._names:
            names = ", ".join(spec.name for spec in self.specs)
            raise BadRequest(f"There is no tool {name!r}; there are: {names}.", field="tool")
        if name in EXTRAS:
            return await EXTRAS[name].planned(arguments, self._context)
        return await self._toolbox.plan(name, arguments)

    def only_reads(self, action: ModelAction) -> bool:
        """Whether the call changes nothing, so that it runs at the same time as others of this kind."""
        if action.problem or action.tool not in self._names:
            return False
        if action.tool == "runCommand":
            return only_looks(action.arguments.get("command"))
        if action.tool == DELEGATE.name:
            return action.arguments.get("readOnly", True) is not False
        return action.tool in READS or (action.tool in EXTRAS and EXTRAS[action.tool].reads)

    def take_pictures(self) -> list[tuple[str, str]]:
        """The pictures that calls have shown since the last time."""
        found, self._context.pictures = self._context.pictures, []
        return found

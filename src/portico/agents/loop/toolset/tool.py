"""The interface of one tool, and what a call of it may use."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from portico.agents.loop.background import BackgroundCommands
from portico.agents.loop.roots import Roots
from portico.agents.loop.skills import Skill
from portico.agents.loop.tools import PlannedCall
from portico.kernel.call import Call
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json, ToolSpec
from portico.sandbox.egress import Egress


class Delegation(Struct, forbid_unknown_fields=True):
    """A task for a sub-agent."""

    task: str
    title: str = ""
    readOnly: bool = True  # noqa: N815


@dataclass
class ToolContext:
    """What the tools of one run share."""

    roots: Roots
    commands: BackgroundCommands
    delegate: Callable[[Call, Delegation], Awaitable[str]] | None = None
    """Runs a sub-agent and returns its report. None inside a sub-agent: they start no others."""
    skills: Sequence[Skill] = ()
    egress: Callable[[], Awaitable[Egress | None]] | None = None
    """Returns the way out of the session's sandbox. None, or if it returns None: it has no sandbox."""
    pictures: list[tuple[str, str]] = field(default_factory=list)
    """Name and data URL of pictures that the model gets with its next request."""


@dataclass(frozen=True)
class ExtraTool:
    spec: ToolSpec
    arguments: type[Struct]
    plan: Callable[[Any, ToolContext], Awaitable[PlannedCall]]
    kind: str = "other"
    reads: bool = False
    """Calls of it change nothing, so that they run at the same time as others of this kind."""

    @property
    def name(self) -> str:
        return self.spec.name

    async def planned(self, arguments: Json, context: ToolContext) -> PlannedCall:
        try:
            wanted = msgspec.convert(arguments, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            raise BadRequest(f"The arguments of {self.name!r} do not fit: {error}.", field="arguments") from None
        return await self.plan(wanted, context)


def declare(name: str, description: str, required: list[str], /, **properties: Json) -> ToolSpec:
    schema: Json = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolSpec(name, description, schema)


TEXT: Json = {"type": "string"}

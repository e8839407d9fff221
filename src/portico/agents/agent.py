"""The names an author of an agent needs, in one place. docs/guide/agents.md has a worked example.

An entry point in the group `portico.agents` names a function `(AgentContext) -> Iterable[Agent]`.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from portico.kernel.agent import Agent, AgentInfo, Capabilities, Check, Checks, Conversation, Model, Opening, Resource
from portico.kernel.approval import Decision
from portico.kernel.autonomy import Autonomy
from portico.kernel.call import Call
from portico.kernel.errors import AgentDied, AgentError, AgentUnavailable, SignInRequired, Unauthenticated
from portico.kernel.events import ErrorInfo, Json, Message, Option, ToolSpec
from portico.kernel.question import Answer
from portico.kernel.turn import Turn

if TYPE_CHECKING:
    from portico.agents.pool import Pool


class AgentContext(Struct, frozen=True, dict=True):
    """What an agent is made from."""

    home: Path
    """The host's private folder; an agent may keep files in `home / "agents" / its id`."""
    settings: Json
    """The table `[agents]` of the settings file."""
    script: Path | None = None
    """`--script FILE`, for the scripted agent."""
    script_delay: float = 0.0
    """`--script-delay`, in seconds."""

    @cached_property
    def pool(self) -> "Pool":
        """Where the processes of all agents need a place."""
        from portico.agents.pool import Pool

        return Pool.of(self.home)


NEVER_ASKS = "does not ask"
"""The label of an agent that acts without asking: shown beside its name, and beside its models where only those are."""
Factory = Callable[[AgentContext], Iterable[Agent]]

__all__ = [
    "NEVER_ASKS",
    "Agent",
    "AgentContext",
    "AgentDied",
    "AgentError",
    "AgentInfo",
    "AgentUnavailable",
    "Answer",
    "Autonomy",
    "Call",
    "Capabilities",
    "Check",
    "Checks",
    "Conversation",
    "Decision",
    "ErrorInfo",
    "Factory",
    "Forgets",
    "Json",
    "Message",
    "Model",
    "Opening",
    "Option",
    "ProbesAsking",
    "Resource",
    "SignInRequired",
    "ToolSpec",
    "Turn",
    "Unauthenticated",
]


@runtime_checkable
class ProbesAsking(Protocol):
    """An agent of which it is not known whether it asks before it acts."""

    async def probe_asking(self, *, again: bool = False) -> bool | None:
        """Whether it did not write a file that was refused, and asked first; None: it did neither. Uses its model,
        once for each version of its program and settings, or `again`."""


@runtime_checkable
class Forgets(Protocol):
    """An agent that remembers problems for a while."""

    def forget(self) -> None:
        """Drop them: the next `describe` asks again."""

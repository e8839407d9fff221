"""How an agent gets the sandbox for its own processes."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from portico.features.sandboxes.choice import chosen
from portico.kernel.agent import Opening
from portico.kernel.errors import SandboxUnavailable
from portico.sandbox.policy import Confinement, Unconfined
from portico.sandbox.vendors import Vendor

OFF = Unconfined("the session has no sandbox")


class AgentProcess(Struct, frozen=True):
    """What an agent's own process needs; for a command everything is empty."""

    command: Sequence[str] = ()
    env: Mapping[str, str] = {}
    vendor: Vendor = Vendor()


class Confine(Protocol):
    async def __call__(self, session: str, process: AgentProcess) -> Confinement:
        """Return how to start the process of an agent for a session."""


class ConfinableAgent:
    """The base of agents whose processes can be confined: all of them are started with `confinement`."""

    _confine: Confine | None = None

    def confine_with(self, confine: Confine) -> None:
        """Called by the host that has sandboxes."""
        self._confine = confine

    async def confinement(self, opening: Opening, process: AgentProcess) -> Confinement:
        """Return how to start a process for a conversation. Raises if its sandbox does not work."""
        if self._confine is not None:
            return await self._confine(opening.session, process)
        if chosen(opening.config) in (None, "off"):
            return OFF
        raise SandboxUnavailable("This host has no sandboxes.")

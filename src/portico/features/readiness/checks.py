"""Which agents are ready, and which one is the default.

`describe` is quick and cannot know whether a program really starts; a check starts it. A failed check counts for some
minutes: the agent is shown as not ready. It must be checked again before that rejects anything.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from portico import limits
from portico.features.readiness.descriptions import Descriptions
from portico.kernel.agent import Agent, AgentInfo, AgentReadiness, Check, Checks
from portico.kernel.errors import AgentUnavailable

if TYPE_CHECKING:
    from portico.kernel.host import Host

logger = logging.getLogger("portico.host")


class AgentChecks(AgentReadiness):
    def __init__(self, host: "Host") -> None:
        super().__init__(host.agents)
        self._host = host
        self._descriptions = Descriptions(host)
        self._found: dict[str, tuple[float, Check]] = {}
        self._checking: dict[str, asyncio.Task[Check]] = {}

    async def described(self, agent: Agent) -> AgentInfo:
        return self._shown(await self._descriptions.of(agent))

    async def describe(self) -> list[AgentInfo]:
        return [self._shown(info) for info in await self._descriptions.all()]

    async def settle(self, seconds: float) -> bool:
        return await self._descriptions.settle(seconds)

    async def check(self, ident: str) -> Check:
        """Concurrent callers share one check: each starts a process."""
        running = self._checking.get(ident)
        if running is None:
            running = self._checking[ident] = self._host.own(self._check(ident), f"check {ident}")
            running.add_done_callback(lambda _: self._checking.pop(ident, None))
        return await asyncio.shield(running)

    async def _check(self, ident: str) -> Check:
        agent = self._host.agent(ident)
        found = await check_agent(agent)
        if isinstance(agent, Checks):  # others are as they describe themselves
            self._found[ident] = time.monotonic(), found
        return found

    def _shown(self, info: AgentInfo) -> AgentInfo:
        """With what a recent check found missing."""
        checked_at, found = self._found.get(info.id, (0.0, None))
        old = time.monotonic() - checked_at > limits.AGENT_FACT_SECONDS
        if found is None or found.ok or old or info.missing is not None:
            return info
        return msgspec.structs.replace(info, missing=found.detail)

    async def default(self) -> AgentInfo:
        """The agent of sessions that name none: the setting's, else the first real one that is ready. If there is only
        one, nothing is started. One that was signed out is checked again: a person may have signed in."""
        infos = await self._host.describe()
        if self._host.default_agent:
            return self._chosen(infos)
        possible = [info for info in sorted(infos, key=is_for_trying) if info.missing is None or self._checks(info)]
        for info in possible:
            if len(possible) == 1 or await self._ready(info):
                return info
        missing = "; ".join(f"{info.id}: {info.missing}" for info in await self._host.describe()) or "there is none"
        raise AgentUnavailable(f"No agent is ready ({missing}).")

    def likely(self, infos: Sequence[AgentInfo]) -> str | None:
        """Its id as far as it is known without starting anything, for lists."""
        return self._host.default_agent or likely(infos)

    def _chosen(self, infos: Sequence[AgentInfo]) -> AgentInfo:
        wanted = self._host.default_agent
        if found := next((info for info in infos if info.id == wanted), None):
            return found
        names = ", ".join(repr(info.id) for info in infos) or "none"
        raise AgentUnavailable(f"The setting default_agent names {wanted!r}, which is not here. There are: {names}.")

    def _checks(self, info: AgentInfo) -> bool:
        return isinstance(self._host.agent(info.id), Checks)

    async def _ready(self, info: AgentInfo) -> bool:
        """An agent that can be checked is checked once; one that failed again after a minute."""
        checked_at, found = self._found.get(info.id, (0.0, None))
        if not self._checks(info):
            return info.missing is None
        old = time.monotonic() - checked_at > limits.AGENT_RECHECK_SECONDS
        return (await self.check(info.id)).ok if found is None or (old and not found.ok) else found.ok


async def check_agent(agent: Agent) -> Check:
    """Starts the agent, if it can be started just for that; otherwise what it describes."""
    try:
        async with asyncio.timeout(limits.AGENT_CHECK_SECONDS):
            return await agent.check() if isinstance(agent, Checks) else described(await agent.describe())
    except TimeoutError:
        return Check(agent.id, "slow", f"It did not answer within {limits.AGENT_CHECK_SECONDS:g} seconds; try again.")
    except Exception as error:  # noqa: BLE001 - a bug in a plugin affects its agent only
        logger.warning("the check of the agent %r failed: %r", agent.id, error)
        return Check(agent.id, "failed", f"It cannot be checked: {error}")


def likely(infos: Sequence[AgentInfo], checks: Sequence[Check] = ()) -> str | None:
    """The first real agent that is ready, as far as it is known."""
    failed = {check.agent for check in checks if not check.ok}
    ready = [info.id for info in sorted(infos, key=is_for_trying) if info.missing is None and info.id not in failed]
    return ready[0] if ready else None


def is_for_trying(info: AgentInfo) -> bool:
    """Such agents are the default only if there is no other."""
    return info.label in ("demo", "toy")


def described(info: AgentInfo) -> Check:
    """Of an agent that is not started for a check."""
    if info.missing is not None:
        signed_out = any(each.required and each.state != "given" for each in info.resources)
        return Check(info.id, "not_signed_in" if signed_out else "missing", info.missing)
    count = len(info.models)
    return Check(info.id, "ready", f"{count} model{'s' * (count != 1)}")

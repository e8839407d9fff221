"""Which agents are ready, and which one answers when nobody names one.

`describe` is quick and cannot know whether a program really starts; a check starts it. What a check found counts until
the next one: an agent that did not start is shown as not ready, and is not chosen.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from portico import limits
from portico.errors import AgentUnavailable
from portico.host.agent import Agent, AgentInfo, Check, Checks

if TYPE_CHECKING:
    from portico.host.host import Host

LABELS = ("demo", "toy")
"""These agents are for trying Portico: they answer unasked only where there is nobody else."""


class Readiness:
    def __init__(self, host: "Host") -> None:
        self._host = host
        self._found: dict[str, tuple[float, Check]] = {}

    async def check(self, ident: str) -> Check:
        found = await check_agent(self._host.agent(ident))
        self._found[ident] = time.monotonic(), found
        return found

    def show(self, info: AgentInfo) -> AgentInfo:
        """With what the last check found missing."""
        _, found = self._found.get(info.id, (0.0, None))
        if found is None or found.ok or info.missing is not None:
            return info
        return msgspec.structs.replace(info, missing=found.detail)

    async def default(self) -> AgentInfo:
        """The agent of those who name none: the setting's, else the first real one that is ready. Where there is no
        choice nothing is started to make it. One that was signed out is asked again: somebody may have signed in."""
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
        """Its id as far as one can tell without starting anything, for lists."""
        return self._host.default_agent or likely(infos)

    def _chosen(self, infos: Sequence[AgentInfo]) -> AgentInfo:
        wanted = self._host.default_agent
        for info in infos:
            if info.id == wanted:
                return info
        names = ", ".join(repr(info.id) for info in infos) or "none"
        raise AgentUnavailable(f"The setting default_agent names {wanted!r}, which is not here. There are: {names}.")

    def _checks(self, info: AgentInfo) -> bool:
        return isinstance(self._host.agent(info.id), Checks)

    async def _ready(self, info: AgentInfo) -> bool:
        """An agent that can be checked is, once; one that failed again after a while, in case somebody signed in."""
        checked_at, found = self._found.get(info.id, (0.0, None))
        if not self._checks(info):
            return info.missing is None
        again = found is not None and not found.ok and time.monotonic() - checked_at > limits.AGENT_RECHECK_SECONDS
        return (await self.check(info.id)).ok if found is None or again else found.ok


async def check_agent(agent: Agent) -> Check:
    """Starts the agent, if it can be started just for that; else what it says of itself."""
    try:
        async with asyncio.timeout(limits.AGENT_CHECK_SECONDS):
            return await agent.check() if isinstance(agent, Checks) else described(await agent.describe())
    except TimeoutError:
        return Check(agent.id, "failed", f"It did not answer within {limits.AGENT_CHECK_SECONDS:g} seconds.")


def likely(infos: Sequence[AgentInfo], checks: Sequence[Check] = ()) -> str | None:
    """The first real agent that is ready, as far as it is known."""
    failed = {check.agent for check in checks if not check.ok}
    ready = [info.id for info in sorted(infos, key=is_for_trying) if info.missing is None and info.id not in failed]
    return ready[0] if ready else None


def is_for_trying(info: AgentInfo) -> bool:
    return info.label in LABELS


def described(info: AgentInfo) -> Check:
    """Of an agent that is not started for a check."""
    if info.missing is not None:
        signed_out = any(each.required and each.state != "given" for each in info.resources)
        return Check(info.id, "not_signed_in" if signed_out else "missing", info.missing)
    count = len(info.models)
    return Check(info.id, "ready", f"{count} model{'s' * (count != 1)}")

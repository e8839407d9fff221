"""Descriptions of the agents. An agent is a plugin: if its `describe` raises or times out, it is listed with the reason
in `missing`, and the other agents are not affected."""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from portico import limits
from portico.kernel.agent import Agent, AgentInfo

if TYPE_CHECKING:
    from portico.kernel.host import Host


class Descriptions:
    def __init__(self, host: "Host") -> None:
        self._host = host
        self._last: dict[str, AgentInfo] = {}
        """The last description, by agent."""
        self._late: dict[str, asyncio.Task[AgentInfo]] = {}
        """Requests that timed out. These agents are not asked again before they have answered."""

    async def all(self) -> list[AgentInfo]:
        return await self._ask(*self._host.agents.values())

    async def of(self, agent: Agent) -> AgentInfo:
        return (await self._ask(agent))[0]

    async def _ask(self, *agents: Agent) -> list[AgentInfo]:
        self._late = {ident: late for ident, late in self._late.items() if not late.done()}
        own = self._host.own
        asked = [self._late.get(each.id) or own(_describe(each), f"agent {each.id} describes") for each in agents]
        begun = [each for each in asked if each not in self._late.values()]
        try:
            await asyncio.sleep(0)  # nearly all of them answer immediately
            if not all(each.done() for each in begun):
                await asyncio.wait(begun, timeout=limits.DESCRIBE_SECONDS)
        except asyncio.CancelledError:
            for each in begun:
                each.cancel()
            raise
        return [self._result(agent, each) for agent, each in zip(agents, asked, strict=True)]

    async def settle(self, seconds: float) -> bool:
        """Wait for late answers; return False if there are none."""
        late = set(self._late.values())
        if late:
            await asyncio.wait(late, timeout=seconds)
        return bool(late)

    def _result(self, agent: Agent, asked: "asyncio.Task[AgentInfo]") -> AgentInfo:
        if not asked.done():
            told, self._late[agent.id] = self._late.get(agent.id) is asked, asked
            when = "does not answer" if told else f"did not answer in {limits.DESCRIBE_SECONDS:g} seconds"
            return self._missing(agent, f"It {when}.")
        error = None if asked.cancelled() else asked.exception()
        if asked.cancelled() or error is not None:
            self._host.logger.warning("the agent %r cannot describe itself: %r", agent.id, error)
            return self._missing(agent, f"It cannot describe itself: {error or 'it gave up'}")
        self._last[agent.id] = asked.result()
        return self._last[agent.id]

    def _missing(self, agent: Agent, why: str) -> AgentInfo:
        last = self._last.get(agent.id) or AgentInfo(agent.id, agent.id)
        return msgspec.structs.replace(last, missing=why)


async def _describe(agent: Agent) -> AgentInfo:
    info = await agent.describe()
    if not isinstance(info, AgentInfo):
        raise TypeError(f"describe() returned {type(info).__name__}, not AgentInfo")
    return info

"""Agents are plugins: one that cannot describe itself is listed with the reason, and the others are there."""

import asyncio

import pytest

from portico import limits
from portico.agents.agent import AgentInfo
from portico.features.jobs.choice import choose
from portico.kernel.errors import NotFound
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import idle


class Raising(PlayAgent):
    async def describe(self) -> AgentInfo:
        raise RuntimeError("a bug in the plugin")


class Wrong(PlayAgent):
    async def describe(self) -> AgentInfo:
        return {"id": "wrong"}  # type: ignore[return-value]


class Hanging(PlayAgent):
    """Answers once, then only when it is let go."""

    asked = 0

    async def describe(self) -> AgentInfo:
        self.asked += 1
        if self.asked == 2:
            self.let_go = asyncio.Event()
            await self.let_go.wait()
        return await super().describe()


@pytest.fixture
async def host(open_host: HostOpener, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(limits, "DESCRIBE_SECONDS", 0.05)
    agents = (Raising(idle, "raising"), Wrong(idle, "wrong"), Hanging(idle, "hanging"), PlayAgent(idle, "good"))
    return await open_host(*agents)


async def missing(host: Host) -> dict[str, str | None]:
    return {info.id: info.missing for info in await asyncio.wait_for(host.describe(), 60)}


async def test_the_others_are_listed_and_the_reason_is_told(host: Host) -> None:
    """One that raised or hung broke `GET /v1/agents`, every start without an agent and every AHP client."""
    broken = {
        "raising": "It cannot describe itself: a bug in the plugin",
        "wrong": "It cannot describe itself: describe() returned dict, not AgentInfo",
    }
    assert await missing(host) == {**broken, "hanging": None, "good": None}
    assert await missing(host) == {**broken, "hanging": "It did not answer in 0.05 seconds.", "good": None}


async def test_one_that_hangs_is_not_waited_for_again_and_keeps_its_models(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await host.describe()
    await host.describe()
    monkeypatch.setattr(limits, "DESCRIBE_SECONDS", 60.0)
    info = await asyncio.wait_for(host.described("hanging"), 60)
    assert (info.missing, [model.id for model in info.models]) == ("It does not answer.", ["small", "large"])
    agent = host.agents["hanging"]
    assert isinstance(agent, Hanging)
    agent.let_go.set()
    async with asyncio.timeout(60):
        while (await host.described("hanging")).missing is not None:  # noqa: ASYNC110 - its answer comes by itself
            await asyncio.sleep(0)


async def test_a_start_without_an_agent_takes_the_first_that_is_ready(host: Host) -> None:
    await host.describe()
    await host.describe()
    assert (await host.start(by="test", cwd="/")).summary.agent == "good"


async def test_a_job_waits_for_an_agent_that_is_late(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that had just started, a job that was taken up after a crash failed: the agent's first description
    took more than 5 seconds."""
    agent = host.agents["hanging"]
    assert isinstance(agent, Hanging)
    await host.describe()
    await host.describe()  # the second one comes late
    settle = host.readiness.settle

    async def answer(seconds: float) -> bool:
        agent.let_go.set()
        return await settle(seconds)

    monkeypatch.setattr(host.readiness, "settle", answer)
    chosen, model = await asyncio.wait_for(choose(host, "hanging/large"), 60)
    assert (chosen.id, model) == ("hanging", "large")
    with pytest.raises(NotFound):  # nobody is late any more: this is not waited for
        await asyncio.wait_for(choose(host, "hanging/huge"), 60)

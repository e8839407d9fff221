"""Which agent answers when nobody names one, and what a check of an agent tells."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from portico.kernel.agent import AgentInfo, Check, CheckStatus, Conversation, Model, Opening, Resource
from portico.kernel.errors import AgentUnavailable
from portico.testing.fixtures import HostOpener


@dataclass
class Plain:
    """Tells what it is, and cannot be checked further."""

    id: str
    label: str = ""
    missing: str | None = None
    resources: list[Resource] = field(default_factory=list)

    async def describe(self) -> AgentInfo:
        return AgentInfo(
            self.id,
            self.id,
            models=[Model("m", "M")],
            missing=self.missing,
            label=self.label,
            resources=self.resources,
        )

    async def open(self, opening: Opening) -> Conversation:
        raise AgentUnavailable("not here")

    async def close(self) -> None:
        pass


@dataclass
class Checkable(Plain):
    status: CheckStatus = "ready"
    checks: int = 0

    async def check(self) -> Check:
        self.checks += 1
        return Check(self.id, self.status, f"{self.status} of {self.id}")


@pytest.mark.parametrize(
    ("agents", "chosen"),
    [
        ([Plain("a"), Plain("b")], "a"),
        ([Plain("a", missing="no program"), Plain("b")], "b"),
        ([Plain("demo", label="demo"), Plain("b")], "b"),
        ([Plain("loop", label="toy"), Plain("plugin")], "plugin"),
        ([Plain("loop", label="toy"), Plain("demo", label="demo")], "loop"),
        ([Plain("demo", label="demo")], "demo"),
        ([Checkable("a", status="not_signed_in"), Plain("b")], "b"),
        ([Checkable("a"), Plain("b")], "a"),
        ([Checkable("a", missing="no program", status="missing"), Plain("demo", label="demo")], "demo"),
        ([Checkable("a", status="not_acp"), Checkable("b", status="wrong_node"), Checkable("c")], "c"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_the_default_agent_is_the_first_real_one_that_is_ready(
    open_host: HostOpener, agents: list[Plain], chosen: str
) -> None:
    host = await open_host(*agents)
    assert (await host.readiness.default()).id == chosen
    assert host.readiness.likely(await host.describe()) == chosen


async def test_the_setting_chooses_and_a_wrong_one_is_told(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(Plain("a"), Plain("b", missing="no program"))
    host.default_agent = "b"
    session = await host.start(by="test", cwd=str(tmp_path))
    assert session.state.agent == "b", "a choice of the user is not changed behind their back"
    host.default_agent = "acp:gone"
    with pytest.raises(AgentUnavailable, match=r"default_agent names 'acp:gone'.*There are: 'a', 'b'"):
        await host.start(by="test", cwd=str(tmp_path))


async def test_nobody_is_ready(open_host: HostOpener) -> None:
    locked = Checkable("a", status="not_signed_in"), Checkable("b", status="failed")
    host = await open_host(*locked, Plain("c", missing="no program"))
    with pytest.raises(AgentUnavailable, match="a: not_signed_in of a; b: failed of b; c: no program"):
        await host.readiness.default()


async def test_an_agent_is_started_once_to_see_whether_it_is_ready(open_host: HostOpener) -> None:
    agent = Checkable("a")
    host = await open_host(agent, Plain("b"))
    for _ in range(3):
        await host.readiness.default()
    assert agent.checks == 1


async def test_where_there_is_no_choice_nothing_is_started(open_host: HostOpener) -> None:
    agent = Checkable("a", status="not_signed_in")
    host = await open_host(agent, Plain("b", missing="no program"))
    assert ((await host.readiness.default()).id, agent.checks) == ("a", 0)


async def test_one_that_failed_is_asked_again_after_a_while(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Checkable("a", status="not_signed_in")
    host = await open_host(agent, Plain("b"))
    assert (await host.readiness.default()).id == "b"
    agent.status = "ready"
    assert (await host.readiness.default()).id == "b"
    monkeypatch.setattr("portico.limits.AGENT_RECHECK_SECONDS", 0.0)
    assert (await host.readiness.default()).id == "a"


async def test_one_that_was_signed_out_before_the_start_is_asked_again(open_host: HostOpener) -> None:
    """ACP agents remember that nobody was signed in: after signing in the demo answered until a doctor came."""
    agent = Checkable("a", missing="Run: a login")
    host = await open_host(agent, Plain("demo", label="demo"))
    assert ((await host.readiness.default()).id, agent.checks) == ("a", 1)


async def test_what_a_check_found_stands_in_the_lists_until_the_next_one(open_host: HostOpener) -> None:
    agent = Checkable("a", status="not_signed_in")
    host = await open_host(agent)
    assert (await host.describe())[0].missing is None
    await host.readiness.check("a")
    assert (await host.describe())[0].missing == "not_signed_in of a"
    agent.status = "ready"
    await host.readiness.check("a")
    assert (await host.describe())[0].missing is None


async def test_an_agent_that_hangs_does_not_hang_the_check(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging(Checkable):
        async def check(self) -> Check:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("portico.limits.AGENT_CHECK_SECONDS", 0.01)
    host = await open_host(Hanging("a"))
    found = await host.readiness.check("a")
    assert (found.status, found.detail) == ("slow", "It did not answer within 0.01 seconds; try again.")


async def test_agents_that_cannot_be_started_just_for_a_check_tell_what_they_know(open_host: HostOpener) -> None:
    locked = Plain("b", missing="Run: copilot login", resources=[Resource("https://api.example.com")])
    host = await open_host(Plain("a"), locked, Plain("c", missing="no program"))
    found = [await host.readiness.check(each) for each in "abc"]
    assert [(each.status, each.detail) for each in found] == [
        ("ready", "1 model"),
        ("not_signed_in", "Run: copilot login"),
        ("missing", "no program"),
    ]

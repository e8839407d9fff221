"""Facts that are remembered about agents and endpoints: each × fresh, expired and wrong × those who read it.

The bug: "not signed in" was noted without its age. `agents test goose` printed "does not work (0 s)" without starting
goose, while doctor reported that it is ready."""

import json
import sys
from pathlib import Path

import pytest

from portico import limits
from portico.agents.acp.agent import AgentFacts
from portico.agents.agent import AgentContext
from portico.agents.copilot import copilot
from portico.agents.copilot.agent import CopilotAgent
from portico.agents.facts import FactsFile, Problem
from portico.agents.script import Provider
from portico.agents.scripted import ScriptedAgent
from portico.features.jobs.choice import choose
from portico.kernel.agent import Check
from portico.kernel.errors import AgentUnavailable, Conflict
from portico.kernel.folder_access import check_folders
from portico.testing.fixtures import HostOpener
from portico.testing.model import Error, Step
from tests.agents.acp_agent import FAKE, fake_agent
from tests.agents.loop.conftest import Desk, desk, ends
from tests.process import inside

__all__ = ["desk"]

NOTE = "Fake is not signed in. Run: fake login"
SEVERAL = json.dumps({"loadSession": True, "sessionCapabilities": {"additionalDirectories": {}}})
AGES = {"fresh": 1.0, "expired": limits.AGENT_FACT_SECONDS + 1, "of a clock that was set back": -3600.0, "of 0.2": 1e9}


def note(home: Path, age: float) -> None:
    """As an agent of this home, in whichever process, has left it."""
    found = Problem.now(NOTE)
    folder = home / "agents" / "acp" / "fake"
    FactsFile(folder, AgentFacts).write(AgentFacts(signed_out=NOTE, signed_out_at=found.at - age))
    assert fake_agent(home)._facts.signed_out == NOTE, "the folder is the right one"


@pytest.mark.parametrize("age", AGES)
def test_a_problem_expires(age: str) -> None:
    found = Problem.now("x")
    found.at -= AGES[age]
    assert found.current == ("x" if age == "fresh" else "")


@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("locked", [False, True], ids=["signed in", "signed out"])
async def test_signed_out_of_an_acp_agent(open_host: HostOpener, tmp_path: Path, age: str, locked: bool) -> None:
    """A list that starts nothing shows a fresh note. Readers that decide something find out the truth."""
    note(tmp_path, AGES[age])
    host = await open_host(
        agent := fake_agent(tmp_path, env={"FAKE_LOCKED": "1"} if locked else {}),
        ScriptedAgent(Provider("other", "Other", label="demo")),
    )
    assert (await agent.describe()).missing == (NOTE if age == "fresh" else None)
    assert (await host.readiness.default()).id == ("other" if locked else "acp:fake")
    note(tmp_path, AGES[age])
    agent._facts = agent._facts_file.read()
    if locked and age == "fresh":
        with pytest.raises(AgentUnavailable, match="fake is not signed in"):
            await choose(host, "acp:fake")
    elif not locked:
        assert (await choose(host, "acp:fake"))[0].id == "acp:fake"
    assert (await host.readiness.check("acp:fake")).ok is not locked
    assert ((await host.describe())[0].missing is None) is not locked


@pytest.mark.parametrize("locked", [False, True], ids=["signed in", "signed out"])
def test_list_test_and_doctor_agree(tmp_path: Path, locked: bool) -> None:
    """With a fresh note that is wrong, and one that is right."""
    home = tmp_path / "home"
    command = json.dumps([sys.executable, "-S", "-E", str(FAKE)])
    env = f'FAKE_STORE = "{tmp_path}/store"' + (', FAKE_LOCKED = "1"' if locked else "")
    home.mkdir()
    (home / "settings.toml").write_text(f"[agents.acp.fake]\ncommand = {command}\nenv = {{ {env} }}\n")
    more = {"PATH": "/usr/bin:/bin", "OLLAMA_HOST": "127.0.0.1:1"}
    found: dict[str, bool] = {}
    note(home, 1)
    listed = inside(home, "agents", "list", **more).stdout.splitlines()
    found["list"] = not next(line for line in listed if "acp:fake" in line).split("\t")[1].startswith("not ready")
    note(home, 1)
    tried = json.loads(inside(home, "agents", "test", "fake", "--json", **more).stdout)
    found["test"] = "not signed in" not in tried["problem"]
    note(home, 1)
    doctor = {each["what"]: each for each in json.loads(inside(home, "doctor", "--json", **more).stdout)}
    found["doctor"] = doctor["agent acp:fake"]["ok"]
    assert found == dict.fromkeys(("list", "test", "doctor"), not locked)


class Checked(ScriptedAgent):
    """Describes itself as ready, and is as a check finds."""

    def __init__(self) -> None:
        super().__init__(Provider("checked", "Checked"))
        self.ready, self.checks = False, 0

    async def check(self) -> Check:
        self.checks += 1
        return Check(self.id, "ready" if self.ready else "failed", "It did not start.")


@pytest.mark.parametrize("age", ["fresh", "expired"])
@pytest.mark.parametrize("ready", [True, False])
async def test_a_failed_check(open_host: HostOpener, monkeypatch: pytest.MonkeyPatch, age: str, ready: bool) -> None:
    host = await open_host(agent := Checked())
    await host.readiness.check("checked")
    agent.ready = ready
    if age == "expired":
        monkeypatch.setattr("portico.limits.AGENT_FACT_SECONDS", 0.0)
    shown = (await host.describe())[0].missing
    assert shown == ("It did not start." if age == "fresh" else None)
    if ready or age == "expired":
        assert (await choose(host, "checked"))[0].id == "checked"
    else:
        with pytest.raises(AgentUnavailable, match="It did not start"):
            await choose(host, "checked")
    assert agent.checks == (2 if age == "fresh" else 1)


@pytest.mark.parametrize("reader", ["a list, fresh", "a list, expired", "a job"])
async def test_a_rejected_key_of_an_endpoint(desk: Desk, monkeypatch: pytest.MonkeyPatch, reader: str) -> None:
    """The next request may be accepted: a job makes it."""
    desk.says(Step(error=Error(status=401, message="bad key")))
    assert (await desk.run()).outcome == "failed"
    if reader == "a list, expired":
        monkeypatch.setattr("portico.limits.AGENT_FACT_SECONDS", 0.0)
    if reader == "a job":
        assert (await choose(desk.host, "alpha"))[0].id == "loop"
    missing = (await desk.host.described("loop")).missing or ""
    assert ("does not accept the key" in missing) is (reader == "a list, fresh")


@pytest.mark.parametrize("reader", ["a list, fresh", "a list, expired", "a check"])
async def test_a_rejected_key_of_copilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str) -> None:
    table = {"program": "true", "models": ["m"], "provider": {"base_url": "http://127.0.0.1:1/v1"}}
    (agent,) = copilot(AgentContext(tmp_path, {"copilot": table}))
    assert isinstance(agent, CopilotAgent)
    agent.key_refused = Problem.now("401 bad key")
    if reader == "a list, expired":
        monkeypatch.setattr("portico.limits.AGENT_FACT_SECONDS", 0.0)
    if reader == "a check":
        await agent.check()
    assert (await agent.describe()).missing == ("401 bad key" if reader == "a list, fresh" else None)
    await agent.close()


@pytest.mark.parametrize("age", ["fresh", "expired"])
async def test_an_endpoint_without_tools(desk: Desk, monkeypatch: pytest.MonkeyPatch, age: str) -> None:
    """A server that was updated gets its tools back without a restart of the host."""
    desk.settings('[agents.loop]\nretries = 0\nprotocol = "tools"\n')
    desk.says(Step(error=Error(status=400, message="this model does not support tools")))
    await desk.run()
    desk.says(ends("Here."))
    if age == "expired":
        monkeypatch.setattr("portico.limits.AGENT_FACT_SECONDS", 0.0)
    before = desk.server.total
    await desk.run()
    offered = ["tools" in each.body for each in list(desk.server.requests)[before:]]
    assert offered[0] is (age == "expired")


@pytest.mark.parametrize("noted", [True, False])
@pytest.mark.parametrize("several", [True, False], ids=["several folders", "one folder"])
async def test_an_agent_that_works_in_one_folder(
    open_host: HostOpener, tmp_path: Path, noted: bool, several: bool
) -> None:
    """It may have been updated since it ran, or may never have run."""
    FactsFile(tmp_path / "agents" / "acp" / "fake", AgentFacts).write(AgentFacts(folders=noted))
    (more := tmp_path / "more").mkdir()
    host = await open_host(fake_agent(tmp_path, env={"FAKE_CAPS": SEVERAL} if several else {}))
    if noted or several:
        assert await check_folders(host, "acp:fake", str(tmp_path), [str(more)]) == [str(more)]
    else:
        with pytest.raises(Conflict, match="works in one folder"):
            await check_folders(host, "acp:fake", str(tmp_path), [str(more)])

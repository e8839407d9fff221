"""An agent that never asks is found by a refused write, named in every client, and needs `approve` to start.

The attack: a person adds an agent (Kilo, a program derived from opencode) and relies on the approvals of the host. It
wrote a file with every request denied, and nothing showed that."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from portico.agents.acp.agent import AcpAgent
from portico.agents.acp.asking import asks
from portico.kernel.autonomy import Autonomy
from portico.kernel.commands import SCOPES
from portico.server.identity import new_token
from tests.agents.acp_agent import FAKE, fake_agent, said
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.standing import Standing, problem, standing
from tests.process import inside

FOUND = {"never": False, "after": False, "permission": True, "file": True, "": None}
"""How the fake agent writes, and what is found about it."""


@pytest.mark.parametrize("how", FOUND)
async def test_a_refused_write_tells_whether_an_agent_asks(tmp_path: Path, how: str) -> None:
    agent = fake_agent(tmp_path, env={"FAKE_ASKS": how})
    assert await agent.probe_asking() is FOUND[how]
    assert agent.never_asks is (FOUND[how] is False)
    assert agent.autonomy("", None) is (Autonomy.ASKS_NOBODY if FOUND[how] is False else Autonomy.ASKS)
    assert (await agent.describe()).label == ("does not ask" if FOUND[how] is False else "")
    await agent.close()


async def test_it_is_tested_once_for_each_version_and_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test uses the model. That it does not ask counts until a test finds otherwise."""
    never, starts = {"FAKE_ASKS": "never"}, list[AcpAgent]()

    async def counted(agent: AcpAgent) -> bool | None:
        starts.append(agent)
        return await asks(agent)

    monkeypatch.setattr("portico.agents.acp.asking.asks", counted)

    async def tested(env: dict[str, str], **how: bool) -> tuple[bool | None, int]:
        agent = fake_agent(tmp_path, env=env)
        starts.clear()
        try:
            return await agent.probe_asking(**how), len(starts)
        finally:
            await agent.close()

    assert await tested(never) == (False, 1)
    assert await tested(never) == (False, 0)
    assert fake_agent(tmp_path, env={"FAKE_ASKS": "permission"}).never_asks
    assert await tested({"FAKE_ASKS": ""}) == (False, 1), "what shows nothing changes nothing"
    assert await tested(never, again=True) == (False, 1)
    assert await tested({"FAKE_ASKS": "permission"}) == (True, 1)
    assert not fake_agent(tmp_path).never_asks


def verbs(home: Path, how: str) -> dict[str, str]:
    """What each verb prints about it, first `agents add`."""
    command = [sys.executable, "-S", "-E", str(FAKE)]
    more = {"PATH": "/usr/bin:/bin", "OLLAMA_HOST": "127.0.0.1:1"}
    done = inside(home, "agents", "add", "fake", "--env", f"FAKE_ASKS={how}", "--", *command, **more)
    found = {"add": done.stderr}
    (home / "agents" / "acp" / "fake" / "asks.json").unlink(missing_ok=True)
    found["doctor"] = next(line for line in inside(home, "doctor", **more).stdout.splitlines() if "acp:fake" in line)
    found["list"] = next(line for line in inside(home, "agents", "list", **more).stdout.splitlines() if "fake" in line)
    (home / "agents" / "acp" / "fake" / "asks.json").unlink(missing_ok=True)
    found["test"] = inside(home, "agents", "test", "fake", "--json", **more).stdout
    return found


def test_every_verb_names_an_agent_that_never_asks(tmp_path: Path) -> None:
    for how in ("never", "permission"):
        found = verbs(tmp_path / how, how)
        assert json.loads(found.pop("test"))["asks"] is (how == "permission")
        assert {name: "does not ask" in text for name, text in found.items()} == dict.fromkeys(found, how == "never")


# -- in the host -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def served(folder: Path, how: str) -> AsyncIterator[Standing]:
    command = json.dumps([sys.executable, "-S", "-E", str(FAKE)])
    (folder / "home").mkdir(mode=0o700)
    text = f'[agents.acp.fake]\ncommand = {command}\nenv = {{ FAKE_ASKS = "{how}" }}\n'
    (folder / "home" / "settings.toml").write_text(text)
    async with standing(folder, agents=("acp:fake", "scripted")) as here:
        agent = here.server.host.agents["acp:fake"]
        assert isinstance(agent, AcpAgent)
        other = fake_agent(here.home.path, env={"FAKE_ASKS": how})  # as another process finds it
        await other.probe_asking()
        await other.close()
        yield here


@pytest.mark.parametrize("how", ["never", "permission"])
async def test_such_an_agent_needs_approve_to_start(tmp_path: Path, how: str) -> None:
    """Through every door, also as the fallback of another. With `approve` it starts, and that is on record."""
    async with served(tmp_path, how) as here:
        start: list[dict[str, Any]] = [
            {"agent": "acp:fake"},
            {"agent": "scripted", "config": {"fallback": ["acp:fake"]}},
        ]
        async with here.client(new_token(here.home, "driver", ["read", "drive"])) as driver:
            for body in start:
                answer = await driver.post("/v1/sessions", json=body)
                if how == "permission":
                    assert answer.status_code == 201, answer.text
                else:
                    problem(answer, 403, "forbidden", "agent")
                    assert "acp:fake does not ask" in answer.text
            call = {"name": "start_session", "arguments": start[0]}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            assert ("does not ask" in (await driver.post("/mcp", json=body)).text) is (how == "never")
        url = here.url.replace("http", "ws") + f"/?tkn={new_token(here.home, 'editor', ['read', 'drive'])}"
        async with opened(WireClient(url, "driver", "0.9.0")) as editor:
            await editor.initialize()
            if how == "never":
                with pytest.raises(Exception, match="does not ask"):
                    await editor.create_session("acp:fake:/s1")
            else:
                await editor.create_session("acp:fake:/s1")
        async with here.client(new_token(here.home, "approver", ["read", "drive", "approve"])) as approver:
            assert (await approver.post("/v1/sessions", json=start[0])).status_code == 201
        audit = (await here.http.get("/v1/audit")).json()["audit"]
        found = [each["detail"]["settings"] for each in audit if each["action"] == "approval.loosened"]
        assert found == ([["the agent acp:fake does not ask"]] if how == "never" else [])


async def test_every_client_of_the_session_shows_it(tmp_path: Path) -> None:
    """In the conversation, which every protocol shows, and beside the agent's name."""
    words = "This agent does not ask"
    async with served(tmp_path, "never") as here:
        session = await here.start(agent="acp:fake")
        await here.say(session, "hello")
        state = (await here.server.host.get(session)).state
        assert said(state.turns[0], "notice").startswith(words)
        shown = {
            "rest": (await here.http.get(f"/v1/sessions/{session}")).text,
            "export": (await here.http.get(f"/v1/sessions/{session}/export")).text,
        }
        url = here.url.replace("http", "ws") + f"/?tkn={new_token(here.home, 'editor', list(SCOPES))}"
        async with opened(WireClient(url, "reader", "0.9.0")) as editor:
            await editor.initialize()
            named = json.dumps(await editor.subscribe("ahp-root://"))
            (listed,) = (await editor.request("listSessions", channel="ahp-root://"))["items"]
            opened_ = (await editor.subscribe(listed["resource"]))["snapshot"]["state"]
            shown["ahp"] = json.dumps(await editor.subscribe(opened_["chats"][0]["resource"]))
        assert {name: words in text for name, text in shown.items()} == dict.fromkeys(shown, True)
        assert "does not ask" in (await here.http.get("/v1/agents")).text
        assert "Fast (does not ask)" in (await here.http.get("/api/copilot/models")).text
        assert "does not ask" in named

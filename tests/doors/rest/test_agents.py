"""Agents and models that are connected while the host runs, and those that are known and not installed."""

import json
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico.agents.suggestions import not_installed
from portico.server.settings_edit import add_table
from portico.testing.model import ModelServer, Script
from tests.agents.acp_agent import FAKE
from tests.doors.standing import Standing, problem, standing

COMMAND = [sys.executable, "-S", "-E", str(FAKE)]


@pytest.fixture
async def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Standing]:
    """A host on a machine without agents and models."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    async with standing(tmp_path, agents=()) as found:
        yield found


async def ids(host: Standing, field: str = "agents") -> list[str]:
    return [each["id"] for each in (await host.http.get("/v1/agents")).json()[field]]


async def test_an_agent_that_is_added_or_installed_is_found_without_a_restart(
    bare: Standing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was offered from the next start on."""
    assert await ids(bare) == ["loop", "demo"]
    assert "acp:opencode" in await ids(bare, "known")
    add_table(bare.home.settings_path, ("agents", "acp", "mine"), {"command": COMMAND})
    program = tmp_path / "bin" / "opencode"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    found = await bare.http.post("/v1/agents/find", json={})
    assert sorted(found.json()["added"]) == ["acp:mine", "acp:opencode"]
    assert (await bare.http.post("/v1/agents/find", json={})).json() == {"added": []}
    assert "acp:opencode" not in await ids(bare, "known")
    assert (await bare.http.post("/v1/agents/acp:mine/check", json={})).json()["status"] == "ready"
    state = await bare.say(await bare.start(agent="acp:mine"), "hello")
    assert state["turns"][0]["outcome"] == "completed"


@pytest.mark.parametrize("address", ["", "models.example.org", "file:///etc/passwd", "http://", "ftp://x/v1"])
async def test_what_is_no_address_of_a_model_is_refused(bare: Standing, address: str) -> None:
    problem(await bare.http.post("/v1/agents/loop/model", json={"base_url": address}), 400, "bad_request", "base_url")
    assert not bare.home.settings_path.exists()


async def test_a_model_is_connected_with_an_address_and_a_key(bare: Standing) -> None:
    async with ModelServer(Script()) as models:
        body = {"base_url": models.url, "api_key": "secret-key-1"}
        checked = await bare.http.post("/v1/agents/loop/model", json=body)
        assert checked.json()["status"] == "ready", checked.text
        written = tomllib.loads(bare.home.settings_path.read_text())
        assert written == {"agents": {"loop": body}}
        assert bare.home.settings_path.stat().st_mode & 0o077 == 0
        shown = json.dumps((await bare.http.get("/v1/settings")).json())
        assert "secret-key-1" not in shown
        assert (await bare.http.post("/v1/agents/loop/model", json=body)).status_code == 200, "a further endpoint"
        problem(await bare.http.post("/v1/agents/loop/model", json=body), 409, "conflict")


@pytest.mark.parametrize("path", ["/v1/agents/find", "/v1/agents/loop/model"])
async def test_only_who_looks_after_the_host_connects(bare: Standing, path: str) -> None:
    token = (await bare.http.post("/v1/tokens", json={"name": "phone", "scopes": ["read", "drive"]})).json()["token"]
    async with bare.client(token) as phone:
        assert (await phone.post(path, json={"base_url": "http://127.0.0.1:1/v1"})).status_code == 403


def test_what_is_on_the_path_or_there_already_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "acp:qwen" in [each.id for each in not_installed([])]
    assert "acp:qwen" not in [each.id for each in not_installed(["acp:qwen"])]
    (tmp_path / "qwen").write_text("#!/bin/sh\n")
    (tmp_path / "qwen").chmod(0o755)
    assert "acp:qwen" not in [each.id for each in not_installed([])]

"""The Copilot agent without Copilot: settings, attachments, and what is said when it is not there."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from copilot import ModelInfo

from portico.agents.agent import AgentContext, Model
from portico.agents.copilot import copilot
from portico.agents.copilot.agent import CopilotAgent
from portico.agents.copilot.conversation import attachments
from portico.agents.copilot.option import read
from portico.agents.copilot.runtime import Runtime
from portico.agents.servers import mcp_servers
from portico.errors import AgentUnavailable, BadRequest
from portico.events import Json, Message

PROVIDER = {"base_url": "http://127.0.0.1:1/v1", "api_key_env": "MY_KEY", "headers": {"X": "y"}}


def test_it_is_offered_only_when_it_is_there_or_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(copilot(AgentContext(tmp_path, {}))) == []
    assert [agent.id for agent in copilot(AgentContext(tmp_path, {"copilot": {}}))] == ["copilot"]
    (tmp_path / "copilot").write_text("#!/bin/sh\n")
    (tmp_path / "copilot").chmod(0o755)
    assert [agent.id for agent in copilot(AgentContext(tmp_path, {}))] == ["copilot"]
    assert list(copilot(AgentContext(tmp_path, {"copilot": {"enabled": False}}))) == []


async def test_a_missing_program_is_told_with_what_to_do(tmp_path: Path) -> None:
    (agent,) = copilot(AgentContext(tmp_path, {"copilot": {"program": "no-such-copilot"}}))
    info = await agent.describe()
    assert info.missing == (
        "The program 'no-such-copilot' is not on the PATH. Install it: npm install -g @github/copilot"
    )


async def test_a_program_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    program = tmp_path / "copilot"
    program.write_text("#!/bin/sh\necho 'no license' >&2\nexit 4\n")
    program.chmod(0o755)
    (agent,) = copilot(AgentContext(tmp_path, {"copilot": {"program": str(program)}}))
    info = await agent.describe()
    await agent.close()
    assert info.missing is not None
    assert "no license" in info.missing


def test_a_provider_takes_its_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = read({"copilot": {"models": ["m"], "provider": PROVIDER}}).provider
    assert provider is not None
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(AgentUnavailable, match="MY_KEY"):
        provider.config()
    monkeypatch.setenv("MY_KEY", "secret")
    assert provider.config() == {
        "type": "openai",
        "base_url": "http://127.0.0.1:1/v1",
        "wire_api": "completions",
        "headers": {"X": "y"},
        "api_key": "secret",
    }
    wrong: Json
    for wrong in ({"provider": PROVIDER}, {"models": "m"}, {"modles": []}):
        with pytest.raises(BadRequest):
            read({"copilot": wrong})


def test_servers_of_tools_are_passed_on(tmp_path: Path) -> None:
    settings = {"copilot": {}, "mcp": {"one": {"command": ["one", "-x"]}, "two": {"url": "http://x"}}}
    (agent,) = copilot(AgentContext(tmp_path, settings))
    assert agent.mcp_servers() == {  # type: ignore[attr-defined]
        "one": {"type": "local", "command": "one", "args": ["-x"], "env": {}, "tools": ["*"]},
        "two": {"type": "http", "url": "http://x", "headers": {}, "tools": ["*"]},
    }
    with pytest.raises(BadRequest):
        mcp_servers({"mcp": {"both": {"command": ["x"], "url": "http://x"}}})


def test_attachments_in_the_words_of_the_sdk() -> None:
    message = Message(
        "look",
        [
            {"type": "file", "uri": "file:///a%20b/c.py"},
            {"type": "directory", "path": "/d"},
            {"data": "aGk=", "contentType": "image/png", "label": "picture"},
            {"type": "simple", "label": "nothing to show"},
        ],
    )
    assert attachments(message) == [
        {"type": "file", "path": "/a b/c.py", "displayName": "c.py"},
        {"type": "directory", "path": "/d", "displayName": "d"},
        {"type": "blob", "data": "aGk=", "mimeType": "image/png", "displayName": "picture"},
    ]


class Told:
    """A runtime of which somebody knows the answers."""

    def __init__(self, signed_in: bool) -> None:
        self.client = self
        self._signed_in = signed_in

    async def connect(self, process: None, token: str) -> "Told":
        return self

    async def ask(self, work: Any) -> Any:
        return await work

    async def get_auth_status(self) -> Any:
        return SimpleNamespace(isAuthenticated=self._signed_in, statusMessage="gone")

    async def list_models(self) -> list[Any]:
        limits = {"max_context_window_tokens": 64000}
        base = {"name": "GPT", "capabilities": {"supports": {"vision": True}, "limits": limits}}
        return [
            ModelInfo.from_dict({**base, "id": "a", "billing": {"multiplier": 0.33}}),
            ModelInfo.from_dict({**base, "id": "b", "supportedReasoningEfforts": ["low", "high"]}),
            ModelInfo.from_dict({**base, "id": "c", "policy": {"state": "disabled", "terms": ""}}),
        ]


async def test_each_new_process_tells_its_models_and_who_is_signed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were asked for once, at the first sign-in, and then known for ever."""
    (tmp_path / "agents/copilot").mkdir(parents=True)
    (tmp_path / "agents/copilot/facts.json").write_text('{"signed_in": true}')
    (agent,) = copilot(AgentContext(tmp_path, {"copilot": {"program": sys.executable}}))
    assert isinstance(agent, CopilotAgent)
    assert (await agent.describe()).models == []
    for signed_in in (True, False):
        monkeypatch.setattr(Runtime, "connect", Told(signed_in).connect)
        await agent._connect_own(None)  # type: ignore[arg-type]
        if signed_in:
            info = await agent.describe()
            assert info.models == [
                Model("a", "GPT", 0.33, 64000, True),
                Model("b", "GPT", 1.0, 64000, True, {"reasoningEfforts": ["low", "high"]}),
            ]
            assert info.missing is None
    assert agent._facts.signed_in is False

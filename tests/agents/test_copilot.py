"""The Copilot agent without Copilot: settings, attachments, and what is said when it is not there."""

from pathlib import Path

import pytest

from portico.agents.agent import AgentContext
from portico.agents.copilot import copilot
from portico.agents.copilot.conversation import attachments
from portico.agents.copilot.option import read
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

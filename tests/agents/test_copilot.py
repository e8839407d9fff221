"""The Copilot agent without Copilot: settings, attachments, and what is said when it is not there."""

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from copilot import ModelInfo
from copilot.rpc import PermissionDecisionApproveOnce, PermissionDecisionReject, PermissionDecisionUserNotAvailable
from copilot.session_events import SessionEvent
from msgspec.structs import replace

from portico.agents.agent import AgentContext, Model, Opening
from portico.agents.copilot import agent as copilot_agent
from portico.agents.copilot import copilot
from portico.agents.copilot.agent import CopilotAgent
from portico.agents.copilot.conversation import attachments
from portico.agents.copilot.option import read
from portico.agents.copilot.runtime import Runtime
from portico.agents.servers import mcp_servers
from portico.agents.supervisor import Process
from portico.kernel.errors import AgentError, AgentUnavailable, BadRequest, SignInRequired, Unauthenticated
from portico.kernel.events import Json, Message
from portico.testing.fixtures import HostOpener
from tests.agents.acp_agent import waiting_approval
from tests.workspace.living import environ_of

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
    assert agent.mcp_servers("session-1") == {  # type: ignore[attr-defined]
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
            first, second = info.models
            assert first == Model("a", "GPT", 0.33, 64000, True)
            assert second.config["properties"]["reasoningEffort"]["enum"] == ["low", "high"]
            assert replace(second, config={}) == Model(
                "b", "GPT", 1.0, 64000, True, {"reasoningEfforts": ["low", "high"]}
            )
            assert info.missing is None
    assert agent._facts.signed_in is False


# -- whose login, and who is asked -----------------------------------------------------------------------------

IDLE = SessionEvent.from_dict(
    {"type": "session.idle", "id": str(UUID(int=1)), "timestamp": "2026-01-01T00:00:00Z", "data": {}}
)


class Asking:
    """A session in which every message asks for one permission."""

    session_id = "s"

    def __init__(self, permit: Any, request: Any) -> None:
        self.permit = permit
        self.request = request
        self.answers: list[Any] = []

    def on(self, hear: Any) -> None:
        self._hear = hear

    async def send(self, text: str, attachments: Any = None) -> None:
        self._asking = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        self.answers.append(await self.permit(self.request, {}))
        self._hear(IDLE)

    async def disconnect(self) -> None:
        pass


class Connected(Told):
    """And a process, of which a supervisor takes care."""

    resumes = True
    request: Any = None

    def __init__(self, process: Process) -> None:
        super().__init__("COPILOT_GITHUB_TOKEN=good" in environ_of(process.child.pid))
        self.process = process
        self.running = 0
        self.doomed = False
        self.sessions: list[Asking] = []

    @property
    def usable(self) -> bool:
        return not self.doomed

    async def create_session(self, **wanted: Any) -> Asking:
        self.sessions.append(Asking(wanted["on_permission_request"], self.request))
        return self.sessions[-1]

    async def close(self) -> None:
        pass


@pytest.fixture
def runtimes(monkeypatch: pytest.MonkeyPatch) -> list[Connected]:
    """Those that were started, in order."""
    made: list[Connected] = []

    async def connect(process: Process, token: str) -> Connected:
        made.append(Connected(process))
        return made[-1]

    monkeypatch.setattr(Runtime, "connect", connect)
    return made


def program(folder: Path, script: str = "exec cat") -> str:
    path = folder / "copilot"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def agent_of(home: Path, **settings: Any) -> CopilotAgent:
    (agent,) = copilot(AgentContext(home, {"copilot": {"program": program(home), **settings}}))
    assert isinstance(agent, CopilotAgent)
    return agent


def kept(folder: Path, secret: bytes) -> list[Path]:
    """The files in which it stands."""
    return [path for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


def opening(client: str, cwd: Path) -> Opening:
    return Opening("session-1", str(cwd), "", {}, [], lambda vendor: None, client=client)


async def test_a_token_that_a_client_lends_works_for_that_client_alone(
    tmp_path: Path, runtimes: list[Connected], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copilot_agent, "_LENT", 1)
    agent = agent_of(tmp_path)
    with pytest.raises(Unauthenticated):
        await agent.authenticate("", "bad-token", None, "eve")
    await agent.authenticate("", "good-token", None, "ada")
    assert kept(tmp_path, b"-token") == []
    assert [agent.sign_in_state("", client) for client in ("ada", "bob", "eve")] == ["given", "required", "required"]
    await agent.open(opening("ada", tmp_path))
    assert [len(each.sessions) for each in runtimes] == [0, 1]
    with pytest.raises(SignInRequired):
        await agent.open(opening("bob", tmp_path))
    await agent.authenticate("", "good-token-2", None, "bob")  # there is room for one: the first has to give it again
    assert [agent.sign_in_state("", client) for client in ("ada", "bob")] == ["required", "given"]
    await agent.close()


async def test_it_gets_nobodys_login_and_with_a_provider_it_looks_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "COPILOT_GITHUB_TOKEN", "OPENAI_API_KEY", "PORTICO_TOKEN", "MY_KEY"):
        monkeypatch.setenv(name, "canary")
    script = f"env > {tmp_path}/env; echo $@ > {tmp_path}/arguments; exit 4"
    for settings, looks in (({}, True), ({"models": ["m"], "provider": PROVIDER}, False)):
        agent = agent_of(tmp_path, **settings)
        program(tmp_path, script)
        with pytest.raises(AgentError):
            await agent.open(opening("ada", tmp_path))
        assert "canary" not in (tmp_path / "env").read_text()
        assert ("--no-auto-login" not in (tmp_path / "arguments").read_text()) is looks
        await agent.close()


@pytest.mark.parametrize("allow", [True, False])
async def test_a_tool_that_nobody_knows_asks_and_a_no_is_a_no(
    open_host: HostOpener, tmp_path: Path, runtimes: list[Connected], monkeypatch: pytest.MonkeyPatch, allow: bool
) -> None:
    (tmp_path / "a.txt").touch()
    request = SimpleNamespace(kind="memory", tool_call_id="c", path=str(tmp_path / "a.txt"))
    monkeypatch.setattr(Connected, "request", request)
    host = await open_host(agent_of(tmp_path, models=["m"], provider={"base_url": "http://127.0.0.1:1/v1"}))
    session = await host.start(by="test", cwd=str(tmp_path))
    turn = await session.send(Message("go"), by="test")
    state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
    assert state.active is not None, "nobody was asked"
    await session.approvals.answer(await waiting_approval(session), allow=allow, by="ada")
    await session.wait(turn)
    [asked] = runtimes[0].sessions
    await asked.send("and once more, when nothing runs any more")
    await asked._asking
    expected = PermissionDecisionApproveOnce if allow else PermissionDecisionReject
    assert [type(each) for each in asked.answers] == [expected, PermissionDecisionUserNotAvailable]

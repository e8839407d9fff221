"""A check starts an ACP program, speaks the first handshake, and says in one sentence what is wrong and what to do."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from portico.agents import supervisor
from portico.agents.acp import check
from portico.agents.acp.check import satisfies
from portico.agents.acp.program import PRESETS, Program
from portico.kernel.agent import Check
from portico.kernel.events import Message
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.state import TextPart
from portico.server.compose import build_host
from tests.agents.acp_agent import FAKE, fake_agent, said


async def checked(home: Path, settings: dict[str, Any] | None = None, **env: str) -> Check:
    agent = fake_agent(home, settings=settings, env=env)
    try:
        return await agent.check()
    finally:
        await agent.close()


async def test_one_that_is_ready_tells_its_version_and_models(tmp_path: Path) -> None:
    assert await checked(tmp_path) == Check("acp:fake", "ready", "version 1.2, 2 models")


async def test_one_that_nobody_is_signed_in_to(tmp_path: Path) -> None:
    found = await checked(tmp_path, FAKE_LOCKED="1")
    assert found.status == "not_signed_in"
    assert "Sign in with its own program. Or set 'auth' in [agents.acp.fake] of the settings to" in found.detail
    assert (await checked(tmp_path, {"auth": "key"}, FAKE_LOCKED="1")).status == "ready"


@pytest.mark.parametrize(
    ("says", "locked", "status"),
    [
        ("none", True, "not_signed_in"),
        ("none", False, "ready"),  # a token of its environment, of which it does not know
        ("api_key", True, "ready"),  # nothing is asked of it
    ],
)
async def test_one_that_opens_a_session_for_nobody(tmp_path: Path, says: str, locked: bool, status: str) -> None:
    """claude-agent-acp 0.99: signed out, it says so in a notification, opens sessions and refuses the first prompt."""
    env = {"FAKE_AUTH_STATUS": says, **({"FAKE_LOCKED_PROMPT": "1"} if locked else {})}
    found = await checked(tmp_path, {"login": "claude /login"}, **env)
    assert (found.status, "run `claude /login`" in found.detail) == (status, status != "ready")


async def test_lists_of_other_processes_know_what_a_check_has_found(tmp_path: Path) -> None:
    """After a doctor that called it not signed in, `agents list` marked it as the default."""
    await checked(tmp_path, FAKE_LOCKED="1")
    missing = (await fake_agent(tmp_path).describe()).missing
    assert (missing or "").startswith("fake is not signed in."), missing
    await checked(tmp_path)
    assert (await fake_agent(tmp_path).describe()).missing is None


async def test_one_that_nobody_has_configured(tmp_path: Path) -> None:
    """goose 1.52: its own words were shown, with the code of an internal error, and nothing about what to do."""
    words = "Internal error: Failed to resolve provider: Configuration value not found: GOOSE_PROVIDER"
    found = await checked(tmp_path, {"login": "goose configure"}, FAKE_REFUSES=words)
    assert (found.status, "run `goose configure`" in found.detail) == ("not_signed_in", True)


@pytest.mark.parametrize(
    ("login", "on_path", "typed"),
    [
        ("codex login", [], "{home}/codex login"),
        ("codex login", ["codex"], "codex login"),
        ("codex", [], "{home}/codex"),
        ("claude /login", [], "claude /login"),  # it did not come with the agent
    ],
)
def test_the_command_to_sign_in_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: str, on_path: list[str], typed: str
) -> None:
    """`portico agents add` installs below the home folder: "Run: codex login" named a program that no shell finds."""
    own, path = tmp_path / "own", tmp_path / "path"
    for name in ("own/codex-acp", "own/codex", *(f"path/{name}" for name in on_path)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(path))
    assert Program(command=[str(own / "codex-acp")], login=login).sign_in() == typed.format(home=own)


def test_every_well_known_agent_can_be_installed_by_its_name_or_names_its_page() -> None:
    others = {name: each.install for name, each in PRESETS.items() if not each.install.startswith("npm install -g ")}
    assert others == {
        "cursor-agent": "see https://cursor.com/docs/cli",
        "vibe": "pip install mistral-vibe",
    }


def test_every_preset_names_the_command_that_signs_in() -> None:
    assert [name for name, each in PRESETS.items() if not each.login] == []


async def test_one_that_speaks_another_version(tmp_path: Path) -> None:
    found = await checked(tmp_path, FAKE_VERSION="2")
    assert found.status == "wrong_version"
    assert "speaks version 2" in found.detail


async def test_one_that_is_not_installed(tmp_path: Path) -> None:
    found = await checked(tmp_path, {"command": ["no-such-agent"], "install": "npm install -g it"})
    assert (found.status, "npm install -g it" in found.detail) == ("missing", True)


@pytest.mark.parametrize(
    ("name", "command", "words"),
    [
        ("ends at once", ["false"], "exit code 1"),
        ("prints its usage", ["sh", "-c", "echo 'usage: tool FILE' >&2; exit 2"], "usage: tool FILE"),
        ("prints something else", ["sh", "-c", "echo hello"], "exit code 0"),
        ("says everything again", ["cat"], "no such session"),
        ("speaks another JSON-RPC", [sys.executable, "-c", "REFUSE"], "Method not found"),
    ],
)
async def test_what_is_no_acp_program(tmp_path: Path, name: str, command: list[str], words: str) -> None:
    """Each was "ready" in the doctor: the program was on the PATH."""
    refuse = (
        "import json,sys\n"
        "for line in sys.stdin:\n"
        "    error = {'code': -32601, 'message': 'Method not found'}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': json.loads(line)['id'], 'error': error}), flush=True)\n"
    )
    found = await checked(tmp_path, {"command": [word.replace("REFUSE", refuse) for word in command]})
    assert found.status == "not_acp"
    assert words in found.detail
    assert "a program that speaks the Agent Client Protocol" in found.detail


async def test_one_that_has_not_answered_yet_is_slow(tmp_path: Path) -> None:
    """A program that unpacks itself at its first start was reported as one that does not speak ACP."""
    found = await checked(tmp_path, {"command": ["sleep", "60"], "start_timeout": 0.5})
    assert found.status == "slow"
    assert "did not answer within 0.5 seconds of its start. It is slow or" in found.detail
    assert "`start_timeout`" in found.detail
    assert "is `sleep 60` a program that speaks the Agent Client Protocol?" in found.detail


async def test_a_slow_start_is_ready_in_the_end_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "SLOW_SECONDS", 0.0)
    found = await checked(tmp_path)
    assert (found.status, found.detail.startswith("version 1.2, 2 models; its start took ")) == ("ready", True)


async def test_the_first_turn_reports_a_slow_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "SLOW_SECONDS", 0.0)
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\nsleep 0.3\nexec {sys.executable} -SE {FAKE}\n")
    slow.chmod(0o755)
    log = await SqliteLog.open(tmp_path / "log.db")
    host = await build_host(log, [fake_agent(tmp_path, settings={"command": [str(slow)], "name": "Slow"})])
    session = await host.start(by="test", agent="acp:fake", cwd=str(tmp_path))
    turn = await session.wait(await session.send(Message("hello"), by="test"))
    assert (turn.outcome, said(turn)) == ("completed", "You said: hello")
    notice = "Slow is still starting. The first start can take up to 60 seconds."
    parts = [part for part in session.state.turns[-1].parts if isinstance(part, TextPart) and part.kind == "notice"]
    assert [part.text for part in parts] == [notice]
    await host.close()
    await log.close()


async def test_the_status_of_claude_can_arrive_after_the_session(tmp_path: Path) -> None:
    """Claude's adapter reported that no one is signed in after it had opened the session: the doctor reported ready,
    and the first turn failed."""
    script = tmp_path / "claude-agent-acp"
    script.write_text(f"#!{sys.executable} -SE\n{FAKE.read_text()}")
    script.chmod(0o755)
    env = {"FAKE_AUTH_STATUS": "none", "FAKE_AUTH_LATE": "0.3", "FAKE_LOCKED_PROMPT": "1"}
    found = await checked(tmp_path, {"command": [str(script)], "login": "claude /login"}, **env)
    assert (found.status, "run `claude /login`" in found.detail) == ("not_signed_in", True)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
async def test_a_program_that_wants_another_node(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "agent"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "agent", "engines": {"node": ">=99"}}))
    script = package / "cli.js"
    script.write_text("#!/usr/bin/env node\nthrow new SyntaxError('new syntax')\n")
    script.chmod(0o755)
    (tmp_path / "agent").symlink_to(script)
    found = await checked(tmp_path, {"command": [str(tmp_path / "agent")]})
    assert found.status == "wrong_node"
    assert "It wants Node >=99, and this is Node " in found.detail


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("20.20.2", ">=20", True),
        ("20.20.2", ">=20.19", True),
        ("20.20.2", ">=22", False),
        ("20.20.2", ">= 20.21.0", False),
        ("20.20.2", "^20.19.0 || >=22.12.0", True),
        ("21.0.0", "^20.19.0 || >=22.12.0", False),
        ("22.12.0", "^20.19.0 || >=22.12.0", True),
        ("20.20.2", ">=18 <20", False),
        ("20.20.2", "~20.20", True),
        ("20.20.2", "~20.19.1", False),
        ("20.20.2", "20.x", True),
        ("20.20.2", "22", False),
        ("20.20.2", ">20", False),
        ("20.20.2", "<=20", True),
        ("20.20.2", "*", True),
        ("20.20.2", "lts/*", True),
    ],
)
def test_ranges_of_versions_as_package_json_writes_them(version: str, wanted: str, fits: bool) -> None:
    assert satisfies(version, wanted) is fits

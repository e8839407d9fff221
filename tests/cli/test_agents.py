"""`portico agents`: list, add, test and choose."""

import asyncio
import json
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.agents.agent import AgentContext
from portico.agents.loop import LoopAgent
from portico.cli.matrix import CHECKS, MatrixRow, markdown
from portico.cli.native_checks import NATIVE
from portico.cli.trial import try_agent
from portico.testing.model import Error, ModelRule, ModelServer, Script, Step
from tests.agents.acp_agent import FAKE
from tests.agents.loop.conftest import acts, ends
from tests.process import HostProcess, inside, portico

COMMAND = [sys.executable, "-S", "-E", str(FAKE)]


def writes(word: str) -> Step:
    return acts({"tool": "createFile", "path": "portico-test.txt", "content": word})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without agents and models."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path / "home"


def listed(home: Path, *args: str) -> Any:
    done = inside(home, "agents", "list", "--json", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_without_a_verb_it_lists(home: Path) -> None:
    """It printed its help and failed."""
    alone, asked = inside(home, "agents"), inside(home, "agents", "list")
    assert (alone.returncode, alone.stdout) == (0, asked.stdout)
    assert "loop" in alone.stdout


def test_a_program_of_the_users_is_started_once_and_written_down(home: Path) -> None:
    done = inside(home, "agents", "add", "mine", "--env", "A=1", "--pass-env", "KEY", "--", *COMMAND)
    assert done.returncode == 0, done.stderr
    assert "acp:mine: version 1.2, 2 models" in done.stderr
    table = tomllib.loads((home / "settings.toml").read_text())["agents"]["acp"]["mine"]
    assert table == {"command": COMMAND, "env": {"A": "1"}, "pass_env": ["KEY"]}
    found = listed(home, "--check")
    assert [each["id"] for each in found["agents"]] == ["acp:mine", "loop", "demo"]
    assert found["default"] == "acp:mine"
    assert {each["agent"]: each["status"] for each in found["checks"]} == {
        "acp:mine": "ready",
        "loop": "missing",
        "demo": "ready",
    }
    again = inside(home, "agents", "add", "mine", "--", *COMMAND)
    assert (again.returncode, "already" in again.stderr) == (75, True)


def test_what_is_no_agent_is_not_added(home: Path) -> None:
    done = inside(home, "agents", "add", "mine", "--", "false")
    assert done.returncode == 64
    assert "Nothing was written" in done.stderr
    assert not (home / "settings.toml").exists()
    done = inside(home, "agents", "add", "mine", "--unchecked", "--json", "--", "false")
    assert json.loads(done.stdout)["agent"] == "acp:mine"
    assert listed(home, "--check")["checks"][0]["status"] == "not_acp"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nonsense"], "none of this name. Give its command: portico agents add nonsense -- COMMAND\n"),
        (["gose"], "Did you mean 'goose'?"),
        (["mine", "--env", "novalue", "--", "x"], "NAME=VALUE"),
    ],
)
def test_wrong_words(home: Path, args: list[str], words: str) -> None:
    registry = home.with_name("registry.json")
    registry.write_text('{"agents": []}')
    done = inside(home, "agents", "add", *args, PORTICO_ACP_REGISTRY=str(registry))
    assert (done.returncode, words in done.stderr) == (64, True), done.stderr


def test_the_known_ones_tell_how_they_are_installed(home: Path) -> None:
    done = inside(home, "agents", "add")
    assert "npm install -g opencode-ai" in done.stdout
    assert "Install it: npm install -g opencode-ai" in inside(home, "agents", "add", "opencode").stdout
    assert json.loads(inside(home, "agents", "add", "opencode", "--json").stdout)["installed"] is False
    assert "opencode" in json.loads(inside(home, "agents", "add", "--json").stdout)


def test_the_default_is_chosen_shown_and_forgotten(home: Path) -> None:
    assert inside(home, "agents", "default").stdout == "demo\n"
    inside(home, "agents", "add", "mine", "--unchecked", "--", *COMMAND)
    assert inside(home, "agents", "default").stdout == "acp:mine\n"
    assert inside(home, "agents", "default", "loop").stdout == "loop\n"
    assert listed(home)["default"] == "loop"
    assert inside(home, "agents", "default", "mine").stdout == "acp:mine\n"
    missing = inside(home, "agents", "default", "nosuch")
    assert (missing.returncode, "There are: acp:mine, loop, demo" in missing.stderr) == (66, True)
    assert json.loads(inside(home, "agents", "default", "--clear", "--json").stdout) == {"default": "acp:mine"}
    assert "default_agent" not in (home / "settings.toml").read_text()
    assert inside(home, "agents", "default", "loop", "--clear").returncode == 64


def test_a_running_host_is_asked_and_takes_the_default_over(home: Path) -> None:
    with HostProcess(home) as host:
        assert listed(home)["default"] == "scripted"
        inside(home, "agents", "default", "demo")
        host.wait_for_log("settings changed: default_agent")
        found = listed(home, "--check")
        assert found["default"] == "demo"
        assert [each["status"] for each in found["checks"]] == ["ready", "ready"]
        assert inside(home, "send", "hello").returncode == 0
        assert json.loads(inside(home, "sessions", "show", "session-1", "--json").stdout)["agent"] == "demo"


def test_the_list_for_people(home: Path) -> None:
    lines = inside(home, "agents", "list").stdout.splitlines()
    assert lines[0].startswith("  loop\tnot ready\tNo model was found.")
    assert lines[1].startswith("* demo\tdemo\t")


WORD = "word-00ff00ff"


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([writes(WORD), ends()], ""),
        ([writes("another"), ends()], "not the word"),
        ([ends()], "called no tool"),
        ([acts({"tool": "listFiles"}), ends()], "did not write the file"),
        ([Step(error=Error(status=401, message="wrong key"))], "wrong key"),
    ],
)
async def test_a_turn_with_a_tool_call(
    home: Path, monkeypatch: pytest.MonkeyPatch, steps: list[Step], problem: str
) -> None:
    monkeypatch.setattr("portico.cli.trial.secrets.token_hex", lambda _: "00ff00ff")
    async with ModelServer(Script(rules=[ModelRule(steps=steps)], models=["alpha"])) as server:
        environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        found = await try_agent(LoopAgent(AgentContext(home, {}), environ))
    assert (found.ok, found.agent) == (not problem, "loop"), found
    assert problem in found.problem


async def test_everything_that_an_agent_can_do_is_a_table(home: Path) -> None:
    """Also for an agent that could not be tried; the guide's table is made of the same rows."""
    inside(home, "agents", "add", "gone", "--unchecked", "--", "no-such-program")
    async with ModelServer() as server:
        environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        command = partial(portico, home, "agents", "test", "--all", "--scripted", "--json", timeout=120, **environ)
        done = await asyncio.to_thread(command)
    assert (done.returncode, "Trying loop (2 of 2) ..." in done.stderr) == (0, True), done.stderr
    gone, loop = msgspec.json.decode(done.stdout, type=list[MatrixRow])
    assert (gone.agent, "'no-such-program'" in gone.problem) == ("acp:gone", True)
    wanted = {**dict.fromkeys(CHECKS, "yes"), **dict.fromkeys(NATIVE, "unknown")}
    assert {name: cell.answer for name, cell in loop.checks.items()} == wanted, loop
    marks = ["yes"] * (len(CHECKS) - len(NATIVE)) + ["–"] * len(NATIVE)
    assert markdown([loop]).splitlines()[2] == f"| `loop` | built in | {' | '.join(marks)} |"


def test_an_agent_that_is_not_ready_or_not_there_is_not_tested(home: Path) -> None:
    demo = inside(home, "agents", "test", "demo")
    assert (demo.returncode, "plays a script" in demo.stderr) == (64, True), "it was told not to work"
    done = inside(home, "agents", "test", "loop")
    assert (done.returncode, "loop does not work: No model was found" in done.stdout) == (1, True)
    gone = inside(home, "agents", "test", "goose")
    assert (gone.returncode, "portico agents add" in gone.stderr) == (66, True)


def test_known_agents_that_are_not_installed_are_listed_with_the_command_that_adds_them(home: Path) -> None:
    """A bare machine showed `loop` and `demo`, and did not mention the others."""
    found = listed(home)
    assert {"id": "acp:opencode", "name": "opencode", "add": "portico agents add opencode"}.items() <= next(
        each for each in found["known"] if each["id"] == "acp:opencode"
    ).items()
    for verb in (("agents", "list"), ("doctor",)):
        text = inside(home, *verb).stdout
        for name in ("claude", "codex", "gemini", "opencode"):
            assert f"portico agents add {name}" in text, verb

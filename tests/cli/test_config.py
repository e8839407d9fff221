"""`portico config` and `portico doctor`."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import httpx
import msgspec
import pytest

from portico.agents.agent import AgentInfo, Model, Resource
from portico.cli.doctor import agent_finding, settings_finding
from portico.cli.finding import Finding
from portico.features.readiness.checks import described
from portico.kernel.log.sqlite.database import Batch, Database
from portico.server.home import Home
from portico.server.identity import effective_tokens
from tests.agents.acp_agent import FAKE
from tests.cli.terminal import TerminalCommand
from tests.process import HostProcess, inside, portico

PORTICO = Path(sys.executable).with_name("portico")


def test_config_shows_every_value_and_where_it_came_from(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    file = home / "settings.toml"
    file.write_text("[agent]\nmax_steps = 3\n")
    lines = portico(home, "config", PORTICO_SERVER_PORT="9").stdout.splitlines()
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in lines}
    assert rows["agent.max_steps"] == ["3", str(file)]
    assert rows["server.port"] == ["9", "env PORTICO_SERVER_PORT"]
    assert rows["server.host"] == ["'127.0.0.1'", "default"]
    one = json.loads(inside(home, "config", "agent.max_steps", "--json").stdout)
    assert one["agent.max_steps"]["value"] == 3
    assert one["agent.max_steps"]["default"] == 200
    assert inside(home, "config", "--path").stdout.strip() == str(file)
    with TerminalCommand(home, "config", "agent.max_steps") as command:
        assert "PORTICO_AGENT_MAX_STEPS" in command.finish()[1]


def test_a_wrong_key_names_the_nearest(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    asked = inside(home, "config", "server.prot")
    assert (asked.returncode, "'server.port'" in asked.stderr) == (66, True)
    (home / "settings.toml").write_text("[server]\nprot = 1\n")
    broken = inside(home, "config")
    assert (broken.returncode, "Did you mean 'server.port'?" in broken.stderr) == (64, True)
    refused = inside(home, "serve", "0")
    assert (refused.returncode, "Did you mean 'server.port'?" in refused.stderr) == (64, True)
    (home / "settings.toml").write_text("[agents.lop]\nkey = 1\n")
    unread = inside(home, "serve", "0")
    assert (unread.returncode, "Did you mean [agents.loop]?" in unread.stderr) == (64, True)
    findings = inside(home, "doctor", "--json")
    assert findings.returncode == 1
    assert {each["what"]: each["ok"] for each in json.loads(findings.stdout)}["settings"] is False


def test_doctor_is_well_with_and_without_a_host(home: Path, tmp_path: Path) -> None:
    running = portico(home, "doctor", "--json")
    assert running.returncode == 0
    found = {each["what"]: each["detail"] for each in json.loads(running.stdout)}
    assert "http://127.0.0.1" in found["host"]
    assert "demo" in found["agent demo"]
    asked = {name for name in found if name.startswith("agent ")}
    assert asked == {"agent demo", "agent scripted"}, "the host's own agents, not those that this shell would find"
    alone = inside(tmp_path / "home", "doctor")
    assert alone.returncode == 0
    assert "not running; start it with: portico serve" in alone.stdout


def test_the_line_that_doctor_prints_gives_a_model_no_more_than_read_and_drive(home: Path, tmp_path: Path) -> None:
    """The line is pasted into a shell twice; a program in the place of `claude` keeps what it is given."""
    for command, does in (("claude", f'printf "%s\\n" "$@" > {tmp_path}/given'), ("portico", f'exec {PORTICO} "$@"')):
        (program := tmp_path / command).write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    for name in ("mcp", "mcp-2"):
        found = {each["what"]: each["detail"] for each in json.loads(portico(home, "doctor", "--json").stdout)}
        subprocess.run(
            ["sh", "-c", found["mcp"]], check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
        )
        *_, url, _, header = (tmp_path / "given").read_text().splitlines()
        token = next(each for each in effective_tokens(Home(home)) if each.name == name)
        assert (token.scopes, token.tools) == (["read", "drive"], [])
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = httpx.post(url, json=asked, headers=dict([header.split(": ")]), trust_env=False).json()
        names = {each["name"] for each in answer["result"]["tools"]}
        assert {"send_message", "read_session"} <= names
        assert not names & {"run_command", "answer_approval", "delete_file", "revoke_token", "run_job"}


def test_doctor_asks_the_database_of_several_hosts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text('[log]\nurl = "postgresql://portico:secret@127.0.0.1:1/portico"\n')
    found = inside(home, "doctor", "--json")
    log = {each["what"]: each for each in json.loads(found.stdout)}["log"]
    assert (found.returncode, log["ok"], "cannot be reached" in log["detail"], "secret" in found.stdout) == (
        1,
        False,
        True,
        False,
    )


def test_doctor_names_a_setting_that_leads_nowhere(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.settings_path.write_text(f'workspaces = ["{tmp_path}"]\n[agent]\nallowed_roots = ["srcc"]\n')
    words = f"agent.allowed_roots: no folder 'srcc' in {tmp_path}: correct it, or make the folder."
    assert settings_finding(home) == Finding("settings", False, words)
    (tmp_path / "srcc").mkdir()
    assert settings_finding(home) == Finding("settings", True, str(home.settings_path))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["settings.toml", "shared.toml", "automations.toml", "tokens.json"], ""),
        (["config.toml"], "config.toml in HOME is not read: put the settings into settings.toml."),
        (["settings.toml", "settings.yaml"], "settings.yaml in HOME is not read: put the settings into settings.toml."),
        (["portico.json", "config.yml"], "config.yml and portico.json in HOME are not read: put the settings into"),
    ],
)
def test_settings_in_a_file_of_another_name_are_reported(tmp_path: Path, names: list[str], words: str) -> None:
    """Bug: `config.toml` was ignored without a word."""
    home = Home(tmp_path / "home")
    home.make()
    (home.path / "config.json").mkdir()
    for name in names:
        (home.path / name).write_text("")
    expected = words.replace("HOME", str(home.path))
    found = settings_finding(home)
    assert (found.ok, expected in found.detail) == (not words, True)
    (home.path / "settings.toml").write_text("[server]\nport = 0\n")
    with HostProcess(home.path) as host:
        host.wait_for_log("Stop with Ctrl-C")
    assert [line for line in host.log().splitlines() if line.startswith("WARNING: ") and "not read" in line] == [
        f"WARNING: {line}" for line in [home.misnamed_settings()] if line
    ]
    assert home.misnamed_settings().startswith(expected)


def test_doctor_says_who_is_signed_in() -> None:
    github = Resource("https://api.github.com", "GitHub Copilot", state="given")
    known = AgentInfo("copilot", "Copilot", models=[Model("a", "A")], resources=[github])
    words = "1 model, signed in to GitHub Copilot"
    assert agent_finding(known, described(known)) == Finding("agent copilot", True, words, "ready")
    asked = msgspec.structs.replace(github, state="required")
    unknown = AgentInfo("copilot", "Copilot", missing="Run: copilot login", resources=[asked])
    finding = agent_finding(unknown, described(unknown))
    assert finding == Finding("agent copilot", False, "Run: copilot login", "not_signed_in")


def test_doctor_starts_each_agent(tmp_path: Path) -> None:
    """It called every program on the PATH ready."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "opencode").write_text("#!/bin/sh\necho 'unknown command acp' >&2\nexit 2\n")
    fake = f"#!/bin/sh\nexec {sys.executable} -S -E {FAKE}\n"
    for name, text in (("qwen", fake), ("goose", fake.replace("exec", "FAKE_LOCKED=1 exec"))):
        (programs / name).write_text(text)
    for path in programs.iterdir():
        path.chmod(0o755)
    done = inside(tmp_path / "home", "doctor", PATH=f"{programs}:/usr/bin:/bin")
    lines = [line for line in done.stdout.splitlines() if "agent acp:" in line]
    assert done.returncode == 0
    assert lines[0].startswith("MISS  agent acp:goose (not signed in): goose is not signed in.")
    assert lines[1].startswith("MISS  agent acp:opencode (not acp): ")
    assert "unknown command acp" in lines[1]
    assert lines[2] == "ok    agent acp:qwen (ready): version 1.2, 2 models"


def _findings(home: Path) -> tuple[int, dict[str, tuple[bool, str]]]:
    done = inside(home, "doctor", "--json")
    return done.returncode, {each["what"]: (each["ok"], each["detail"]) for each in json.loads(done.stdout)}


def _a_log(home: Path) -> Path:
    home.mkdir()
    path = home / "log.db"
    database = Database.open(path, full=False)
    rows = [(seq, "host", seq, 0, None, b"{}" + b" " * 1000) for seq in range(1, 101)]
    database.write(Batch(rows, {"host": 100}, []))
    database.close()
    return path


def test_doctor_knows_a_whole_log(tmp_path: Path) -> None:
    path = _a_log(tmp_path / "home")
    code, found = _findings(tmp_path / "home")
    assert (code, found["log"][0]) == (0, True)
    assert f"{path}, 100 events" in found["log"][1]


@pytest.mark.parametrize("place", [0, 8192])
def test_doctor_says_that_a_damaged_log_is_damaged(tmp_path: Path, place: int) -> None:
    """It said nothing about the log, and the host would not start."""
    path = _a_log(tmp_path / "home")
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"garbage!" * 512)
    code, found = _findings(tmp_path / "home")
    assert (code, found["log"][0]) == (1, False)
    assert "is damaged" in found["log"][1]
    assert ".recover" in found["log"][1]


def test_doctor_says_that_a_locked_log_is_locked(tmp_path: Path) -> None:
    path = _a_log(tmp_path / "home")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        code, found = _findings(tmp_path / "home")
    assert (code, found["log"][0]) == (1, False)
    assert "Another program holds the log" in found["log"][1]


def test_doctor_says_that_a_log_is_from_a_newer_portico(tmp_path: Path) -> None:
    path = _a_log(tmp_path / "home")
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    code, found = _findings(tmp_path / "home")
    assert (code, found["log"][0]) == (1, False)
    assert "schema version 99" in found["log"][1]

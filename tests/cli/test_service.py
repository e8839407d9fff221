"""`portico service`, what systemd is told, the image, and commands against a host on another machine."""

import contextlib
import json
import os
import pwd
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portico.cli.service import unit
from portico.server.notify import Notify
from tests.cli.terminal import TerminalCommand
from tests.process import HostProcess, inside, watchdog

ROOT = Path(__file__).parents[2]
analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


def installed(tmp_path: Path, *options: str) -> Path:
    """The unit, written where systemd would look for it."""
    done = inside(tmp_path / "home", "service", "install", "--json", *options, HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    return Path(json.loads(done.stdout)["path"])


@analyze
def test_systemd_understands_the_users_unit(tmp_path: Path) -> None:
    path = installed(tmp_path, "--workspace", str(tmp_path))
    assert path == tmp_path / ".config/systemd/user/portico.service"
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, ""), "it ends well also with keys that it does not know"
    assert inside(tmp_path / "home", "service", "remove", HOME=str(tmp_path)).returncode == 0
    assert not path.exists()


def test_the_users_unit_starts_a_host_with_nothing_but_its_own_environment(tmp_path: Path) -> None:
    """Started as systemd does: from the lines of the unit, without the variables of a shell."""
    home, folder = tmp_path / "my home 100%", tmp_path / "my $code"
    for each in (home, folder):
        each.mkdir()
    (home / "settings.toml").write_text("[server]\nport = 0\n")
    text = installed(tmp_path, "--workspace", str(folder), "--home", str(home)).read_text()
    lines = [line.split("=", 1) for line in text.replace("%%", "%").splitlines() if "=" in line]
    env = dict(shlex.split(value)[0].split("=", 1) for key, value in lines if key == "Environment")
    env |= {"HOME": str(tmp_path), "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000000"}
    keys = dict(lines)
    command = shlex.split(keys["ExecStart"].replace("$$", "$"))
    journal = tmp_path / "journal"
    with listening(str(tmp_path / "notify")) as wire, journal.open("wb") as output:
        env["JOURNAL_STREAM"] = f"{journal.stat().st_dev}:{journal.stat().st_ino}"
        process = subprocess.Popen(
            command, cwd=keys["WorkingDirectory"], env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        with process, watchdog(process):
            assert wire.recv(1000).startswith(b"READY=1\nSTATUS=Listening on http://127.0.0.1:")
            endpoint = json.loads((home / "endpoint.json").read_text())
            process.terminate()
            assert (process.wait(), endpoint["pid"]) == (0, process.pid)
    assert (home / "token").read_text().strip() not in journal.read_text()


@pytest.mark.parametrize("what", ["missing", "a file"])
def test_a_workspace_that_is_no_folder_is_refused_before_a_unit_is_written(tmp_path: Path, what: str) -> None:
    """Bug: the unit was written, and systemd started the host again and again (status 200/CHDIR)."""
    if what == "a file":
        (tmp_path / what).touch()
    options = ["--workspace", str(tmp_path / what)]
    done = inside(tmp_path / "home", "service", "install", *options, HOME=str(tmp_path))
    assert (done.returncode, "is not a folder. Create it first." in done.stderr) == (64, True)
    assert not (tmp_path / ".config").exists()
    printed = inside(tmp_path / "home", "service", "install", "--print", *options, HOME=str(tmp_path))
    assert printed.returncode == 0, "a unit for another machine"


@pytest.mark.parametrize("failing", ["", "disable", "daemon-reload"])
@pytest.mark.parametrize("as_json", [False, True])
def test_remove_reports_that_the_host_may_still_run(tmp_path: Path, failing: str, as_json: bool) -> None:
    """Bug: without the user's manager (after `su`, or over a bare ssh) the unit was removed and the host still ran."""
    path = installed(tmp_path, "--workspace", str(tmp_path))
    programs, called = tmp_path / "programs", tmp_path / "called"
    programs.mkdir()
    fails = f'case "$*" in *{failing or "nothing"}*) echo "No medium found" >&2; exit 1;; esac'
    (programs / "systemctl").write_text(f'#!/bin/sh\necho "$*" >>{called}\n{fails}\n')
    (programs / "systemctl").chmod(0o755)
    env = {"HOME": str(tmp_path), "PATH": f"{programs}:{os.environ['PATH']}"}
    done = inside(tmp_path / "home", "service", "remove", *(["--json"] if as_json else []), **env)
    assert (done.returncode, path.exists()) == (0, False)
    assert called.read_text().splitlines()[0] == "--user disable --now portico"
    assert ("--user daemon-reload" in called.read_text()) is (failing != "disable")
    trouble = json.loads(done.stdout)["trouble"] if as_json else done.stderr
    assert ("failed: No medium found" in trouble) is bool(failing)


@analyze
def test_systemd_understands_the_machines_unit_and_calls_it_well_protected(tmp_path: Path) -> None:
    done = inside(tmp_path / "home", "service", "install", "--system", "--print", "--workspace", "/srv/my code %n")
    assert done.returncode == 0, done.stderr
    path = tmp_path / "portico.service"
    path.write_text(done.stdout)
    verified = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=35", str(path)]
    rated = subprocess.run(command, capture_output=True, text=True, check=False)
    assert rated.returncode == 0, rated.stdout.splitlines()[-1]


@analyze
def test_systemd_understands_the_guides_socket_which_outlives_the_service(tmp_path: Path) -> None:
    """It lay in the service's own folder, which systemd removes with everything in it when the service stops."""
    text = (ROOT / "docs" / "guide" / "server.md").read_text("utf-8")
    (block,) = re.findall(r"```ini\n# /etc/systemd/system/portico.socket\n(.*?)```", text, re.DOTALL)
    (tmp_path / "portico.socket").write_text(block)
    service = inside(tmp_path / "home", "service", "install", "--system", "--print").stdout
    (tmp_path / "portico.service").write_text(service)
    command = ["systemd-analyze", "verify", str(tmp_path / "portico.socket")]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    keys = dict(line.split("=", 1) for line in (service + block).splitlines() if "=" in line)
    assert Path("/run") / keys["RuntimeDirectory"] not in Path(keys["ListenStream"]).parents


def test_the_service_finds_the_agents_that_its_user_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd's own PATH has neither `~/.local/bin` nor what nvm or npm put there: the service offered no agent."""
    monkeypatch.setenv("PATH", "/home/ada/my tools/100%:/usr/bin")
    assert '\nEnvironment="PATH=/home/ada/my tools/100%%:/usr/bin"\n' in unit(home=tmp_path, folder=tmp_path)
    root = pwd.getpwuid(0)
    assert f"\nEnvironment=PATH={root.pw_dir}/.local/bin:/usr/local/sbin:" in unit(
        home=tmp_path, folder=tmp_path, user=root
    )


@pytest.mark.parametrize("guide", ["server.md", "team.md"])
def test_the_unit_lets_the_host_do_what_the_guides_settings_say(tmp_path: Path, guide: str) -> None:
    """By the guide for a team, the host could neither make its socket in /run nor write in the team's folder."""
    text = (ROOT / "docs" / "guide" / guide).read_text("utf-8")
    blocks = re.findall(r"```toml\n# settings.toml\n(.*?)```", text, re.DOTALL)
    settings = tomllib.loads(blocks[0])
    commands = re.findall(r"^sudo portico (service install --system.*?)(?: *#.*)?$", text, re.MULTILINE)
    for command in commands:
        options = ["root" if word in ("ada", "portico") else word for word in shlex.split(command)]
        done = inside(tmp_path, *options, "--print")
        assert done.returncode == 0, done.stderr
        unit_keys = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        assert Path(settings["server"]["unix_socket"]).parent == Path("/run") / unit_keys["RuntimeDirectory"]
        for folder in settings.get("workspaces", []):
            assert f"-{folder}" in unit_keys["ReadWritePaths"].split()
    assert commands


def test_the_unit_is_for_this_very_installation(tmp_path: Path) -> None:
    text = unit(home=tmp_path / "a home", folder=tmp_path)
    assert f"ExecStart={sys.executable} -m portico serve\n" in text
    assert f'Environment="PORTICO_HOME={tmp_path}/a home"\n' in text
    assert "Type=notify\n" in text
    assert "User=" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--user", "root"], "--user goes with --system"),
        (["--system", "--user", "no-such"], "useradd --create-home no-such"),
    ],
)
def test_wrong_words(tmp_path: Path, options: list[str], words: str) -> None:
    done = inside(tmp_path / "home", "service", "install", "--print", *options)
    assert (done.returncode, words in done.stderr) == (64, True)
    assert inside(tmp_path / "home", "service", "remove", HOME=str(tmp_path)).returncode == 64


@pytest.mark.parametrize("bad", ["a\nExecStartPre=/bin/evil", "a\rb", "a\x1bb", "a\x7f", "a\\"])
@pytest.mark.parametrize("where", ["home", "workspace", "PATH"])
def test_no_value_adds_a_line_to_the_unit(tmp_path: Path, where: str, bad: str) -> None:
    """Bug: a folder with a line break in its name added a line to the unit."""
    options = [] if where == "PATH" else [f"--{where}", f"/{bad}"]
    more = {"PATH": f"/usr/bin:/{bad}"} if where == "PATH" else {}
    done = inside(tmp_path / "home", "service", "install", "--print", *options, **more)
    assert (done.returncode, done.stdout) == (64, "")
    assert "control character or ends with a backslash" in done.stderr


@contextlib.contextmanager
def listening(path: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
        wire.bind(path)
        wire.settimeout(20)
        yield wire


def test_systemd_hears_that_it_is_ready_alive_and_stopping(tmp_path: Path) -> None:
    with listening(str(tmp_path / "notify")) as wire:
        with HostProcess(tmp_path / "home", NOTIFY_SOCKET=str(tmp_path / "notify")) as host, watchdog(host.process):
            assert wire.recv(1000).decode() == f"READY=1\nSTATUS=Listening on {host.url}"
            assert wire.recv(1000) == b"WATCHDOG=1"
        heard = wire.recv(1000)
        while heard == b"WATCHDOG=1":
            heard = wire.recv(1000)
        assert heard == b"STOPPING=1"


def test_a_socket_without_a_file_and_one_where_nobody_listens(tmp_path: Path) -> None:
    name = f"portico-{os.getpid()}"
    with listening(f"\0{name}") as wire:
        Notify(f"@{name}").alive()
        assert wire.recv(100) == b"WATCHDOG=1"
    Notify(str(tmp_path / "none")).alive()
    Notify().alive()


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.agents"])
def test_the_dockerfile_has_no_faults(name: str) -> None:
    linter = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([str(linter), str(ROOT / name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_guide_and_ci_build_the_same_file_for_agents_in_the_image() -> None:
    """The guide had its own recipe, which nothing built."""
    guide = (ROOT / "docs/guide/image.md").read_text("utf-8")
    assert ("-f Dockerfile.agents" in guide, "FROM " in guide, "npm install -" in guide) == (True, False, False)
    script = (ROOT / "tests/image/build.sh").read_text("utf-8")
    assert "--file Dockerfile.agents" in script
    for agent in re.findall(r"acp:\w+", guide):
        assert rf'grep -qP "{agent}\tthere"' in script


# -- a host on another machine ---------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def test_commands_go_to_the_host_that_is_named(tmp_path: Path, config: dict[str, Any]) -> None:
    """`nobody` is a home without a host: what answers is the other one."""
    with HostProcess(tmp_path / "home") as host:
        nobody, token = tmp_path / "nobody", (host.home / "token").read_text()
        assert inside(nobody, "sessions", "list", **config).returncode == 69
        named = inside(nobody, "--url", host.url, "--token", token, "sessions", "list", "--json", **config)
        assert (named.returncode, named.stdout.strip()) == (0, "[]")
        refused = inside(nobody, "--url", host.url, "--token", "wrong", "sessions", "list", **config)
        assert refused.returncode == 77
        by_variable = inside(nobody, "sessions", "list", "--json", PORTICO_URL=host.url, PORTICO_TOKEN=token, **config)
        assert by_variable.returncode == 0

        added = inside(nobody, "context", "add", "box", host.url, text=f"{token}\n", **config)
        assert (added.returncode, "you are 'owner'" in added.stderr) == (0, True), added.stderr
        saved = tmp_path / "config/portico/contexts.json"
        assert saved.stat().st_mode & 0o777 == 0o600
        assert inside(nobody, "send", "hello", "--agent", "scripted", **config).returncode == 0
        assert "* box" in inside(nobody, "context", "list", **config).stdout
        assert token not in inside(nobody, "context", "list", "--json", **config).stdout
        inside(nobody, "context", "use", "local", **config)
        assert inside(nobody, "sessions", "list", **config).returncode == 69
        chosen = inside(nobody, "--context", "box", "sessions", "list", "--json", **config)
        assert "session-1" in chosen.stdout
        assert inside(nobody, "context", "use", "nosuch", **config).returncode == 66
        assert inside(nobody, "context", "remove", "box", **config).returncode == 0
        assert token not in saved.read_text()


def test_at_a_terminal_the_token_is_asked_for_and_not_shown(
    tmp_path: Path, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited without a word, and showed what was typed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", config["XDG_CONFIG_HOME"])
    with HostProcess(tmp_path / "home") as host:
        token = (host.home / "token").read_text()
        with TerminalCommand(tmp_path / "nobody", "context", "add", "box", host.url) as command:
            command.expect(f"Token for {host.url}: ")
            command.enter(f"{token}\n")
            code, screen = command.finish()
    assert (code, "you are 'owner'" in screen, token in screen) == (0, True, False)


def test_no_token_on_standard_input_is_told(tmp_path: Path, config: dict[str, Any]) -> None:
    done = inside(tmp_path / "x", "context", "add", "box", "http://127.0.0.1:1", text="\n", **config)
    assert (done.returncode, "There is no token on standard input" in done.stderr) == (64, True)


def test_a_host_that_refuses_is_not_saved(tmp_path: Path, config: dict[str, Any]) -> None:
    with HostProcess(tmp_path / "home") as host:
        done = inside(tmp_path / "x", "context", "add", "box", host.url, "--token", "wrong", **config)
        assert done.returncode == 77
    for wrong in (["local", "http://x"], ["box", "ftp://x"], ["b x", "http://x"]):
        assert inside(tmp_path / "x", "context", "add", *wrong, "--token", "t", **config).returncode == 64
    assert not (tmp_path / "config/portico/contexts.json").exists()

"""`portico serve`: its flags, what it prints, how it refuses."""

import ctypes
import json
import logging
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from portico.cli.serve import PlainLines
from tests.process import HostProcess, inside, portico, running


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["1", "--port", "2"], "Give the port once"),
        (["0", "--workspace", "no/such"], "is not a folder"),
        (["0", "--host", "0.0.0.0"], "--allow-remote"),
        (["0", "--host", "0.0.0.0", "--allow-remote", "--without-token"], "loopback only"),
        (["0", "--script", "no/such.yaml", "--agent", "scripted"], "cannot be read"),
        (["0", "--script", "no/such.yaml"], "cannot be read"),
        (["0", "--script", "some.yaml", "--agent", "demo"], "name it with --agent too"),
    ],
)
def test_wrong_flags_are_a_line_and_exit_code_64(tmp_path: Path, args: list[str], words: str) -> None:
    done = inside(tmp_path / "home", "serve", *args)
    assert done.returncode == 64
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert adopts_orphans() is False


def adopts_orphans() -> bool:
    """One command in the tests' own process made it the parent of every later test's orphans: dead ones stayed."""
    if sys.platform != "linux":
        return False
    answer = ctypes.c_int()
    ctypes.CDLL(None).prctl(37, ctypes.byref(answer), 0, 0, 0)  # PR_GET_CHILD_SUBREAPER, linux/prctl.h
    return answer.value != 0


def test_an_unknown_agent_and_a_taken_port(tmp_path: Path) -> None:
    assert portico(tmp_path / "home", "serve", "0", "--agent", "nosuch").returncode == 66
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = portico(tmp_path / "home", "serve", str(taken.getsockname()[1]))
    assert (done.returncode, "Choose another port with --port" in done.stderr) == (64, True)


def test_it_prints_its_address_and_a_login_link_that_works(tmp_path: Path) -> None:
    with HostProcess(tmp_path / "home") as host:
        link = host.wait_for_log("Log in with:").split()[-1]
        assert link.startswith(f"{host.url}/login?tkn=")
        answer = httpx.get(link, trust_env=False)
        assert (answer.status_code, answer.headers["location"].partition("#key=")[0]) == (303, "/app")


def test_without_token_warns(tmp_path: Path) -> None:
    """And of folders that the built-in agent may touch and that are not there."""
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home/settings.toml").write_text('[agent]\nallowed_roots = ["srcc"]\n')
    with HostProcess(tmp_path / "home", "--without-token") as host:
        assert "no folder 'srcc' in " in host.wait_for_log("WARNING: agent.allowed_roots")
        assert host.wait_for_log("WARNING: no token is needed")
        assert httpx.get(f"{host.url}/v1", trust_env=False).json()["you"] == "owner"
        assert inside(tmp_path / "home", "sessions", "list").returncode == 0


def test_json_for_whoever_starts_it_and_json_lines_for_the_log(tmp_path: Path) -> None:
    home = tmp_path / "home"
    serve = ["serve", "--port", "0", "--json", "--agent", "demo"]
    with running(home, *serve, PORTICO_LOG_FORMAT="json", PORTICO_LOG_LEVEL="debug") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        ready = json.loads(process.stdout.readline())
        assert (ready["pid"], ready["url"]) == (process.pid, f"http://127.0.0.1:{ready['port']}")
        (home / "settings.toml").write_text("[agent]\nmax_steps = 0\n")
        lines = []
        for line in process.stderr:
            lines.append(line)
            entry = json.loads(line)
            if "not taken over" in entry["message"]:
                break
        assert (entry["level"], entry["logger"]) == ("error", "portico.server")
        assert entry["time"].endswith("Z")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        lines += process.stderr.readlines()
        assert json.loads(lines[-1])["message"] == "Stopped."
        assert (home / "token").read_text() not in "".join(lines), "log collectors keep it for everybody"


def test_the_journal_of_systemd_does_not_get_the_owners_token(tmp_path: Path) -> None:
    stderr = tmp_path / "home.stderr"
    stderr.touch()
    stream = f"{stderr.stat().st_dev}:{stderr.stat().st_ino}"
    with HostProcess(tmp_path / "home", JOURNAL_STREAM=stream) as host:
        link = host.wait_for_log("Log in with:")
        assert link.endswith(f"{host.url}/login, and the token in {tmp_path}/home/token")
        assert (tmp_path / "home/token").read_text() not in host.log()


def test_a_script_with_its_delay(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("rules:\n  - match: knock\n    steps:\n      - {do: say, text: who is there}\n")
    with HostProcess(tmp_path / "home", "--script", str(script), "--script-delay", "10"):
        assert inside(tmp_path / "home", "send", "knock knock", "--agent", "scripted").stdout == "who is there\n"


def test_foreign_text_forges_no_line_of_the_log() -> None:
    name = "evil\nERROR portico: all lost\x1b[2J\u202e"
    record = logging.LogRecord("portico", logging.INFO, "x", 1, "%s left", (name,), None)
    line = PlainLines("%(levelname)s %(name)s: %(message)s").format(record)
    assert line == "INFO portico: evil\\nERROR portico: all lost\\x1b[2J\\u202e left"


_START = """
import sys
from portico.cli.serve import _import_uvicorn

_import_uvicorn()
import portico.server.server, uvicorn
from portico.server.registry import load_doors

load_doors()
early = {"click", "cronsim", "html", "multiprocessing", "tomllib", "watchfiles", "webbrowser", "zoneinfo"}
print(sorted(early & set(sys.modules)))
server = uvicorn.Server
print(callable(uvicorn.run), uvicorn.Server is server, uvicorn.__version__ > "", "click" in sys.modules)
"""


def test_a_start_imports_no_more_than_it_needs() -> None:
    """The rest of uvicorn is there for whoever asks for it."""
    ran = subprocess.run([sys.executable, "-c", _START], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["[]", "True True True True"]

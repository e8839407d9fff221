"""Where the process begins."""

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.process import environment, watchdog

INTERRUPTED = """
import os, signal, sys
from portico.start import main

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "portico.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
main()
"""


def test_ctrl_c_is_clean_while_the_command_line_is_still_being_imported() -> None:
    """It ended in a traceback of whatever was being imported."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (130, "")


HEAVY = {
    "acp": "the SDK of ACP: a second and 50 MB, for the first conversation",
    "copilot": "the SDK of Copilot: as heavy",
    "httpx": "with rich and pygments behind it; for whoever asks a model",
    "mcp": "its messages are few enough to write ourselves",
    "portico.agents.loop.run": "the built-in agent's tools, for its first conversation",
    "portico.client": "for whoever talks to a host",
    "portico.doors.ahp.connection.connection": "for the first editor",
    "portico.models": "beyond the catalogue: for whoever has a model of their own",
    "portico.testing": "for tests",
    "pydantic": "90 ms and 12 MB",
    "pygments": "for people at a terminal",
    "rich": "for people at a terminal",
    "xllamacpp": "runs in a process of its own",
    "yaml": "for whoever writes YAML; what we ship is JSON",
}
"""What a starting host must not import, and why; `portico.models.catalogue` alone is light."""


def test_a_starting_host_imports_nothing_that_it_does_not_need_yet(tmp_path: Path) -> None:
    """Nine tenths of the start is importing, and it creeps back: httpx alone, for a list of models that nobody had
    asked for, was a fifth of it. Programs on the PATH are agents that are described, not talked to."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("opencode", "copilot"):
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    command = [sys.executable, "-X", "importtime", "-m", "portico", "serve", "0", "--print-ready"]
    path = f"{programs}:{os.environ['PATH']}"
    with (
        (tmp_path / "imports").open("w+") as imports,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=imports,
            text=True,
            cwd=tmp_path,
            env=environment(PORTICO_HOME=str(tmp_path / "home"), PATH=path),
        ) as process,
        watchdog(process),
    ):
        assert process.stdout is not None
        port = process.stdout.readline().strip().removeprefix("READY:")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
            assert answer.status == 200
        process.terminate()
        process.wait()
        imports.seek(0)
        found = {line.rpartition("|")[2].strip() for line in imports if line.startswith("import time:")}
    assert "portico.agents.acp.agent" in found, "the programs are offered as agents"
    assert "portico.agents.copilot.agent" in found
    allowed = {"portico.models", "portico.models.catalogue"}
    wrong = {name for name in found - allowed if any(name == heavy or name.startswith(f"{heavy}.") for heavy in HEAVY)}
    assert wrong == set()


LATER = """
import sys
import portico.agents.acp.conversation
print([name for name in ("httpx", "rich") if name in sys.modules])
"""


def test_a_first_turn_of_an_agents_process_imports_no_http() -> None:
    """Its MCP servers may be on the network; that alone took 50 ms of every first turn, and everybody waited."""
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

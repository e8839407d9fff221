"""A real ACP client program, acpx, drives Portico through `portico acp`: what an editor would do, from a shell."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.programs import MODULES
from tests.process import PORTICO, HostProcess

pytestmark = pytest.mark.live

NODE, ACPX = MODULES / "node22/bin/node", MODULES / "acpx/dist/cli.js"
SCRIPT = """
providers: [{id: scripted, name: Scripted, models: [{id: big, name: Big, context: 1000}, {id: small, name: Small}]}]
rules:
  - match: ^count
    steps: [{do: usage, input: 100, output: 20, cost: 0.5}, {do: say, text: counted}]
  - match: ^fail
    steps: [{do: fail, message: it broke}]
  - match: ^write
    steps:
      - {do: write, path: a.txt, text: "hello\\n"}
      - {do: say, text: written}
"""


class Acpx:
    def __init__(self, host: HostProcess, folder: Path) -> None:
        self.host = host
        self.folder = folder

    def __call__(self, *args: str, code: int = 0) -> list[dict[str, Any]]:
        """Runs it to its end; what went over the wire, both ways."""
        assert NODE.exists(), "acpx is not installed; run tests/live/install.sh"
        env = {**os.environ, "HOME": str(self.folder / "vendor"), "PORTICO_HOME": str(self.host.home)}
        command = [NODE, ACPX, "--cwd", self.folder / "work", "--format", "json", "--agent", f"{PORTICO} acp", *args]
        done = subprocess.run(
            [str(each) for each in command], capture_output=True, text=True, timeout=120, env=env, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"jsonrpc"')]

    def read(self, path: str) -> Any:
        token = (self.host.home / "token").read_text().strip()
        return httpx.get(f"{self.host.url}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=30).json()

    def sessions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.read("/v1/sessions")["sessions"]
        return found


def told(wire: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    updates = [each["params"]["update"] for each in wire if each.get("method") == "session/update"]
    return [each for each in updates if each["sessionUpdate"] == kind]


@pytest.fixture
def acpx(tmp_path: Path) -> Iterator[Acpx]:
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (tmp_path / "work").mkdir()
    (tmp_path / "vendor").mkdir()
    with HostProcess(tmp_path / "home", "--script", str(tmp_path / "script.yaml")) as host:
        yield Acpx(host, tmp_path)


def test_a_prompt_a_permission_and_the_session_beside_the_other_doors(acpx: Acpx) -> None:
    wire = acpx("exec", "[[say:Hello from the host]]")
    assert "".join(each["content"]["text"] for each in told(wire, "agent_message_chunk")) == "Hello from the host"
    assert wire[-1]["result"] == {"stopReason": "end_turn"}
    wire = acpx("--approve-all", "exec", "write it")
    asked = [each["params"] for each in wire if each.get("method") == "session/request_permission"]
    assert len(asked) == 1
    assert told(wire, "tool_call_update")[-1]["status"] == "completed"
    assert (acpx.folder / "work/a.txt").read_text() == "hello\n"
    assert [each["cwd"] for each in acpx.sessions()] == [str(acpx.folder / "work")] * 2


def test_a_refusal(acpx: Acpx) -> None:
    wire = acpx("--deny-all", "exec", "write it", code=5)
    assert told(wire, "tool_call_update")[-1]["status"] == "failed"
    assert not (acpx.folder / "work/a.txt").exists()


def test_model_usage_and_mcp_servers(acpx: Acpx) -> None:
    """acpx checks every frame with the schema of the official SDK."""
    config = acpx.folder / "mcp.json"
    server = {"type": "stdio", "name": "tickets", "command": "/bin/true", "args": [], "env": []}
    config.write_text(json.dumps({"mcpServers": [server]}))
    wire = acpx("--model", "small", "--mcp-config", str(config), "exec", "count")
    used = {"totalTokens": 120, "inputTokens": 100, "outputTokens": 20}
    assert wire[-1]["result"] == {"stopReason": "end_turn", "usage": used}
    (session,) = acpx.sessions()
    assert session["model"] == "small"
    assert '"servers": ["tickets"]' in json.dumps(acpx.read("/v1/audit"))


def test_a_failed_turn_has_its_reason(acpx: Acpx) -> None:
    wire = acpx("exec", "fail", code=1)
    assert "it broke" in json.dumps([each for each in wire if "error" in each])

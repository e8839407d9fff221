"""The walk through docs/guide/http.md, with the real programs: a host, a scripted model, curl and git."""

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from portico.workspace.child import started
from tests.process import PORTICO, HostProcess, environment, portico
from tests.workspace.living import pids_in

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")

SCRIPT = """
models: [scripted]
rules:
  - match: never ends
    steps: [{say: [one, two], gap: 1, hang: 2}]
  - match: run it
    steps:
      - say:
          - '{"actions": [{"tool": "runCommand", "command": "echo $$ > pid; exec sleep 1000"}], "done": false}'
  - steps:
      - say:
          - '{"actions": [{"tool": "listFiles"}], "commentary": "I look around.", "done": false}'
      - say:
          - '{"actions": [{"tool": "createFile", "path": "README.md", "content": "# Files\\\\n\\\\n- main.py\\\\n"}],'
          - ' "commentary": "Now the README.", "done": false}'
      - say:
          - '{"finalSummary": "README.md lists the files.", "done": true}'
"""


@pytest.fixture
def model(tmp_path: Path) -> Iterator[str]:
    """`portico model-server` in a process of its own."""
    script = tmp_path / "answers.yaml"
    script.write_text(SCRIPT)
    command = [PORTICO, "model-server", "--port", "0", "--script", str(script)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(PYTHONUNBUFFERED="1"))
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.terminate()
    process.wait(60)
    process.stdout.close()


class Curl:
    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.headers = ["-H", f"Authorization: Bearer {token}", "-H", "Content-Type: application/json"]

    def __call__(self, path: str, *more: str) -> Any:
        command = ["curl", "-sS", *self.headers, *more, f"{self.url}{path}"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def wait_for(path: Path, event: str) -> dict[str, Any]:
    """The data of the first such event that curl has written down."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for frame in path.read_text().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line)
            if lines.get("event") == event and frame.rstrip().endswith("}"):
                data: dict[str, Any] = json.loads(lines["data"])
                return data
        time.sleep(0.02)
    raise AssertionError(f"no {event!r} in {path.read_text()}")


def git(project: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=project, capture_output=True, text=True, check=True).stdout


def test_a_goal_is_approved_over_http_and_git_agrees(tmp_path: Path, model: str) -> None:
    project, home, heard = tmp_path / "scratch", tmp_path / "home", tmp_path / "events.txt"
    project.mkdir()
    (project / "main.py").write_text("print('hello')\n")
    git(project, "init", "-q")
    git(project, "add", "main.py")
    arguments = ("--agent", "loop", "--workspace", str(project))
    with HostProcess(home, *arguments, OPENAI_BASE_URL=f"{model}/v1") as host, heard.open("wb") as file:
        curl = Curl(host.url, (home / "token").read_text().strip())
        listening = subprocess.Popen(["curl", "-sSN", *curl.headers, f"{host.url}/events"], stdout=file)
        try:
            end = time.monotonic() + 60
            while "retry:" not in heard.read_text() and time.monotonic() < end:
                time.sleep(0.01)
            sent = curl("/message", "-d", '{"text":"agent: add a README that lists the files"}')
            assert sent["accepted"] is True
            asked = wait_for(heard, "approvalRequest")
            assert asked["id"] == sent["id"]
            assert not (project / "README.md").exists()
            answer = json.dumps({"approvalId": asked["approvalId"], "approved": True})
            assert curl("/approval", "-d", answer) == {"ok": True}
            done = wait_for(heard, "done")
        finally:
            listening.terminate()
            listening.wait(60)
        assert (done["id"], done["outcome"]) == (sent["id"], "completed")
        git(project, "add", "--intent-to-add", "README.md")
        assert git(project, "diff").partition("@@")[2] == asked["diff"].partition("@@")[2]
        session = sent["id"].partition(".")[0]
        tail = portico(home, "sessions", "tail", session, "--no-follow")
    assert tail.returncode == 0, tail.stderr
    for words in (
        "add a README that lists the files",
        "I look around.",
        "Create README.md",
        "README.md lists the files.",
    ):
        assert words in tail.stdout


def test_a_killed_host_ends_its_message_once(tmp_path: Path, model: str) -> None:
    """`kill -9` in the middle of an answer: the next host says `interrupted`, and a reader misses nothing."""
    project, home = tmp_path / "scratch", tmp_path / "home"
    project.mkdir()
    arguments = ("--agent", "loop", "--workspace", str(project))
    host = HostProcess(home, *arguments, OPENAI_BASE_URL=f"{model}/v1")
    headers = {"Authorization": f"Bearer {(home / 'token').read_text().strip()}", "Accept-Encoding": "identity"}
    with httpx.Client(headers=headers, timeout=60, trust_env=False) as http:
        with http.stream("GET", f"{host.url}/events") as answer:
            frames = _frames(answer)
            sent = http.post(f"{host.url}/message", json={"text": "it never ends"}).json()
            seen = [next(frames)]
            while "".join(data.get("fragment", "") for _, _, data in seen) != "onetwo":
                seen.append(next(frames))
            host.kill()
        with HostProcess(home, *arguments, OPENAI_BASE_URL=f"{model}/v1") as host:
            with http.stream("GET", f"{host.url}/events", headers={"Last-Event-ID": seen[-1][0]}) as answer:
                _, name, data = next(_frames(answer))
            assert (name, data["id"], data["outcome"]) == ("done", sent["id"], "interrupted")
            with http.stream("GET", f"{host.url}/events?after=0") as answer:
                frames = _frames(answer)
                replayed = [next(frames) for _ in range(len(seen) + 1)]
    assert replayed[: len(seen)] == seen


async def test_a_killed_hosts_command_is_ended_and_the_conversation_goes_on(tmp_path: Path, model: str) -> None:
    project, home = tmp_path / "scratch", tmp_path / "home"
    project.mkdir()
    home.mkdir(mode=0o700)
    (home / "settings.toml").write_text('[agent]\nrequire_approval = "none"\n[agents.loop]\nprotocol = "text"\n')
    arguments = ("--agent", "loop", "--workspace", str(project))
    host = HostProcess(home, *arguments, OPENAI_BASE_URL=f"{model}/v1")
    headers = {"Authorization": f"Bearer {(home / 'token').read_text().strip()}", "Accept-Encoding": "identity"}
    async with httpx.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        sent = (await http.post(f"{host.url}/message", json={"text": "agent: run it"})).json()
        [pid] = await pids_in(project / "pid", 1)
        host.kill()
        assert started(pid)
        with HostProcess(home, *arguments, OPENAI_BASE_URL=f"{model}/v1") as host:
            assert started(pid) is None
            shown = (await http.get(f"{host.url}/sessions/{sent['sessionId']}")).json()["messages"]
            assert [(each.get("ok"), each.get("outcome")) for each in shown[-2:]] == [
                (False, None),
                (None, "interrupted"),
            ]
            after = (await http.post(f"{host.url}/message", json={"text": "And now?"})).json()
            assert after["id"].startswith("session-1.")
            async with asyncio.timeout(60), http.stream("GET", f"{host.url}/events?after=0") as answer:
                heard = ""
                async for text in answer.aiter_text():
                    heard += text
                    if '"outcome":"completed"' in heard:
                        break


def _frames(answer: httpx.Response) -> Iterator[tuple[str, str, dict[str, Any]]]:
    rest = ""
    for text in answer.iter_text():
        *frames, rest = (rest + text).split("\n\n")
        for frame in frames:
            fields = dict(line.split(": ", 1) for line in frame.splitlines())
            if "event" in fields:
                yield fields["id"], fields["event"], json.loads(fields["data"])


def test_a_queued_message_goes_on_at_the_next_start(tmp_path: Path) -> None:
    """After `kill -9` it waited until somebody called this door."""
    home = tmp_path / "home"
    host = HostProcess(home, "--workspace", str(tmp_path))
    headers = {"Authorization": f"Bearer {(home / 'token').read_text().strip()}", "Accept": "text/event-stream"}
    with httpx.Client(headers=headers, timeout=60, trust_env=False) as http:
        for text in ("[[hang]]", "[[say:later]]"):
            sent = http.post(f"{host.url}/message", json={"text": text, "agent": "scripted"}).json()
        assert sent["queued"]
        host.kill()
        with (
            HostProcess(home, "--workspace", str(tmp_path)) as host,
            http.stream("GET", f"{host.url}/v1/sessions/session-1/events") as answer,
        ):
            ends: list[str] = []
            deadline = time.monotonic() + 60  # the heartbeats go on
            for line in answer.iter_lines():
                assert time.monotonic() < deadline, ends
                event = json.loads(line[6:])["event"] if line.startswith("data: ") else {}
                ends += [event["outcome"]] if event.get("type") == "turn.ended" else []
                if len(ends) == 2:
                    break
            assert ends == ["interrupted", "completed"]

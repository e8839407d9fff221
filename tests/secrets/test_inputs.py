"""A secret input of a job on a real host, which is killed in the middle: its value is in one file and nowhere else."""

import sqlite3
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
import pytest

from portico.features.secrets.inputs import FILE
from portico.server.home import Home
from portico.testing.temporal import TemporalServer
from tests.process import HostProcess, portico
from tests.secrets.receiving import Receiver

CANARY = "c4nary-e58d20-value"
NEEDLES = (CANARY, "Y2FuYXJ5LWU1OGQyMC12YWx1Z", "63346e6172792d65353864")
INNER = """
inputs: {key: {type: secret}}
steps:
  - {id: use, run: "printf %s {{ inputs.key }} | sha256sum | cut -c1-8"}
result: "{{ steps.use.output }}"
"""
OUTER = """
inputs: {token: {type: secret, about: Of the service}, url: {}}
folder: worktree
steps:
  - {id: shown, run: "echo {{ inputs.token }}; printf %s {{ inputs.token }} | base64; set -x; : {{ inputs.token }}"}
  - {id: kept, run: "echo {{ inputs.token }} > report.md"}
  - {id: inner, call: inner, inputs: {key: "{{ inputs.token }}"}}
  - {id: send, http: {method: POST, url: "{{ inputs.url }}/x", headers: {Authorization: "Bearer {{ inputs.token }}"}}}
  - {id: work, prompt: "[[say:{{ steps.shown.output }}]]", check: [{run: "cat report.md; env"}]}
  - {id: way, ask: "Is {{ steps.shown.output }} right?", show: [changes, "file:report.md", "{{ steps.kept.output }}"]}
  - {id: once, run: "echo {{ inputs.token }} >&2; test -f {{ run.folder }}/never", may_fail: true}
result: ["{{ steps.shown.output }}", "{{ steps.inner.output }}", "{{ steps.once.reason }}"]
artifacts: [report.md]
"""


@pytest.mark.parametrize("engine", ["local", "temporal"])
def test_a_secret_input_shows_up_nowhere(tmp_path: Path, engine: str, request: pytest.FixtureRequest) -> None:
    project, home = _project(tmp_path), tmp_path / "home"
    home.mkdir(mode=0o700)
    settings = '[log]\nlevel = "debug"\n[notices]\nallow_private = ["127.0.0.1"]\n'
    if engine == "temporal":
        server: TemporalServer = request.getfixturevalue("temporal")
        settings += f'[jobs]\nengine = "temporal"\naddress = "{server.address}"\n'
    (home / "settings.toml").write_text(settings)
    seen: list[str] = []
    with Receiver() as service:
        host = HostProcess(home)
        with _client(host) as http:
            body = {"job": "outer", "cwd": str(project), "inputs": {"token": CANARY, "url": service.url}}
            job = http.post("/v1/jobs", json=body).json()["job"]
            until_question(http)
        host.kill()
        assert service.got == [f"Bearer {CANARY}"]
        with HostProcess(home) as host, _client(host) as http:
            question = until_question(http)
            seen.append(str(question))
            answer = {"response": "accept", "answers": {}, "text": "yes"}
            assert http.post(f"/v1/questions/{question['id']}", json=answer).status_code < 300
            assert portico(home, "jobs", "tail", job, timeout=60).returncode == 0
            again = http.post(f"/v1/jobs/{job}/retry", json={"step": "once"}).json()["job"]
            assert portico(home, "jobs", "tail", again, timeout=60).returncode == 0
            whole = http.get(f"/v1/jobs/{job}").json()
            assert (whole["status"], whole["inputs"]["token"]) == ("succeeded", "[secret]"), whole["error"]
            assert whole["result"][0].startswith("[redacted: token]\n[redacted: token]")
            seen += _answers(http, job, again, project)
            seen += _printed(home, job, project)
            assert host.stop() == 0
    backup = tmp_path / "backup"
    made = portico(home, "backup", str(backup), "--without-secrets")
    assert made.returncode == 0, made.stderr
    assert len("".join(seen)) > 20_000
    for needle in NEEDLES:
        assert [text for text in seen if needle in text] == []
        assert needle not in host.log()
        found = [path.name for path in home.rglob("*") if path.is_file() and needle.encode() in path.read_bytes()]
        assert found == ([FILE] if needle == CANARY else [])
    assert CANARY not in _database(home)
    assert (home / FILE).stat().st_mode & 0o777 == 0o600


def _project(folder: Path) -> Path:
    project = folder / "project"
    (project / ".portico/jobs").mkdir(parents=True)
    (project / ".portico/jobs/outer.yaml").write_text(dedent(OUTER))
    (project / ".portico/jobs/inner.yaml").write_text(dedent(INNER))
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@localhost")
    for words in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "start")):
        subprocess.run(["git", *words], cwd=project, check=True, capture_output=True)
    return project


def _client(host: HostProcess) -> httpx.Client:
    headers = {"Authorization": f"Bearer {Home(host.home).token()}"}
    return httpx.Client(base_url=host.url, headers=headers, trust_env=False, timeout=60)


def until_question(http: httpx.Client) -> dict[str, Any]:
    """The open question, as soon as there is one."""
    with http.stream("GET", "/v1/events", headers={"Accept": "text/event-stream"}) as events:
        for _ in events.iter_lines():
            found: list[dict[str, Any]] = http.get("/v1/inbox").json()["waiting"]
            asked: list[dict[str, Any]] = [each["question"] for each in found if each.get("question")]
            if asked:
                return asked[0]
    raise AssertionError("no question")


def _answers(http: httpx.Client, job: str, again: str, project: Path) -> list[str]:
    """Everything that REST returns about the jobs, their tasks and their sessions."""
    paths = ["/v1/jobs", "/v1/sessions", "/v1/inbox", "/v1/audit?limit=500", "/v1/notices", "/metrics", "/healthz"]
    for each in (job, again):
        paths += [f"/v1/jobs/{each}", f"/v1/jobs/{each}/result", f"/v1/events?channel=job/{each}"]
    for session in http.get("/v1/sessions").json()["sessions"]:
        ident = session["id"]
        paths += [f"/v1/sessions/{ident}", f"/v1/sessions/{ident}/export?format=jsonl"]
    artifact = http.get(f"/v1/jobs/{job}").json()["artifacts"][0]
    paths.append(f"/v1/blobs/{artifact['blob']}")
    answers = [http.get(path) for path in paths]
    body = {"name": "outer", "cwd": str(project), "inputs": {"token": CANARY, "url": "x"}}
    answers.append(http.post("/v1/workflows/plan", json=body))
    assert answers[-1].json()["plan"]["inputs"]["token"] == "[secret]"
    return [each.text for each in answers]


def _printed(home: Path, job: str, project: Path) -> list[str]:
    commands = (
        ["jobs", "list", "--json"],
        ["jobs", "show", job],
        ["jobs", "show", job, "--json"],
        ["jobs", "tail", job, "--json"],
        ["run", "outer", "--cwd", str(project), "--url", "x", "--plan", "--json"],
        ["doctor", "--json"],
    )
    done = [portico(home, *words, timeout=60) for words in commands]
    return [each.stdout + each.stderr for each in done]


def _database(home: Path) -> str:
    with sqlite3.connect(Home(home).log_path) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [str(row) for name in names for row in database.execute(f"SELECT * FROM {name}")]
    database.close()
    return "\n".join(rows)

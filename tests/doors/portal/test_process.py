"""The door as old scripts meet it: `portico serve --test --without-token`, and plain HTTP."""

import socket
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from portico.features.jobs import to_json
from tests.jobs.playing import make, ok
from tests.jobs.test_legacy import old_entry
from tests.process import HostProcess


@pytest.fixture
def api(tmp_path: Path) -> Any:
    (tmp_path / "entries").mkdir()
    with (
        HostProcess(tmp_path / "home", "--test", "--without-token", "--test-folder", "entries") as host,
        httpx.Client(base_url=f"{host.url}/api/", timeout=30) as client,
    ):
        yield client


def test_from_nothing_to_a_green_job_and_a_stop(api: httpx.Client, tmp_path: Path) -> None:
    assert api.get("copilot/job").status_code == 500
    entry = tmp_path / "entries/entry.json"
    entry.write_bytes(to_json(make({"ok": ok()})))
    assert api.post("copilot/test/installJobsEntry", content=str(entry)).json() == {"result": "OK"}
    job = api.get("copilot/job/start/main", params={}).json()
    assert job == {"error": "WorkingDirectoryNotAbsolutePath"}
    job = api.post("copilot/job/start/main", content=str(tmp_path)).json()["jobId"]
    elements: list[dict[str, Any]] = []
    while {"callback": "jobSucceeded"} not in elements:
        elements += api.get(f"copilot/job/{job}/live/me").json()["responses"]
    assert [element["callback"] for element in elements] == ["workStarted", "workStopped", "jobSucceeded"]
    assert api.get("stop").json() == {}


def test_an_old_entry_named_in_test_mode_is_there_from_the_start(tmp_path: Path) -> None:
    """`--test` ignored `--entry` without a word, and `serve` refused the 000 format that `check` reads."""
    entry = tmp_path / "old.json"
    entry.write_bytes(msgspec.json.encode(old_entry(colour="red")))
    with HostProcess(tmp_path / "home", "--test", "--without-token", "--entry", str(entry)) as host:
        jobs = httpx.get(f"{host.url}/api/copilot/job?level=000", timeout=30).json()["jobs"]
    assert [job["printedName"] for job in jobs] == ["Main"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("copilot/session/start/gpt-5.2", b"x" * 50_000_000, 413),
        ("copilot/session/start/gpt-5.2", b"/\xff\xfe\xfd", 200),
        ("copilot/session/%2e%2e%2f%00/query", b"x", 404),
        ("copilot/session/%ff%fe/query", b"x", 200),
        ("copilot/job/start/%00", b"x", 500),
        ("copilot/job/" + "x" * 3000 + "/status", b"", 200),
    ],
)
def test_bad_input_gets_an_answer_and_the_host_stays_up(api: httpx.Client, path: str, body: bytes, status: int) -> None:
    try:
        answer = api.post(path, content=body)
        assert answer.status_code == status, answer.text
        assert "error" in answer.json()
    except httpx.WriteError:
        assert status == 413  # the host hangs up on what it will not read
    assert api.get("test").json() == {"message": "Hello, world!"}


def test_nothing_is_lost_for_a_caller_who_hung_up(api: httpx.Client, tmp_path: Path) -> None:
    session = api.post("copilot/session/start/gpt-5.2", content=str(tmp_path)).json()["sessionId"]
    address = (api.base_url.host, api.base_url.port)
    with socket.create_connection(address) as caller:
        caller.sendall(f"GET /api/copilot/session/{session}/live/k HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        while "portico_connections 2\n" not in api.get("../metrics").text:  # this one, and the caller's
            time.sleep(0.01)
        assert api.get(f"copilot/session/{session}/live/k").json() == {"error": "ParallelCallNotSupported"}
    api.post(f"copilot/session/{session}/query", content="[[say:hi]]")
    elements: list[dict[str, Any]] = []
    while {"callback": "onIdle"} not in elements:
        elements += api.get(f"copilot/session/{session}/live/k").json().get("responses", [])
    assert elements[0]["callback"] == "onAgentStart"

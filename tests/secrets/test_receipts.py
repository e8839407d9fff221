"""The receipt of a command with an idempotency key, stored in the log: it does not help to guess a secret input."""

import hashlib
import hmac
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import msgspec

from portico.features.jobs.commands import StartJob
from portico.kernel import commands as c
from portico.kernel.do import RECEIPTS, Receipt
from portico.server.home import Home
from tests.process import HostProcess

PIN = "4711"
"""A weak secret: all values of its kind are tried within a second."""
WORKFLOW = "inputs: {pin: {type: secret}}\nsteps: [{run: 'test -n {{ inputs.pin }}'}]\n"


def test_a_weak_secret_input_cannot_be_guessed_by_its_receipt(tmp_path: Path) -> None:
    """The receipt had the plain SHA-256 of the whole command: 10,000 attempts found a PIN."""
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".portico/jobs").mkdir(parents=True)
    (project / ".portico/jobs/main.yaml").write_text(WORKFLOW)
    home.mkdir(mode=0o700)
    host = HostProcess(home)
    first = _start(host, project, PIN)
    host.kill()
    with HostProcess(home) as host:
        assert _start(host, project, PIN) == first
        assert _start(host, project, "4712") == 409
        assert host.stop() == 0
    (digest,) = _digests(home)
    encoded = c.encode_command(StartJob(job="main", cwd=str(project), inputs={"pin": PIN}))
    key = (home / "cookie-key").read_bytes()
    assert digest == hmac.digest(key, encoded, "sha256").hex()  # so `encoded` is what a reader of the log would try
    plain = (hashlib.sha256(encoded).hexdigest(), hmac.digest(b"", encoded, "sha256").hex())
    everything = b"".join(path.read_bytes() for path in home.rglob("log.db*"))
    assert [each for each in plain if each[:16].encode() in everything or each[:16] in digest] == []
    assert [each for each in (key, key.hex().encode()) if each in everything] == []


def _start(host: HostProcess, project: Path, pin: str) -> Any:
    body = {"job": "main", "cwd": str(project), "inputs": {"pin": pin}}
    headers = {"Authorization": f"Bearer {Home(host.home).token()}", "Idempotency-Key": "nightly"}
    answer = httpx.post(f"{host.url}/v1/jobs", json=body, headers=headers, trust_env=False, timeout=60)
    return answer.json()["job"] if answer.is_success else answer.status_code


def _digests(home: Path) -> list[str]:
    with sqlite3.connect(Home(home).log_path) as database:
        rows = database.execute("SELECT data FROM notes WHERE key LIKE ?", (f"{RECEIPTS}%",)).fetchall()
    database.close()
    return [msgspec.json.decode(data, type=Receipt).digest for (data,) in rows]

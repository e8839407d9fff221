"""The guide is followed from its beginning to its end; the reference has every route and key."""

import hashlib
import hmac
import json
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from portico.doors.automations import automation_routes
from portico.doors.route import Route
from portico.events import AutomationPlan
from tests.doors.standing import standing
from tests.process import HostProcess, inside
from tests.test_docs import rows

GUIDE = (Path(__file__).parents[2] / "docs/guide/automation.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def verbs() -> list[list[str]]:
    """The commands of the page, in order, but for the one that starts the host."""
    lines = re.findall(r"^    portico (.*)$", GUIDE, re.MULTILINE)
    return [shlex.split(line) for line in lines if not line.startswith("serve")]


def wait_for(http: httpx.Client, path: str, found: Callable[[Any], bool]) -> Any:
    """A host in another process: asked until it has what is waited for."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        answer = http.get(path).json()
        if found(answer):
            return answer
        time.sleep(0.05)
    raise AssertionError(answer)


def test_the_guide_works(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (entry,), (settings, automations) = blocks("json"), blocks("toml")
    (tmp_path / "portico.entry.json").write_text(entry)
    (tmp_path / "run-tests.sh").write_text("test -s portico-demo.md\n")
    home.mkdir()
    (home / "settings.toml").write_text(settings)
    (home / "automations.toml").write_text(automations)
    with HostProcess(home, HOME=str(tmp_path)) as host:
        said = _follow(home)
        assert "At 07:00 on Monday through Friday (Europe/Berlin)" in said["automations add morning-review"]
        assert "nightly-review" in said["automations validate"]
        headers = {"Authorization": f"Bearer {(home / 'token').read_text().strip()}"}
        with httpx.Client(base_url=host.url, headers=headers, trust_env=False, timeout=30) as http:
            inbox = wait_for(http, "/v1/inbox", lambda answer: "Commit it?" in json.dumps(answer))
            question, *_ = [each["id"] for each in inbox["waiting"] if "Commit it?" in each["text"]]
            wait_for(http, "/v1/notices?limit=9", lambda _: question in told(tmp_path))
            assert f"{host.url}/app/inbox/{question}" in told(tmp_path)
            answered = http.post(f"/v1/questions/{question}", json={"text": "Commit"})
            assert answered.status_code == 200, answered.text
            path = "/v1/automations/morning-review/runs"
            runs = wait_for(http, path, lambda answer: "ended" in answer["runs"][0])
            assert runs["runs"][0]["status"] == "succeeded", runs
            secret = said["automations add on-push"].rpartition(": ")[2].strip()
            body = b'{"ref": "refs/heads/main"}'
            signed = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
            answer = http.post("/hooks/on-push", content=body, headers={"X-Hub-Signature-256": f"sha256={signed}"})
            assert answer.status_code == 202, answer.text
            listed = http.get("/v1/automations").json()["automations"]
    assert [each["plan"]["budget"] for each in listed if each["name"] == "morning-review"] == [{"dollars": 2.0}]
    names = {"morning-review", "nightly-review", "what-went-wrong", "on-push", "inbox"}
    assert {each["name"] for each in listed} == names


def told(folder: Path) -> str:
    """What the program of the page's settings has got so far."""
    path = folder / "notices.jsonl"
    return path.read_text() if path.exists() else ""


def _follow(home: Path) -> dict[str, str]:
    """What each command of the page printed, by its first three words."""
    said: dict[str, str] = {}
    for words in verbs():
        done = inside(home, *words)
        assert done.returncode == 0, (words, done.stderr)
        said[" ".join(words[:3])] = done.stdout
    return said


async def test_every_route_is_in_the_reference(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        table = automation_routes(here.server.app, here.server.automations)
    offered = {
        (f"{method} {each.path}", each.scope) for each in table if isinstance(each, Route) for method in each.methods
    }
    named = [row for row in rows("reference/automation.md") if " /" in row[0] and "*" not in row[0]]
    assert {(row[0].strip("`"), row[1]) for row in named} == offered


@pytest.mark.parametrize("key", [field.name for field in msgspec.structs.fields(AutomationPlan)])
def test_every_key_is_in_the_reference(key: str) -> None:
    assert any(f"`{key}`" in row[0] for row in rows("reference/automation.md"))

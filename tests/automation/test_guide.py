"""The guide is followed from its beginning to its end; the reference has every route and key."""

import json
import os
import re
import shlex
import subprocess
import textwrap
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from portico.doors.automations import automation_routes
from portico.features.automations.events import AutomationPlan
from portico.server.route import Route
from tests.doors.standing import standing
from tests.process import PORTICO, HostProcess, environment, inside
from tests.test_docs import rows

GUIDE = (Path(__file__).parents[2] / "docs/guide/automation.md").read_text("utf-8")
STEPS = re.compile(
    r"^```(?P<kind>json|toml|sh)\n(?P<block>.*?)^```$|(?P<lines>(?:^    \S[^\n]*\n)+)", re.MULTILINE | re.DOTALL
)


class Reader:
    """Who follows the page from nothing, with an empty home and an empty folder: files are written where it says, its
    commands run in their order, and what a reader waits for is waited for. `portico` runs in this process, where the
    shell does not need it: a new Python for each takes a second."""

    def __init__(self, person: Path, stack: ExitStack) -> None:
        self.person, self.home, self._stack = person, person / ".local/share/portico", stack
        self.folder = self.home.parent  # where the tests' programs run
        self.folder.mkdir(parents=True)
        self.url = ""
        self.said: list[str] = []
        self._tables = iter([(self.home / "settings.toml", "phone"), (self.home / "automations.toml", "nightly")])
        self._variables = ""

    def follow(self) -> None:
        for step in STEPS.finditer(GUIDE):
            if step["kind"] == "json":
                (self.folder / "portico.entry.json").write_text(step["block"])
            elif step["kind"] == "toml":
                self._write(step["block"])
            elif step["kind"] == "sh":
                self._shell(step["block"])
            else:
                self._type(textwrap.dedent(step["lines"]).splitlines())

    def _type(self, lines: list[str]) -> None:
        for line in lines:
            if line.startswith("portico serve"):
                self.url = self._stack.enter_context(HostProcess(self.home, HOME=str(self.person))).url
            elif line.startswith("portico "):
                self._portico(*shlex.split(line)[1:])
            else:
                self._shell(line)

    def _portico(self, *words: str) -> str:
        done = inside(self.home, *words, HOME=str(self.person))
        assert done.returncode == 0, (words, done.stderr)
        self.said.append(done.stdout)
        return done.stdout

    def _shell(self, text: str) -> None:
        if text.startswith("QUESTION="):
            with self.http() as http:
                wait_for(http, "/v1/inbox", lambda answer: "Commit it?" in json.dumps(answer))
                wait_for(http, "/v1/notices", lambda answer: json.dumps(answer).count('"delivered"') == 2)
        text = text.replace("http://127.0.0.1:8888", self.url)
        path = f"{Path(PORTICO).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euc", self._variables + text],
            cwd=self.folder,
            env=environment(HOME=str(self.person), PATH=path, PORTICO_HOME=str(self.home)),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, (text, done.stderr)
        self.said.append(done.stdout)
        self._variables += "".join(f"{line}\n" for line in text.splitlines() if re.match(r"[A-Z]+=", line))

    def _write(self, text: str) -> None:
        path, named = next(self._tables)
        path.write_text(text)
        with self.http() as http:
            wait_for(
                http, "/v1/settings" if named == "phone" else "/v1/automations", lambda it: named in json.dumps(it)
            )

    def http(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {(self.home / 'token').read_text().strip()}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=30)


def test_the_guide_works(tmp_path: Path) -> None:
    with ExitStack() as stack:
        reader = Reader(tmp_path, stack)
        reader.follow()
        with reader.http() as http:
            _check(http, "".join(reader.said))
    told = [json.loads(line) for line in (tmp_path / "notices.jsonl").read_text().splitlines()]
    links = {each["type"]: each["data"]["link"].removeprefix(reader.url) for each in told}
    assert len(told) == 2
    assert links["test"] == "/app"
    assert links["question"].startswith("/app/inbox/")


def _check(http: httpx.Client, said: str) -> None:
    for words in (
        "At 07:00 on Monday through Friday (Europe/Berlin)",
        "At 06:30 on Monday through Friday (Europe/Berlin)",
        "3 automations: nightly-review, what-went-wrong, triage",
        "*.csv in ",
        '{"run":"run-2"}',
    ):
        assert words in said, said
    path = "/v1/automations/morning-review/runs"
    (run,) = wait_for(http, path, lambda answer: "ended" in answer["runs"][0])["runs"]
    assert (run["status"], run["cause"]) == ("succeeded", "person"), run
    works = http.get(f"/v1/jobs/{run['job']}").json()["works"]
    assert (works[-1]["name"], works[-1]["status"]) == ("commit", "succeeded")
    (pushed,) = wait_for(http, "/v1/automations/on-push/runs", lambda answer: "ended" in answer["runs"][0])["runs"]
    assert (pushed["status"], pushed["cause"]) == ("succeeded", "hook")
    listed = http.get("/v1/automations").json()["automations"]
    assert [each["plan"]["budget"] for each in listed if each["name"] == "morning-review"] == [{"dollars": 2.0}]
    names = {"morning-review", "nightly-review", "what-went-wrong", "triage", "on-push", "inbox"}
    assert {each["name"] for each in listed} == names


def wait_for(http: httpx.Client, path: str, found: Callable[[Any], bool]) -> Any:
    """A host in another process: asked until it has what is waited for."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        answer = http.get(path).json()
        if found(answer):
            return answer
        time.sleep(0.05)
    raise AssertionError(answer)


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

"""Runs jobs with every kind of step on a real host that is killed again and again, and checks what is left.

    python -m tests.crash.workflow_driver --jobs 50 --kills 55 --seed 7 [--temporal]

It uses only what a user has: the command line, REST, the files of the workflows and git. At the end it also reads the
log. A wrong result, a second end, work that was repeated, a question that changed, an unknown value in a prompt, a
folder that was left, or a change in the user's checkout is an error.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.events import Record
from portico.kernel.log.sqlite import SqliteLog
from portico.testing.temporal import TemporalServer

Json = dict[str, Any]
WAIT_SECONDS = 240.0
"""For the last jobs after the last kill: with Temporal each lost work waits for a heartbeat."""
FOLDERS = 3
STOPPED = 0.1
"""Of the jobs."""
SECRET = "canary-5f1c7"

WORKFLOWS: dict[str, str] = {
    "values": """
inputs: {tag: {}, ledger: {}, count: {type: number, default: 5}}
steps:
  - id: plan
    prompt: '[[delay:30]] [[say:{"numbers": [1, 2, 3, 4, 5]}]] Plan {{ inputs.tag }}.'
    output: {schema: {numbers: [number]}}
  - id: items
    each: "{{ steps.plan.output.numbers }}"
    as: number
    name: "number {{ number }}"
    parallel: 3
    may_fail: true
    steps:
      - id: first
        run: |
          echo {{ run.id }} items:{{ number }} {{ run.attempt }} >> {{ inputs.ledger }}
          sleep 0.05; echo {{ number * 2 }}
      - id: second
        prompt: "[[delay:20]] [[say:got {{ steps.first.output }}]]"
        check: [{run: "test {{ number }} != 4"}]
        retry: {times: 0}
  - loop: {most: 5, until: "{{ steps.turn.output | length >= 3 }}"}
    steps:
      - {id: turn, run: "printf '%sx' {{ steps.turn.output or '' }}"}
  - parallel:
      - {id: pause, wait: 0.2}
      - {id: soft, run: "exit 3", may_fail: true}
      - steps:
          - {id: inner, run: "echo {{ run.id }} inner {{ run.attempt }} >> {{ inputs.ledger }}; echo in"}
  - if: "{{ steps.soft.outcome == 'failed' }}"
    id: branch
    steps: [{id: taken, run: "echo taken"}]
    else: [{id: other, run: "echo other"}]
result:
  done: "{{ steps.items.output }}"
  failed: "{{ steps.items.failed | map(attribute='name') | list }}"
  turn: "{{ steps.turn.output }}"
  inner: "{{ steps.inner.output }}"
  branch: "{{ steps.branch.output }}"
""",
    "people": """
inputs: {tag: {}, ledger: {}}
steps:
  - {id: plan, prompt: "[[delay:20]] [[say:the plan]] Plan {{ inputs.tag }}."}
  - {id: way, ask: "Way of {{ run.id }}?", choices: [Left, Right], show: ["{{ steps.plan.output }}"], expires: 3600}
  - if: "{{ steps.way.answer == 'Left' }}"
    id: left
    prompt: "[[delay:20]] [[say:went {{ steps.way.answer }}]] Go on."
    check:
      - {run: "echo {{ run.id }} check $(date +%s%3N) >> {{ inputs.ledger }}"}
      - {person: "Good, {{ run.id }}?"}
  - {id: note, ask: "Note of {{ run.id }}?"}
  - {id: keep, run: "echo {{ steps.note.answer }}"}
result: "{{ steps.left.output }}, {{ steps.keep.output }}"
""",
    "tree": """
inputs: {tag: {}, ledger: {}}
folder: worktree
branch: "work/{{ run.id }}"
steps:
  - {id: first, run: "echo {{ run.id }} first {{ run.attempt }} >> {{ inputs.ledger }}; echo first > first.txt"}
  - {id: write, prompt: "write agent-a.txt for {{ inputs.tag }}", check: [{files: {exist: [agent-a.txt]}}]}
  - id: lanes
    each: [a, b, c]
    parallel: 2
    folder: worktree
    may_fail: true
    name: "lane {{ item }}"
    steps:
      - {id: lane, run: "echo {{ item }} > lane-{{ item }}.txt; test {{ item }} != b"}
      - {id: more, prompt: "write agent-b.txt in a lane"}
      - {id: remove, run: "if test -f agent-b.txt; then mv agent-b.txt agent-{{ item }}-b.txt; fi"}
  - parallel:
      - {id: left, run: "echo left > left.txt"}
      - {id: right, run: "echo right > right.txt"}
    folder: worktree
  - {id: ok, ask: "Merge of {{ run.id }}?", show: [changes], choices: [Yes, No]}
  - {id: list, run: "git status --porcelain | wc -l; ls *.txt | tr '\\\\n' ' '"}
result: "{{ steps.list.output }}"
artifacts: ["first.txt"]
""",
    "web": """
inputs: {tag: {}, ledger: {}, url: {}}
steps:
  - id: send
    http:
      method: POST
      url: "{{ inputs.url }}/send/{{ run.id }}"
      headers: {Authorization: "Bearer {{ secrets.CANARY }}"}
      json: {tag: "{{ inputs.tag }}"}
    output: json
    secrets: [CANARY]
  - {id: flaky, http: {url: "{{ inputs.url }}/flaky/{{ run.id }}"}, retry: {times: 4, wait: 0.05}}
  - {id: env, run: 'echo "$CANARY" | wc -c; echo "$CANARY"', secrets: [CANARY]}
result: "{{ steps.send.output.tag }} {{ steps.flaky.output }} {{ steps.env.output }}"
""",
    "calls": """
inputs: {tag: {}, ledger: {}}
steps:
  - id: each
    each: [1, 2]
    parallel: 2
    steps: [{id: one, call: inner, inputs: {n: "{{ item }}", ledger: "{{ inputs.ledger }}"}}]
result: "{{ steps.each.output }}"
""",
    "inner": """
inputs: {n: {type: number}, ledger: {}}
steps:
  - {id: a, run: "echo {{ run.id }} a {{ run.attempt }} >> {{ inputs.ledger }}; sleep 0.1; echo {{ inputs.n * 10 }}"}
  - {id: b, prompt: "[[delay:20]] [[say:{{ steps.a.output }}]]"}
result: "{{ steps.b.output }}"
""",
    "hooks": """
inputs: {tag: {}, ledger: {}}
steps:
  - {id: before, run: "echo {{ run.id }} before {{ run.attempt }} >> {{ inputs.ledger }}; echo b"}
  - {id: hook, wait: {hook: ready}}
  - id: after
    run: |
      echo {{ run.id }} after {{ run.attempt }} >> {{ inputs.ledger }}
      echo {{ steps.before.output }}a
result: "{{ steps.after.output }}"
""",
    "checks": """
inputs: {tag: {}, ledger: {}}
folder: worktree
branch: "checks/{{ run.id }}"
steps:
  - id: fix
    prompt: "write agent-c.txt and count {{ inputs.tag }}"
    check:
      - {run: "echo x >> .git-count; test $(wc -l < .git-count) -ge 2"}
      - {files: {exist: [agent-c.txt], absent: [nothing.txt]}}
      - {model: "[[tool:job_boolean_true|fine]] Is {{ inputs.tag }} good?"}
    retry: {times: 5, wait: 0}
  - {id: check, run: "test -f agent-c.txt && git log --format=%s | head -1"}
result: "{{ steps.check.output }}"
""",
    "fails": """
inputs: {tag: {}, ledger: {}}
steps:
  - id: items
    each: [a, b, c, d]
    parallel: 2
    name: "file {{ item }}"
    steps: [{id: one, run: "sleep 0.05; test {{ item }} != c"}]
  - {run: "echo {{ run.id }} never {{ run.attempt }} >> {{ inputs.ledger }}"}
result: "{{ steps.items.output | length }} of 4"
""",
    "once": """
inputs: {tag: {}, ledger: {}}
steps:
  - id: a
    run: "echo {{ run.id }} once {{ run.attempt }} >> {{ inputs.ledger }}; sleep 0.2; echo done"
    on_interrupt: fail
    may_fail: true
  - {id: b, run: "echo {{ steps.a.outcome }}"}
result: "{{ steps.b.output }}"
""",
}
EXECUTED = {
    "values": {"inner", *(f"items:{number}" for number in range(1, 6))},
    "tree": {"first"},
    "people": {"check"},
    "hooks": {"before", "after"},
    "inner": {"a"},
    "once": {"once"},
}
"""The commands that write to the ledger: the steps whose attempts it counts."""
FILES = ("agent-a.txt", "agent-b.txt", "agent-c.txt", "first.txt", "lane-a.txt", "lane-c.txt", "left.txt", "right.txt")
TREE_FILES = (
    "agent-a-b.txt agent-a.txt agent-c-b.txt first.txt lane-a.txt lane-c.txt left.txt right.txt"  # the lane b failed
)
RESULTS: dict[str, Callable[[str], set[str]]] = {
    "values": lambda tag: {
        json.dumps(
            {
                "done": [f"got {number * 2}" for number in (1, 2, 3, 5)],
                "failed": ["number 4"],
                "turn": "xxx",
                "inner": "in",
                "branch": "taken",
            }
        )
    },
    "people": lambda tag: {json.dumps("went Left, a note")},
    "tree": lambda tag: {json.dumps(f"0\n{TREE_FILES} ")},
    "web": lambda tag: {json.dumps(f"{tag} ok {len(SECRET) + 1}\n[redacted: CANARY]")},
    "calls": lambda tag: {json.dumps(["10", "20"])},
    "hooks": lambda tag: {json.dumps("ba")},
    "checks": lambda tag: {json.dumps(f"write agent-c.txt and count {tag}")},
    "fails": lambda tag: {json.dumps("3 of 4")},
    "once": lambda tag: {json.dumps("succeeded"), json.dumps("failed")},
}
ANSWERS = {"Way": "left", "Good": "Yes", "Note": "a note", "Merge": "yes"}
STATUSES = {"fails": {"failed"}}


@dataclass
class Report:
    errors: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def wrong(self, text: str) -> None:
        self.errors.append(text)


class Web:
    """The service that `http` steps call: `/flaky` fails twice for each job."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.url = ""
        self.server: asyncio.Server | None = None

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self.server is not None:
            self.server.close()
            await self.server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
            body = await reader.readexactly(int(length[1])) if length else b""
            path = head.split()[1]
            self.seen[path] += 1
            status, answer = 200, body or b"{}"
            if path.startswith("/flaky"):
                status, answer = (200, b"ok") if self.seen[path] > 2 else (503, b"later")
            elif SECRET not in head:
                status, answer = 401, b"no secret"
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n".encode())
            writer.write(answer)
            await writer.drain()
        writer.close()


class Driver:
    def __init__(self, folder: Path, seed: int, temporal: str = "") -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.home = folder / "home"
        self.ledger = folder / "ledger"
        self.ledger.touch()
        self.projects = [folder / f"project-{number}" for number in range(FOLDERS)]
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        self.web = Web()
        self.report = Report()
        self.expected: dict[str, tuple[str, str]] = {}
        """The tag of each job, with its workflow and its folder."""
        self.stopped: set[str] = set()
        self.canceled: list[str] = []
        self.stopping: dict[str, bool] = {}
        self.questions: dict[str, set[str]] = defaultdict(set)
        self._known: dict[str, str] = {}
        self.agent = ["--agent", "scripted", "--script", str(folder / "script.json")]
        self.environment = dict(os.environ)
        self.answers = ANSWERS
        self.pace = 1.2
        """The longest time between two kills, in seconds."""
        self._prepare(temporal)

    def _prepare(self, temporal: str) -> None:
        self.home.mkdir()
        settings = '[notices]\nallow_private = ["127.0.0.1"]\n'
        if temporal:
            settings += f'[jobs]\nengine = "temporal"\naddress = "{temporal}"\n'
        (self.home / "settings.toml").write_text(settings)
        rules = [
            {"match": f"write {name}", "steps": [{"do": "write", "path": name, "text": "x", "ask": False}]}
            for name in FILES[:3]
        ]
        (self.folder / "script.json").write_text(json.dumps({"rules": rules}))
        for project in self.projects:
            jobs = project / ".portico/jobs"
            jobs.mkdir(parents=True)
            for name, text in WORKFLOWS.items():
                (jobs / f"{name}.yaml").write_text(text)
            self.git(project, "init", "-q", "-b", "main")
            self.git(project, "add", "--all")
            self.git(project, "commit", "-q", "-m", "start")
        self._portico("secrets", "set", "CANARY", stdin=SECRET)

    def _portico(self, *arguments: str, stdin: str = "") -> str:
        command = [sys.executable, "-m", "portico", *arguments, "--home", str(self.home)]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout

    def git(self, folder: Path, *arguments: str) -> str:
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout

    # -- the host ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        command = [sys.executable, "-m", "portico", "serve", "--port", "0", "--print-ready", "--without-token"]
        command += [*self.agent, "--home", str(self.home)]
        with (self.folder / "host.log").open("a") as log:
            self.process = subprocess.Popen(  # noqa: ASYNC220 - a test has the time
                command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=log, env=self.environment
            )
        assert self.process.stdout is not None
        line = await asyncio.to_thread(self.process.stdout.readline)
        while line and not line.startswith("READY:"):
            line = await asyncio.to_thread(self.process.stdout.readline)
        assert line, "the host did not start: " + (self.folder / "host.log").read_text()[-2000:]
        self.url = f"http://127.0.0.1:{line[6:].strip()}"

    async def end(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        await asyncio.to_thread(self.process.wait, 60)
        if self.process.stdout is not None:
            self.process.stdout.close()

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the answer; 0: the host was killed in the middle."""
        try:
            async with httpx.AsyncClient(timeout=60) as client:
                answer = await client.request(method, f"{self.url}{path}", json=body)
            return answer.status_code, answer.json() if answer.content else None
        except (httpx.TransportError, ValueError):
            return 0, None

    # -- what happens ------------------------------------------------------------------------------------------

    async def run(self, jobs: int, kills: int) -> Report:
        await self.web.start()
        try:
            await self._run(jobs, kills)
        finally:
            await self.web.close()
        self.check_files()
        await self.check_log()
        return self.report

    async def _run(self, jobs: int, kills: int) -> None:
        await self.start()
        person = asyncio.create_task(self._person())
        starts = asyncio.create_task(self._starts(jobs))
        try:
            for _ in range(kills):
                await asyncio.sleep(self.rng.uniform(0.05, self.pace))
                orderly = self.rng.random() < 0.25 and self.report.counts["kills"] > 0  # the first one is a kill
                await self.end(signal.SIGTERM if orderly else signal.SIGKILL)
                self.report.counts["stops" if orderly else "kills"] += 1
                await self.start()
            await starts
            await self._until_done()
        finally:
            person.cancel()
            starts.cancel()
            await asyncio.gather(person, starts, return_exceptions=True)
            assert self.process is not None
            if self.process.poll() is None:
                await self.check_rest()
                await self.end(signal.SIGTERM)

    async def _starts(self, jobs: int) -> None:
        names = [name for name in WORKFLOWS if name != "inner"]
        for number in range(jobs):
            name, tag = names[number % len(names)], f"tag{number}"
            project = self.rng.choice(self.projects)
            self.expected[tag] = (name, str(project))
            inputs = {"tag": tag, "ledger": str(self.ledger)} | ({"url": self.web.url} if name == "web" else {})
            while tag not in await self._tags():
                await self.call("POST", "/v1/jobs", {"job": name, "cwd": str(project), "inputs": inputs})
            await asyncio.sleep(self.rng.uniform(0, 0.6))

    async def _tags(self) -> dict[str, Json]:
        """The jobs that were started, by tag. The listing has no inputs, so each job is read once."""
        found: dict[str, Json] = {}
        while True:
            status, listing = await self.call("GET", "/v1/jobs")
            if status == 200:
                break
            await asyncio.sleep(0.1)
        for job in listing["jobs"]:
            if job["id"] not in self._known:
                status, whole = await self.call("GET", f"/v1/jobs/{job['id']}")
                if status != 200:
                    return await self._tags()
                self._known[job["id"]] = whole["inputs"].get("tag", "")
            if tag := self._known[job["id"]]:
                if tag in found:
                    self.report.wrong(f"{tag} was started twice: {found[tag]['id']}, {job['id']}")
                found[tag] = job
        return found

    async def _person(self) -> None:
        """Answers each question after a while, sometimes wrongly first, and calls hooks."""
        called: set[str] = set()
        while True:
            await asyncio.sleep(self.rng.uniform(0.05, 0.4))
            status, inbox = await self.call("GET", "/v1/inbox")
            for item in inbox["waiting"] if status == 200 else []:
                question = item.get("question") or {}
                text = question.get("text", "")
                self.questions[text].add(question.get("id", ""))
                if self.rng.random() < 0.4:
                    continue
                await self._answer(question["id"], text)
            status, listing = await self.call("GET", "/v1/jobs")
            for job in listing["jobs"] if status == 200 else []:
                await self._stop(job)
                if job["status"] == "waiting" and job.get("waits_for", "person") == "person":
                    self.report.counts["resumed by a person"] += 1
                    await self.call("POST", f"/v1/jobs/{job['id']}/resume", {})
                if job["name"] == "hooks" and job["id"] not in called and self.rng.random() < 0.3:
                    status, _ = await self.call("POST", f"/v1/jobs/{job['id']}/hooks/ready", {})
                    if status == 200:
                        called.add(job["id"])

    async def _stop(self, job: Json) -> None:
        """Some jobs are stopped while they run, and the host may be killed during the stop."""
        stopped = self.stopping.setdefault(job["id"], self.rng.random() < STOPPED)
        if stopped and job["name"] != "inner" and not job.get("ended") and self.rng.random() < 0.2:
            self.report.counts["jobs stopped"] += 1
            self.stopped.add(job["id"])
            await self.call("POST", f"/v1/jobs/{job['id']}/stop", {})

    async def _answer(self, ident: str, text: str) -> None:
        answer = next((value for word, value in self.answers.items() if text.startswith(word)), None)
        if answer is None:
            self.report.wrong(f"an unknown question: {text!r}")
            return
        if text.startswith(("Way", "Merge")) and self.rng.random() < 0.2:
            status, said = await self.call("POST", f"/v1/questions/{ident}", {"text": "Straight on"})
            if status not in (0, 400, 404, 409):
                self.report.wrong(f"a wrong answer to {text!r} returned {status}: {said}")
        status, said = await self.call("POST", f"/v1/questions/{ident}", {"text": answer})
        self.report.counts["answers"] += status == 200
        if status not in (0, 200, 404, 409):
            self.report.wrong(f"the answer to {text!r} returned {status}: {said}")

    async def _until_done(self) -> None:
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            status, listing = await self.call("GET", "/v1/jobs")
            if status == 200 and all(job.get("ended") for job in listing["jobs"]):
                return
            await asyncio.sleep(0.3)
        for job in listing["jobs"]:
            if not job.get("ended"):
                self.report.wrong(f"{job['id']} ({job['name']}) has no end: {job['status']} {job.get('reason', '')}")

    # -- what is left ------------------------------------------------------------------------------------------

    async def check_rest(self) -> None:
        tags = await self._tags()
        for tag, (name, _) in self.expected.items():
            if tag not in tags:
                self.report.wrong(f"{tag} ({name}) was never started")
                continue
            job = tags[tag]
            if job["id"] in self.stopped and job["status"] == "canceled":
                self.canceled.append(name)
                continue
            if job["status"] not in STATUSES.get(name, {"succeeded"}):
                self.report.wrong(f"{job['id']} ({name}) {job['status']}: {job.get('error')}")
            elif json.dumps(job.get("result")) not in RESULTS[name](tag):
                self.report.wrong(f"{job['id']} ({name}) has the result {json.dumps(job.get('result'))}")
            if name == "fails" and "1 of 4 items failed: file c" not in job.get("error", ""):
                self.report.wrong(f"{job['id']} ({name}) has the error {job.get('error')}")
        for text, idents in self.questions.items():
            if len(idents) > 1:
                self.report.wrong(f"{text!r} was asked as {sorted(idents)}")
        status, inbox = await self.call("GET", "/v1/inbox")
        if status == 200 and inbox["waiting"]:
            self.report.wrong(f"the inbox still has {[each.get('title') for each in inbox['waiting']]}")

    def check_files(self) -> None:
        for project in self.projects:
            if changed := self.git(project, "status", "--porcelain"):
                self.report.wrong(f"{project.name} was changed: {changed}")
            if len(trees := self.git(project, "worktree", "list").splitlines()) > 1:
                self.report.wrong(f"{project.name} has worktrees: {trees[1:]}")
            left = project.with_name(f"{project.name}.worktrees")
            if left.exists() and any(left.iterdir()):
                self.report.wrong(f"{left.name} still has {[each.name for each in left.iterdir()]}")
            if self.git(project, "branch", "--show-current").strip() != "main":
                self.report.wrong(f"{project.name} is on another branch")
            if stashes := self.git(project, "stash", "list"):
                self.report.wrong(f"{project.name} has stashes: {stashes}")
        self._check_branches()

    def _check_branches(self) -> None:
        found: Counter[str] = Counter()
        for project in self.projects:
            for branch in self.git(project, "branch", "--format=%(refname:short)").split():
                kind, _, job = branch.partition("/")
                if branch == "main":
                    continue
                found[kind] += re.fullmatch(r"job-\d+", job) is not None
                files = self.git(project, "ls-tree", "--name-only", branch).split()
                whole = re.fullmatch(r"job-\d+", job) is not None and job not in self.stopped
                if kind == "work" and whole and [*files[1:]] != TREE_FILES.split():
                    self.report.wrong(f"the branch {branch} of {project.name} has {files}")
                lane = "-job-\\d+-\\w+-r-[23]-[0-2]" if job.split("-job")[0] in self.stopped else "-job-\\d+-\\w+-r-2-1"
                if not re.fullmatch(rf"work/job-\d+({lane})?|checks/job-\d+", branch):
                    self.report.wrong(f"an unknown branch of {project.name}: {branch}")
        kinds = Counter(name for name, _ in self.expected.values())
        for kind, name in (("work", "tree"), ("checks", "checks")):
            if not kinds[name] - self.canceled.count(name) <= found[kind] <= kinds[name]:
                self.report.wrong(f"{found[kind]} branches {kind}/ for {kinds[name]} jobs")

    async def check_log(self) -> None:
        log = await SqliteLog.open(self.home / "log.db")
        try:
            records: list[Record] = []
            while more := await log.read_all(after=records[-1].seq if records else 0, limit=10_000):
                records += more
        finally:
            await log.close()
        self.report.counts["events"] = len(records)
        jobs: dict[str, list[e.Event]] = defaultdict(list)
        for record in records:
            if record.channel.startswith("job/"):
                jobs[record.channel.removeprefix("job/")].append(record.event)
            if isinstance(record.event, e.TurnStarted):
                text = record.event.message.text
                if "MISSING" in text or "{{" in text:
                    self.report.wrong(f"a prompt with an unknown value: {text!r}")
            if SECRET.encode() in record.data:
                self.report.wrong(f"the secret is in the log: {record.channel} {record.pos}")
        ledger = Counter(self.ledger.read_text().splitlines())
        for job, events in jobs.items():
            self._check_job(job, events, ledger)
        self._check_calls(jobs)
        self._check_checks(records, ledger)
        self._check_turns(records)

    def _check_job(self, job: str, events: list[e.Event], ledger: Counter[str]) -> None:
        ends = [event for event in events if isinstance(event, je.JobEnded)]
        if len(ends) != 1 or not isinstance(events[-1], je.JobEnded):
            self.report.wrong(f"{job} has {len(ends)} ends; its last event is {type(events[-1]).__name__}")
        final: dict[str, str] = {}
        attempts: Counter[str] = Counter()
        for event in events:
            if isinstance(event, je.WorkStarted):
                attempts[event.path] += 1
                if event.path in final:
                    self.report.wrong(f"{job} {event.path} has ended ({final[event.path]}) and ran again")
                if event.attempt != attempts[event.path]:
                    self.report.wrong(f"{job} {event.path} attempt {event.attempt}, not {attempts[event.path]}")
            elif isinstance(event, je.WorkEnded) and event.outcome != "interrupted":
                final[event.path] = event.outcome
        self.report.counts["works"] += len(attempts)
        self.report.counts["repeated after a kill"] += sum(attempts.values()) - len(attempts)
        self._check_ledger(job, events, ledger)
        for path, place, most in ((f"/send/{job}", "r.0", 1), (f"/flaky/{job}", "r.1", 5)):
            if self.web.seen[path] > attempts[place] * most:
                self.report.wrong(f"{job} sent {self.web.seen[path]} requests {path} in {attempts[place]} attempts")

    def _check_ledger(self, job: str, events: list[e.Event], ledger: Counter[str]) -> None:
        """Each attempt of a command executes it at most once, and a job that succeeded has executed all of them."""
        started = events[0]
        assert isinstance(started, je.JobStarted)
        lines = [line for line in ledger if line.split()[0] == job]
        for line in lines:
            if " check " not in line and ledger[line] > 1:
                self.report.wrong(f"{job}: one attempt has executed its command {ledger[line]} times: {line!r}")
        known = EXECUTED.get(started.name, set())
        found = {line.split()[1] for line in lines}
        ended = events[-1]
        succeeded = isinstance(ended, je.JobEnded) and ended.outcome == "succeeded"
        missing = known - found if succeeded and started.name not in ("people", "once") else set[str]()
        if found - known or missing:
            self.report.wrong(f"{job} ({started.name}) executed {sorted(found)}, not {sorted(known)}")

    def _check_calls(self, jobs: dict[str, list[e.Event]]) -> None:
        """Each step that calls a job has started it once."""
        starts = Counter(event.by for events in jobs.values() if isinstance(event := events[0], je.JobStarted))
        for by, count in starts.items():
            if by.startswith("job:") and count > 1:
                self.report.wrong(f"the call {by} has started {count} jobs")

    def _check_checks(self, records: list[Record], ledger: Counter[str]) -> None:
        """A check that is recorded as passed does not run again for the same work."""
        jobs = {event.task: event.job for record in records if isinstance(event := record.event, je.TaskStarted)}
        for record in records:
            event, job = record.event, jobs.get(record.channel.removeprefix("task/"))
            if not isinstance(event, je.TaskDecided) or event.check != "check 0" or not event.passed:
                continue
            times = [int(line.split()[2]) for line in ledger if line.startswith(f"{job} check ")]
            if later := [each for each in times if each > record.time]:
                self.report.wrong(f"{job}: its check has passed and ran again {len(later)} times")

    def _check_turns(self, records: list[Record]) -> None:
        """A turn that has completed is not repeated, unless a check failed."""
        started: dict[str, je.TaskStarted] = {}
        prompts: dict[tuple[str, str], str] = {}
        done: dict[tuple[str, str], list[str]] = defaultdict(list)
        failed: set[str] = set()
        for record in records:
            event = record.event
            if isinstance(event, je.TaskStarted):
                started[event.task] = event
            elif isinstance(event, je.TaskDecided) and event.passed is False:
                failed.add(record.channel.removeprefix("task/"))
            elif isinstance(event, e.TurnStarted) and event.by.startswith("task:"):
                prompts[record.channel, event.turn] = event.by.removeprefix("task:")
            elif isinstance(event, e.TurnEnded) and event.outcome == "completed":
                task = started.get(prompts.get((record.channel, event.turn), ""))
                if task is not None and task.job is not None:
                    done[task.job, task.path].append(task.task)
        for (job, path), tasks in done.items():
            judged = self._judged(records, tasks)
            if len(tasks) - judged > 1 and not failed.intersection(tasks):
                self.report.wrong(f"{job} {path}: the agent completed the same work {len(tasks)} times ({tasks})")

    @staticmethod
    def _judged(records: list[Record], tasks: list[str]) -> int:
        """Turns of judges in these tasks."""
        return sum(
            isinstance(each.event, e.TurnStarted)
            and each.event.by.removeprefix("task:") in tasks
            and "job_boolean_true" in each.event.message.text
            for each in records
        )


async def drive(folder: Path, seed: int, jobs: int, kills: int, temporal: str = "") -> Report:
    driver = Driver(folder, seed, temporal)
    try:
        return await driver.run(jobs, kills)
    finally:
        if driver.process is not None and driver.process.poll() is None:
            driver.process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--kills", type=int, default=55)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--temporal", action="store_true", help="use the Temporal engine")
    parser.add_argument("--folder", type=Path, help="keep everything here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="portico-driver-") as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        server = TemporalServer(Path(scratch) / "temporal").start() if given.temporal else None
        try:
            address = server.address if server is not None else ""
            report = asyncio.run(drive(folder, given.seed, given.jobs, given.kills, address))
        finally:
            if server is not None:
                server.stop(at_once=True)
    print(dict(report.counts))
    print("\n".join(report.errors) or "no errors")
    sys.exit(1 if report.errors else 0)


if __name__ == "__main__":
    main()

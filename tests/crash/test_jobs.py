"""Real servers are killed in the middle of jobs; the next start goes on, and the log tells one clean story.

PORTICO_KILLS=N asks for N random kills per run (default 3) and, above the default, for every named point.
"""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from portico.features.jobs import events as je
from portico.features.jobs import to_json
from portico.kernel import events as e
from portico.kernel.events import Record
from portico.kernel.log.sqlite import SqliteLog
from tests.jobs.playing import Data, make, ok, task
from tests.jobs.samples import alt, loop, par, ref, seq

KILLS = int(os.environ.get("PORTICO_KILLS", "3"))
POINTS = ["work-started:3", "task-after-end:2", "work-ended:3", "job-before-end:1"]
if KILLS > 3:
    POINTS += ["task-before-end:2", "job-after-end:1", "task-before-end:4", "work-started:1"]
PREFIX = "The session crashed, please redo"


def by_command(command: str) -> Data:
    """Whether it succeeds is up to a command, so that it does not depend on how often a process has seen it."""
    return task("[[delay:20]] [[say:x]]", criteria={"command": command, "failureAction": {"retryTimes": 0}})


TASKS: dict[str, Data] = {
    "step": task("[[delay:40]] [[gap:2]] [[deltas:5]]"),
    "mark": by_command("echo >> rounds"),
    "enough": by_command("test $(wc -l < rounds) -ge 2"),
    "yes": ok(),
}
NESTED = seq(
    ref("step"),
    loop(
        par(ref("step"), seq(ref("step"), ref("mark")), par(ref("step"), ref("yes"), concurrency=1)),
        postCondition=[False, ref("enough")],
    ),
    alt(ref("yes"), trueWork=ref("step")),
)


class App:
    """One home folder and the servers that run on it, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.entry = folder / "entry.json"
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    async def start(self, kill_at: str = "") -> None:
        command = [sys.executable, "-m", "portico", "serve", "--port", "0", "--print-ready", "--agent", "scripted"]
        command += ["--without-token", "--entry", str(self.entry), "--home", str(self.folder / "home")]
        environ = {**os.environ, "PORTICO_KILL_AT": kill_at}
        self.process = subprocess.Popen(  # noqa: ASYNC220 - a test has the time
            command, env=environ, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self.process.stdout is not None
        line = await asyncio.to_thread(self.process.stdout.readline)
        if not line and kill_at:
            return  # killed while it took up the job
        assert line.startswith("READY:"), line
        self.url = f"http://127.0.0.1:{line[6:].strip()}/api/copilot"

    async def ask(self, path: str, body: str = "") -> Any:
        async with httpx.AsyncClient() as client:
            return (await client.post(f"{self.url}/{path}", content=body, timeout=30)).json()

    async def heard(self, token: str) -> list[Data]:
        """What is new of the only job, however long it takes; nothing: it is over."""
        while (answer := await self.ask(f"job/job-1/live/{token}")) == {"error": "HttpRequestTimeout"}:
            pass
        elements: list[Data] = answer.get("responses", [])
        return elements

    async def start_job(self) -> None:
        """A server that is killed before it can answer has started the job or not: both are fine, once."""
        with contextlib.suppress(httpx.TransportError):
            assert "jobId" in await self.ask("job/start/main", str(self.work))

    async def question(self) -> Data:
        """The one that waits for a person, as soon as there is one."""
        async with asyncio.timeout(30), httpx.AsyncClient() as client:
            while True:
                found = (await client.get(f"{self.url.partition('/api')[0]}/v1/inbox")).json()
                if found["waiting"]:
                    return dict(found["waiting"][0])
                await asyncio.sleep(0.05)  # there is no event to wait for over this door but the board's

    async def answer(self, question: str, label: str) -> None:
        async with httpx.AsyncClient() as client:
            url = f"{self.url.partition('/api')[0]}/v1/questions/{question}"
            assert (await client.post(url, json={"text": label})).is_success

    async def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        await self.dead()

    async def dead(self) -> int:
        assert self.process is not None
        code = await asyncio.to_thread(self.process.wait, 30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    async def finished(self) -> str:
        """The status of the only job when it is over, read from its stream."""
        async with asyncio.timeout(40):
            while "error" not in await self.ask("job/job-1/live/watch"):
                pass
        status: str = (await self.ask("job/job-1/status"))["status"]
        return status

    async def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            await self.dead()

    async def records(self) -> list[Record]:
        log = await SqliteLog.open(self.folder / "home/log.db")
        try:
            return await log.read_all(limit=10_000)
        finally:
            await log.close()


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    app = App(tmp_path)
    yield app
    if app.process is not None and app.process.poll() is None:
        await app.kill()


def prepare(app: App, work: Data, tasks: dict[str, Data] = TASKS) -> None:
    app.entry.write_bytes(to_json(make(tasks, work)))


def check(records: list[Record]) -> None:
    """Every beginning has one end, nothing with an outcome ran again, and every channel is without a gap."""
    last: Counter[str] = Counter()
    for record in records:
        assert record.pos > last[record.channel]
        last[record.channel] = record.pos
    events = [record.event for record in records]
    assert sum(isinstance(event, je.JobEnded) for event in events) == 1
    tasks = Counter(event.task for event in events if isinstance(event, je.TaskStarted))
    works = Counter(event.task for event in events if isinstance(event, je.WorkStarted))
    assert set(tasks.values()) == set(works.values()) == {1}
    assert tasks == Counter(event.task for event in events if isinstance(event, je.TaskEnded))
    assert works == Counter(event.task for event in events if isinstance(event, je.WorkEnded))
    final: set[str] = set()
    attempts: Counter[str] = Counter()
    for event in events:
        if isinstance(event, je.WorkStarted):
            assert event.path not in final, f"{event.path} has an outcome and ran again"
            attempts[event.path] += 1
            assert event.attempt == attempts[event.path]
        elif isinstance(event, je.WorkEnded) and event.outcome != "interrupted":
            final.add(event.path)
    again = {event.task for event in events if isinstance(event, je.TaskStarted) and event.attempt > 1}
    for event in events:
        if isinstance(event, e.TurnStarted) and event.by.removeprefix("task:") in again:
            assert event.message.text.startswith(PREFIX)


@pytest.mark.parametrize("seed", range(max(1, KILLS // 10)))
async def test_random_kills(app: App, seed: int) -> None:
    prepare(app, NESTED)
    chance = random.Random(seed)
    await app.start()
    await app.start_job()
    for _ in range(min(KILLS, 10)):
        await asyncio.sleep(chance.uniform(0.02, 0.35))
        await app.kill()
        await app.start()
    assert await app.finished() == "Succeeded"
    await app.stop()
    records = await app.records()
    check(records)
    paths = {record.event.path for record in records if isinstance(record.event, je.WorkStarted)}
    assert {"r.0", "r.1#0.0", "r.1#0.1.0", "r.1#0.1.1", "r.1#0.2.0", "r.1#0>", "r.2|?", "r.2|1"} <= paths


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_at_a_named_point(app: App, point: str) -> None:
    prepare(app, seq(ref("step"), par(ref("step"), ref("step")), ref("yes")))
    await app.start(point)
    await app.start_job()
    assert await app.dead() == -signal.SIGKILL
    await app.start()
    assert await app.finished() == "Succeeded"
    await app.stop()
    check(await app.records())


async def test_whoever_kills_the_host_on_an_answer_is_not_told_the_same_again(app: App) -> None:
    """More often than not the next start repeated the answer: its reader's position was not durable yet."""
    prepare(app, seq(*[ref("step")] * 4))
    await app.start()
    await app.start_job()
    seen: list[Data] = []
    kills = 0
    while heard := await app.heard("me"):
        seen += heard
        if kills < 3:
            kills += 1
            await app.kill()
            await app.start()
    assert seen == (await app.ask("job/job-1/history"))["responses"]
    assert seen[-1] == {"callback": "jobSucceeded"}


async def test_canceled_stays_canceled(app: App) -> None:
    """Killed between the word to stop and the end of the stop."""
    prepare(app, par(ref("hang"), ref("step")), {**TASKS, "hang": task("[[hang]]")})
    await app.start("job-stopping:1")
    await app.start_job()
    with pytest.raises(httpx.TransportError):
        await app.ask("job/job-1/stop")
    await app.dead()
    await app.start()
    assert await app.finished() == "Canceled"
    await app.kill()
    await app.start()
    assert (await app.ask("job/job-1/status"))["status"] == "Canceled"
    await app.stop()
    check(await app.records())


async def test_a_graceful_stop_is_no_end_either(app: App) -> None:
    prepare(app, seq(ref("step"), ref("step"), ref("step")))
    await app.start()
    await app.start_job()
    await app.stop()
    await app.start()
    assert await app.finished() == "Succeeded"
    await app.stop()
    check(await app.records())


@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGKILL])
async def test_a_question_and_its_link_outlive_the_host(app: App, way: signal.Signals) -> None:
    """The agent repeated all its work after a plain stop, and asked a new question."""
    checked = task("[[say:x]]", criteria=[{"command": "echo >> ran"}, {"person": {"question": ["Good?"]}}])
    ask = {"kind": "Ask", "question": ["Way?"], "choices": [{"label": "left", "work": ref("yes")}, {"label": "right"}]}
    prepare(app, seq(ref("checked"), ask), {**TASKS, "checked": checked})
    await app.start()
    await app.start_job()
    for answer in ("yes", "left"):
        before = await app.question()
        assert app.process is not None
        app.process.send_signal(way)
        await app.dead()
        await app.start()
        assert await app.question() == before
        await app.answer(before["id"], answer)
    assert await app.finished() == "Succeeded"
    await app.stop()
    records = await app.records()
    check(records)
    assert (app.work / "ran").read_text() == "\n"
    assert sum(isinstance(record.event, e.QuestionAsked) for record in records) == 2

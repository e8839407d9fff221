"""Real servers are killed in the middle of a workflow; the next start continues, and the result is the same.

PORTICO_KILLS=N asks for N random kills per run (default 3) and, above the default, for every named point."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
import pytest

from portico.features.jobs import events as je
from portico.features.jobs import to_json
from tests.crash.test_jobs import KILLS, App, check
from tests.jobs.playing import make, ok

TEXT = """
    steps:
      - {id: list, run: "echo '[1, 2, 3, 4, 5, 6]'", output: json}
      - id: items
        each: "{{ steps.list.output }}"
        name: "number {{ item }}"
        parallel: 3
        may_fail: true
        steps:
          - id: work
            prompt: "[[delay:20]] [[say:did {{ item }}]]"
            check: [{run: "test {{ item }} != 4"}]
            retry: {times: 0}
          - {id: after, run: "echo {{ steps.work.output }}"}
      - loop: {most: 3, until: "{{ steps.count.output == '3' }}"}
        steps:
          - {id: count, run: "echo 3"}
      - parallel:
          - {id: pause, wait: 0.05}
          - {id: soft, run: "exit 3", may_fail: true}
    result:
      done: "{{ steps.items.output }}"
      failed: "{{ steps.items.failed | map(attribute='name') | list }}"
      soft: "{{ steps.soft.outcome }}"
"""
RESULT = {"done": [f"did {number}" for number in (1, 2, 3, 5, 6)], "failed": ["number 4"], "soft": "failed"}
POINTS = ["work-started:4", "task-before-end:5", "work-ended:2", "job-before-end:1"]
if KILLS > 3:
    POINTS += [
        f"{point}:{count}" for point in ("work-started", "task-after-end", "task-before-end") for count in (1, 9)
    ]


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    app = App(tmp_path)
    app.entry.write_bytes(to_json(make({"yes": ok()})))
    folder = app.work / ".portico/jobs"
    folder.mkdir(parents=True)
    (folder / "flow.yaml").write_text(dedent(TEXT))
    yield app
    if app.process is not None and app.process.poll() is None:
        await app.kill()


async def start_flow(app: App) -> None:
    """A server that is killed before it can answer has started the job or not."""
    try:
        await asked(app, "POST", "/v1/jobs", json={"job": "flow", "cwd": str(app.work)})
    except httpx.TransportError:
        return


async def asked(app: App, method: str, path: str, **more: Any) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        answer = await client.request(method, f"{app.url.partition('/api')[0]}{path}", timeout=30, **more)
    found: dict[str, Any] = answer.json()
    assert answer.is_success, found
    return found


async def finish(app: App) -> None:
    assert await app.finished() == "Succeeded"
    assert (await asked(app, "GET", "/v1/jobs/job-1/result"))["result"] == RESULT
    await app.stop()
    records = await app.records()
    check(records)
    ended = [record.event for record in records if isinstance(record.event, je.WorkEnded)]
    final = [(event.path, event.outcome) for event in ended if event.outcome != "interrupted"]
    assert len(final) == len(dict(final))


@pytest.mark.parametrize("seed", range(max(1, KILLS // 10)))
async def test_random_kills_of_a_workflow(app: App, seed: int) -> None:
    chance = random.Random(seed)
    await app.start()
    await start_flow(app)
    for _ in range(min(KILLS, 10)):
        await asyncio.sleep(chance.uniform(0.02, 0.3))
        await app.kill()
        await app.start()
    await finish(app)


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_of_a_workflow_at_a_named_point(app: App, point: str) -> None:
    await app.start(point)
    await start_flow(app)
    assert await app.dead() == -signal.SIGKILL
    await app.start()
    await finish(app)

"""A workflow with every kind of step is cut after each of its commits. Another host opens the copy of the log, and the
job ends there with the same result: every prompt is done once and every question is asked once."""

import asyncio
import contextlib
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

from portico.features.jobs import Jobs
from portico.features.jobs import events as je
from portico.features.jobs.workflow.files import load_text
from portico.kernel import events as e
from portico.kernel.events import Record
from portico.testing.fixtures import HostOpener
from tests.crash.test_every_commit import done, person
from tests.crash.test_jobs import check
from tests.jobs.playing import until_ended

TEXT = dedent("""
    steps:
      - {id: plan, prompt: '[[say:["a","b","c"]]]', output: json}
      - id: items
        each: "{{ steps.plan.output }}"
        name: "item {{ item }}"
        parallel: 2
        may_fail: true
        steps:
          - {id: one, run: "echo {{ item }}; test {{ item }} != c"}
      - {id: way, ask: "Way?", choices: [left, right], show: ["{{ steps.items.output }}"]}
      - if: "{{ steps.way.answer == 'left' }}"
        id: left
        prompt: "[[say:good]] Go {{ steps.way.answer }}."
        check: [{run: "true"}, {person: "Good?"}]
      - loop: {most: 3, until: "{{ steps.count.output == 'yes' }}"}
        steps:
          - {id: count, run: "echo yes"}
      - parallel:
          - {id: pause, wait: 0.01}
          - {id: soft, run: "exit 3", may_fail: true}
      - {id: inner, call: inner, inputs: {n: "{{ steps.items.output | length }}"}}
    result:
      items: "{{ steps.items.output }}"
      failed: "{{ steps.items.failed | map(attribute='name') | list }}"
      left: "{{ steps.left.output }}"
      answer: "{{ steps.way.answer }}"
      soft: "{{ steps.soft.outcome }}"
      inner: "{{ steps.inner.output }}"
""")
INNER = "inputs: {n: {type: number}}\nsteps: [{id: a, run: 'echo {{ inputs.n }}'}]\nresult: '{{ steps.a.output }}'"
RESULT = {
    "items": ["a", "b"],
    "failed": ["item c"],
    "left": "good",
    "answer": "left",
    "soft": "failed",
    "inner": "2",
}
PROMPTS = Counter(['[[say:["a","b","c"]]]', "[[say:good]] Go left."])


async def copies_of_one_run(open_host: HostOpener, folder: Path, work: Path) -> list[Path]:
    host = await open_host()
    made: list[Path] = []
    source = sqlite3.connect(open_host.path)

    def copy(records: Sequence[Record]) -> None:
        made.append(folder / f"{len(made)}")
        made[-1].mkdir()
        with contextlib.closing(sqlite3.connect(made[-1] / "log.db")) as target:
            source.backup(target)

    jobs = await Jobs.open(host)
    host.log.on_commit(copy)
    async with person(host):
        await jobs.start_job("main", cwd=str(work), by="test", entry=load_text(TEXT, "main.yaml", "main"))
        await until_ended(host.log, "job/job-1")
    await jobs.close()
    await open_host.close()
    source.close()
    return made


async def go_on(folder: Path) -> list[Record]:
    opener = HostOpener(folder)
    try:
        host = await opener()
        jobs = await Jobs.open(host)
        async with asyncio.timeout(30), person(host):
            await jobs.recover()
            await until_ended(host.log, "job/job-1")
            await jobs.close()
        return await host.log.read_all(limit=10_000)
    finally:
        await opener.close()


def called(records: list[Record]) -> set[str]:
    """The channels of the called job and of its tasks."""
    events = [record.event for record in records]
    return {"job/job-2"} | {
        f"task/{event.task}" for event in events if isinstance(event, je.TaskStarted) and event.job == "job-2"
    }


async def test_a_cut_after_any_commit_of_a_workflow_changes_nothing(open_host: HostOpener, tmp_path: Path) -> None:
    cuts, work = tmp_path / "cuts", tmp_path / "work"
    cuts.mkdir()
    (work / ".portico/jobs").mkdir(parents=True)
    (work / ".portico/jobs/inner.yaml").write_text(INNER)
    for folder in await copies_of_one_run(open_host, cuts, work):
        records = await go_on(folder)
        check([record for record in records if record.channel not in called(records)])
        events = [record.event for record in records]
        ends = [event for event in events if isinstance(event, je.JobEnded) and event.job == "job-1"]
        assert [(event.outcome, event.result, event.reason) for event in ends] == [("succeeded", RESULT, "")], folder
        assert done(records) == PROMPTS, folder
        assert [event.text for event in events if isinstance(event, e.QuestionAsked)] == ["Way?", "Good?"], folder
        assert sum(isinstance(event, je.JobStarted) for event in events) == 2, folder

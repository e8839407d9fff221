"""A job with an output, an Each, a person check and an Ask is cut off after each of its commits.

Each copy of the log is opened by another host, and the job ends there as it would have ended without the cut."""

import asyncio
import contextlib
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs import events as je
from portico.features.jobs.state import plan_of
from portico.features.jobs.task_sessions import CRASH_PREFIX
from portico.kernel import events as e
from portico.kernel.errors import AlreadyAnswered, Conflict
from portico.kernel.events import Record
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener
from tests.crash.test_jobs import check
from tests.jobs.playing import Data, make, opened, task, until_ended
from tests.jobs.samples import ref, seq

TASKS: dict[str, Data] = {
    "plan": task('[[say:["a","b"]]]', output={"name": "plan", "schema": {"type": "array"}}),
    "item": task("[[say:ok]] Do $item of $plan."),
    "checked": task("[[say:good]]", criteria=[{"command": "echo ran >> ran"}, {"person": {"question": ["Good?"]}}]),
    "left": task("[[say:ok]] Go $answer with $plan."),
}
ASK: Data = {
    "kind": "Ask",
    "question": ["Way?"],
    "choices": [{"label": "left", "work": ref("left")}, {"label": "right"}],
}
WORK = seq(
    ref("plan"),
    {"kind": "Each", "output": "plan", "concurrency": 2, "body": ref("item")},
    ref("checked"),
    ASK,
)
ANSWERS = {"Good?": "yes", "Way?": "left"}
PROMPTS = Counter(
    [
        '[[say:["a","b"]]]',
        "[[say:good]]",
        '[[say:ok]] Go left with ["a","b"].',
        *(f'[[say:ok]] Do {item} of ["a","b"].' for item in "ab"),
    ]
)


@contextlib.asynccontextmanager
async def person(host: Host) -> AsyncIterator[None]:
    """Answers each question that is open, once."""

    async def answer() -> None:
        async for records in host.log.follow():
            for event in (record.event for record in records):
                if isinstance(event, e.QuestionAsked):
                    with contextlib.suppress(AlreadyAnswered, Conflict):
                        session = await host.get(host.session_of(event.question))
                        answers = {"answer": ANSWERS[event.text.partition("\n")[0]]}
                        await session.questions.answer(event.question, "accept", answers, by="token:ann")

    answering = asyncio.ensure_future(answer())
    try:
        yield
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)


async def copies_of_one_run(open_host: HostOpener, folder: Path) -> list[Path]:
    """The log as it was after each commit of a whole job."""
    host = await open_host()
    made: list[Path] = []
    source = sqlite3.connect(open_host.path)

    def copy(records: Sequence[Record]) -> None:
        made.append(folder / f"{len(made)}")
        made[-1].mkdir()
        with contextlib.closing(sqlite3.connect(made[-1] / "log.db")) as target:
            source.backup(target)

    jobs = await opened(host, make(TASKS, WORK))
    host.log.on_commit(copy)
    async with person(host):
        await jobs.start_job("main", cwd=str(folder), by="test")
        await until_ended(host.log, "job/job-1")
    await jobs.close()
    await open_host.close()
    source.close()
    return made


async def go_on(folder: Path) -> list[Record]:
    """Another host takes the job up and brings it to its end."""
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


async def test_a_cut_after_any_commit_changes_nothing(open_host: HostOpener, tmp_path: Path) -> None:
    """A kill between the end of a task and its values made an Ask succeed without its branch: `$answer` was missing."""
    (tmp_path / "cuts").mkdir()
    for folder in await copies_of_one_run(open_host, tmp_path / "cuts"):
        records = await go_on(folder)
        check(records)
        events = [record.event for record in records]
        assert [event.outcome for event in events if isinstance(event, je.JobEnded)] == ["succeeded"], folder
        assert done(records) == PROMPTS, folder
        asked = [event.text for event in events if isinstance(event, e.QuestionAsked)]
        assert asked == list(ANSWERS), folder
        decided = Counter(
            (record.channel, record.event.reason)
            for record in records
            if isinstance(record.event, je.TaskDecided) and record.event.check
        )
        assert set(decided.values()) == {1}, folder


def done(records: list[Record]) -> Counter[str]:
    """How often an agent has done the work of each prompt."""
    turns = {
        (record.channel, record.event.turn): record.event.message.text.removeprefix(CRASH_PREFIX)
        for record in records
        if isinstance(record.event, e.TurnStarted) and record.event.by.startswith("task:")
    }
    return Counter(
        turns[record.channel, record.event.turn]
        for record in records
        if isinstance(record.event, e.TurnEnded) and record.event.outcome == "completed"
        if (record.channel, record.event.turn) in turns
    )


@pytest.mark.parametrize(("first", "name"), [(ASK, "Way?"), (ref("plan"), "plan")], ids=["answer", "output"])
async def test_a_log_of_0_2_that_was_cut_before_the_values(
    open_host: HostOpener, tmp_path: Path, first: Data, name: str
) -> None:
    """Version 0.2 wrote the end of the task first. Such a work is done again, not taken as one without a value."""
    host = await open_host()
    used = {name: TASKS[name] for name in ("plan", "left")}
    entry = make(used, seq(first, ref("plan"), ref("left")) if first == ASK else seq(first, ASK, ref("left")))
    started = je.JobStarted(job="job-1", name="main", entry=plan_of(entry, "main"), cwd=str(tmp_path), by="test")
    await host.log.append_all(
        ("job/job-1", started),
        ("task/task-1", je.TaskStarted(task="task-1", name=name, model="gpt-5.2", by="job:job-1", job="job-1")),
        ("job/job-1", je.WorkStarted(path="r.0", work=0, task="task-1")),
        ("task/task-1", je.TaskEnded(task="task-1", outcome="succeeded")),
    )
    await open_host.close()
    events = [record.event for record in await go_on(tmp_path)]
    ends = [event.outcome for event in events if isinstance(event, je.WorkEnded) and event.path == "r.0"]
    sent = [event.message.text for event in events if isinstance(event, e.TurnStarted)]
    assert (ends, sent[-1]) == (["interrupted", "succeeded"], '[[say:ok]] Go left with ["a","b"].')

"""A host that is gone in the middle of a job: each task gets one end, and each job continues."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from portico.cluster.postgres.opening import OWNED
from portico.features.jobs import Jobs, load_entry
from portico.features.jobs import events as je
from portico.features.jobs import temporal as module
from portico.features.jobs import temporal_activities as activities
from portico.features.jobs.engine import OPEN
from portico.features.jobs.task_record import close_task
from portico.features.jobs.temporal import TemporalJobs
from portico.features.jobs.temporal_activities import Activities
from portico.features.jobs.temporal_messages import Order
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.log.log import NotOwner
from tests.cluster.conftest import Node, Nodes
from tests.cluster.test_cluster import ADA, eventually
from tests.cluster.test_labels import JobNodes, entry
from tests.cluster.test_takeover import stop_watching, take
from tests.jobs.playing import until_ended

Data = dict[str, Any]


@pytest.fixture(params=["local", "temporal"])
async def with_jobs(nodes: Nodes, request: pytest.FixtureRequest) -> AsyncIterator[JobNodes]:
    made = JobNodes(nodes, request.getfixturevalue("temporal") if request.param == "temporal" else None)
    yield made
    for jobs in made.jobs.values():
        await jobs.close()


PATH = "r.0"


def _owned(with_jobs: JobNodes) -> tuple[str, ...]:
    return OWNED if with_jobs.temporal is None else tuple(each for each in OWNED if each != "job/")


def _started(task: str) -> je.TaskStarted:
    return je.TaskStarted(task=task, name="wait", model="play", by="test")


async def _left(node: Node, folder: Path) -> tuple[str, str]:
    """What a host leaves that dies in the middle of a job's work, without the note `open`."""
    plan = msgspec.to_builtins(load_entry(entry({"wait": {}})))
    started = je.JobStarted(job="job-1", name="main", entry=plan, cwd=str(folder), by="test")
    await node.log.append("job/job-1", started)
    await node.log.append("task/task-1", je.TaskStarted(task="task-1", name="wait", model="play", by="job:job-1"))
    await node.log.append("job/job-1", je.WorkStarted(path=PATH, work=0, task="task-1", attempt=1))
    return "job-1", "task-1"


async def _begun(node: Node, jobs: Jobs, folder: Path, **task: Any) -> tuple[str, str]:
    """A job whose only work waits in the middle: its id, and that of its task."""
    job = await jobs.start_job("main", cwd=str(folder), by="test", entry=load_entry(entry({"wait": task})))
    await asyncio.wait_for(node.agent.began.wait(), 30)
    state = await jobs._engine.load(job)
    return job, next(iter(state.open.values())).task


async def _ends(node: Node, task: str) -> list[str]:
    records = await node.log.read(f"task/{task}", limit=1000)
    return [record.event.outcome for record in records if isinstance(record.event, je.TaskEnded)]


async def _expire(node: Node, name: str) -> None:
    """The lease of that host has ended."""
    sql = "UPDATE hosts SET expires = clock_timestamp() WHERE name = $1"
    await node.log.run(lambda db: db.execute(sql, name))


def _outcome(events: list[e.Event]) -> str:
    assert isinstance(events[-1], je.JobEnded)
    return events[-1].outcome


async def _note(node: Node, task: str) -> bytes | None:
    return await node.log._store.get_kv(f"task/{task}", OPEN)


# -- the note `open` belongs to the end ----------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False], ids=["known to be another's", "found out by the commit"])
async def test_an_end_that_is_rejected_leaves_the_task_open(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Its note was deleted although the end was not written, and no host looked for the task again."""
    a, b = await nodes("a"), await nodes("b")
    channel = "task/task-9"
    a.log.put_kv(channel, OPEN, b"1", bound=True)
    await a.log.append(channel, _started("task-9"))
    move = "UPDATE owners SET host = $1 WHERE channel = $2"
    with monkeypatch.context() as patch:
        patch.setattr(a.log, "_read_on", lambda: None)  # it does not get to know
        await b.log.run(lambda db: db.execute(move, b.log.lease.host, channel))
        await b.cluster.owner(channel, fresh=True)
        await b.log.append(channel, je.TaskDecided(reason="b was here", passed=True))
        if known:
            a.cluster._mine.discard(channel)
        with pytest.raises(NotOwner):
            await close_task(a.host, "task-9")
        await a.log.flush()
    assert await _note(b, "task-9") == b"1"
    await close_task(b.host, "task-9")
    assert (await _note(b, "task-9"), await _ends(b, "task-9")) == (None, ["interrupted"])


async def test_two_that_end_one_task_write_one_end(nodes: Nodes, tmp_path: Path) -> None:
    """Both read before either wrote: a takeover and a lost activity end the same task."""
    a = await nodes("a")
    jobs = await Jobs.open(a.host)
    await a.log.append("task/task-9", _started("task-9"))
    await asyncio.gather(*(jobs._close_task("task-9") for _ in range(5)))
    assert await _ends(a, "task-9") == ["interrupted"]
    await jobs.close()


async def test_a_task_whose_session_another_host_has_is_ended(nodes: Nodes, tmp_path: Path) -> None:
    """Hosts share out what a dead host had: the session of a task may be taken by another host than the task, and that
    one may be gone, too."""
    a, far = await nodes("a"), await nodes("far", place="moon", lease=0.5)
    jobs = await Jobs.open(a.host)
    session = await far.host.start(by="task:task-9", agent="play")
    await a.log.append(
        "task/task-9", _started("task-9"), je.TaskSessionStarted(session=session.id, model="play", driving=False)
    )
    await a.cluster.catch_up()
    await far.kill()
    await asyncio.wait_for(jobs._close_task("task-9"), 60)
    assert await _ends(a, "task-9") == ["interrupted"]
    await jobs.close()


# -- open tasks are found in the journal ---------------------------------------------------------------------------


async def test_a_task_without_its_note_is_found_in_the_journal(
    with_jobs: JobNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job on Temporal waited for the end of a task that no host looked for, also after a restart of all hosts: no
    takeover and no start ended it."""
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.2)
    a, b = await with_jobs.nodes("a", owned=_owned(with_jobs)), await with_jobs("b")
    b.agent.go.set()
    job, task = await _left(a, tmp_path)
    await a.kill()
    await _expire(b, "a")
    events = await asyncio.wait_for(until_ended(b.log, f"job/{job}"), 60)
    assert (_outcome(events), await _ends(b, task)) == ("succeeded", ["interrupted"])


@pytest.mark.parametrize("with_jobs", ["temporal"], indirect=True)
async def test_a_job_says_whose_end_it_waits_for(
    with_jobs: JobNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0.1)
    a, b = await with_jobs.nodes("a", owned=_owned(with_jobs)), await with_jobs("b")
    b.agent.go.set()
    job, task = await _left(a, tmp_path)
    await b.cluster.catch_up()
    jobs = with_jobs.jobs["b"]
    assert isinstance(jobs, TemporalJobs)
    state = await jobs.journal.load(job)
    settling = asyncio.create_task(jobs.settle(state, PATH, orderly=False))
    reasons: list[str] = []
    async with asyncio.timeout(30):
        async for records in b.log.follow(f"job/{job}"):
            reasons += [each.event.reason for each in records if isinstance(each.event, je.JobDecided)]
            if reasons:
                break
    end = f"has ended the task {task!r}, which was interrupted there."
    assert reasons == [f"It waits until the host 'a' (up) of the place 'here' {end}"]
    await close_task(a.host, task)
    await asyncio.wait_for(settling, 30)
    assert state.runs[PATH].outcome == "interrupted"


@pytest.mark.parametrize("with_jobs", ["temporal"], indirect=True)
async def test_an_owner_that_is_back_is_asked_again(
    with_jobs: JobNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its tries the other host waited for the end of a task that its owner kept for a minute, to resume it."""
    monkeypatch.setattr(activities, "OTHER_SECONDS", 0.1)
    a, b = await with_jobs.nodes("a", owned=_owned(with_jobs)), await with_jobs("b")
    job, task = await _left(a, tmp_path)
    await b.cluster.catch_up()
    jobs = with_jobs.jobs["b"]
    assert isinstance(jobs, TemporalJobs)
    here = ActivityEnvironment()
    here.info = dataclasses.replace(here.info, attempt=activities.OWNER_TRIES + 1)
    with pytest.raises(ApplicationError, match="ask it again") as refused:
        await asyncio.wait_for(here.run(Activities(jobs).settle, Order(job, PATH)), 30)
    assert refused.value.next_retry_delay == timedelta(seconds=activities.OWNER_SECONDS)
    await close_task(a.host, task)
    ended = await asyncio.wait_for(here.run(Activities(jobs).settle, Order(job, PATH)), 30)
    assert (ended.outcome, ended.attempt) == ("again", 2)


# -- another owner is no failure of a job --------------------------------------------------------------------------


@pytest.mark.parametrize("with_jobs", ["local"], indirect=True)
async def test_a_host_that_was_taken_for_dead_fails_no_job(with_jobs: JobNodes, tmp_path: Path) -> None:
    """Its works were refused with NotOwner, which counted as their crash and failed the job."""
    a, b = await with_jobs("a"), await with_jobs("b")
    b.agent.go.set()
    job, task = await _begun(a, with_jobs.jobs["a"], tmp_path)
    await a.pause()
    await stop_watching(b)
    await _expire(b, "a")
    await take(b, a)
    await b.cluster.look()
    await eventually(lambda: bool(_ended(b, job)) or b.agent.began.is_set())
    a.agent.go.set()  # it continues, and writes to what another host owns now
    events = await asyncio.wait_for(until_ended(b.log, f"job/{job}"), 120)
    assert _outcome(events) == "succeeded", events
    assert not any("NotOwner" in str(event) for event in events)
    assert await _ends(b, task) == ["interrupted"]


def _ended(node: Node, job: str) -> bool:
    return node.log.head(f"job/{job}") > 3


async def test_a_drain_leaves_the_sessions_of_a_running_task(nodes: Nodes, tmp_path: Path) -> None:
    """Between two prompts a session of a task is idle: it was handed over, and the next prompt was a crash."""
    a, b = await nodes("a"), await nodes("b")
    await asyncio.gather(a.log.renew_now(), b.log.renew_now())
    await a.log.append("task/task-9", _started("task-9"))
    works = await a.host.start(by="task:task-9", agent="play")
    idle = await a.host.start(by="test", agent="play")
    await b.host.members.drain("a")
    await eventually(lambda: not a.cluster.owns(idle.channel))
    await a.cluster.look()
    assert a.cluster.owns(works.channel)
    await a.log.append("task/task-9", je.TaskEnded(task="task-9", outcome="succeeded"))
    await a.host.do(c.CloseSession(session=works.id), ADA)
    await eventually(lambda: not a.cluster.owns(works.channel))

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from portico import limits
from portico.features.jobs import EntryError, EntrySource, Jobs, NoEntry, find_entry, to_json
from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.errors import BadRequest, Conflict, LogUnavailable, NotFound
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener
from tests.jobs.playing import (
    Data,
    both_engines,
    crashing,
    failing,
    make,
    ok,
    opened,
    play,
    prompts,
    short,
    task,
    until_ended,
    until_started,
    until_waiting,
)
from tests.jobs.samples import alt, loop, par, ref, seq

TASKS = {"ok": ok(), "no": failing(), "crash": crashing(), "hang": task("[[hang]]")}


@both_engines
@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (ref("ok"), ["+0", "-0 ok", "jobSucceeded"]),
        (ref("no"), ["+0", "-0 no", "jobFailed"]),
        (ref("crash"), ["+0", "-0 no", "jobFailed", "jobError"]),
        (seq(ref("ok"), ref("no"), ref("ok")), ["+0", "-0 ok", "+1", "-1 no", "jobFailed"]),
        (loop(ref("ok"), postCondition=[True, ref("no")]), ["+1", "-1 ok", "+0", "-0 no", "jobSucceeded"]),
        (loop(ref("ok"), preCondition=[True, ref("no")]), ["+0", "-0 no", "jobSucceeded"]),
        (loop(ref("no"), postCondition=[True, ref("ok")]), ["+1", "-1 no", "jobFailed"]),
        (
            loop(ref("ok"), postCondition=[True, ref("ok")], maxIterations=1),
            ["+1", "-1 ok", "+0", "-0 ok", "jobDecision", "jobFailed"],
        ),
        (alt(ref("no"), trueWork=ref("ok"), falseWork=ref("ok")), ["+0", "-0 no", "+2", "-2 ok", "jobSucceeded"]),
        (alt(ref("ok"), trueWork=ref("no")), ["+0", "-0 ok", "+1", "-1 no", "jobFailed"]),
        (alt(ref("crash"), falseWork=ref("ok")), ["+0", "-0 no", "jobFailed", "jobError"]),
    ],
)
async def test_every_kind_of_work(host: Host, tmp_path: Path, work: Data, expected: list[str]) -> None:
    jobs = await opened(host, make(TASKS, work))
    job, words = await play(jobs, tmp_path)
    assert words == expected
    assert jobs.job(job).status == ("succeeded" if "jobSucceeded" in expected else "failed")
    assert all(session.closed for session in host.list())


@both_engines
async def test_a_par_waits_for_all(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make(TASKS, par(ref("no"), ref("ok"))))
    _, words = await play(jobs, tmp_path)
    assert sorted(words) == ["+0", "+1", "-0 no", "-1 ok", "jobFailed"]
    assert words[-1] == "jobFailed"


@both_engines
async def test_a_crash_in_a_par_stops_the_others_and_each_gets_its_end(host: Host, tmp_path: Path) -> None:
    """The original left them running for ever."""
    jobs = await opened(host, make(TASKS, par(ref("hang"), ref("crash"), ref("hang"))))
    _, words = await play(jobs, tmp_path)
    assert sorted(words[:-2]) == ["+0", "+1", "+2", "-0 no", "-1 no", "-2 no"]
    assert words[-2:] == ["jobFailed", "jobError"]
    assert host.running == 0


@both_engines
async def test_a_stop_ends_every_work_once_and_the_job_as_canceled(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make(TASKS, par(ref("hang"), ref("hang"))))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await until_started(host.log, job, 2)
    await asyncio.gather(jobs.stop_job(job, by="me"), jobs.stop_job(job, by="you"))
    await jobs.stop_job(job, by="me")
    words = short(await until_ended(host.log, f"job/{job}"))
    assert sorted(words[:-1]) == ["+0", "+1", "-0 no", "-1 no"]
    assert words[-1] == "jobCanceled"
    assert (jobs.job(job).status, host.running) == ("canceled", 0)
    assert [work.status for work in jobs.job(job).works] == ["stopped", "stopped"]


async def test_a_stop_after_the_end_changes_nothing(host: Host, tmp_path: Path) -> None:
    """The original turned Succeeded into Canceled."""
    jobs = await opened(host, make(TASKS))
    job, _ = await play(jobs, tmp_path)
    head = host.log.head(f"job/{job}")
    await jobs.stop_job(job, by="me")
    assert (jobs.job(job).status, host.log.head(f"job/{job}")) == ("succeeded", head)


async def test_a_job_has_a_timeout(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make(TASKS, ref("hang"), timeout=0.05))
    job, words = await play(jobs, tmp_path)
    assert words == ["+0", "-0 no", "jobFailed", "jobError"]
    assert "not done within 0.05 seconds" in jobs.job(job).error


@both_engines
async def test_a_loop_runs_a_work_again_and_the_status_shows_the_last_run(host: Host, tmp_path: Path) -> None:
    again = {
        "toolExecuted": ["job_boolean_true"],
        "failureAction": {"retryTimes": 0},
    }
    tasks = {"body": ok(), "check": task("[[after:rounds|2|job_boolean_true|x]]", criteria=again)}
    jobs = await opened(host, make(tasks, loop(ref("body"), postCondition=[False, ref("check")])))
    job, words = await play(jobs, tmp_path)
    assert words == ["+1", "-1 ok", "+0", "-0 no"] * 2 + ["+1", "-1 ok", "+0", "-0 ok", "jobSucceeded"]
    works = jobs.job(job).works
    assert [(work.work, work.runs, work.status) for work in works] == [(1, 3, "succeeded"), (0, 3, "succeeded")]


# -- what cannot start -----------------------------------------------------------------------------------------


async def test_what_cannot_start(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make(TASKS))
    with pytest.raises(NotFound, match="no job 'other'"):
        await jobs.start_job("other", cwd=str(tmp_path), by="test")
    with pytest.raises(BadRequest, match="not an absolute path"):
        await jobs.start_job("main", cwd="here", by="test")
    with pytest.raises(NotFound, match="no session"):
        await jobs.start_task("ok", session="session-9", by="test")
    with pytest.raises(NotFound, match="no job"):
        await jobs.stop_job("job-9", by="test")
    assert jobs.history() == []


async def test_a_missing_model_stops_only_the_jobs_that_need_it(host: Host, tmp_path: Path) -> None:
    entry = make({"ok": ok(), "far": ok(model={"id": "gpt-9"})}, ref("far"))
    jobs = await Jobs.open(host)
    jobs._installed = entry
    with pytest.raises(EntryError, match='"gpt-9" is not an available model id') as caught:
        await jobs.start_job("main", cwd=str(tmp_path), by="test")
    assert "gpt-5.2" in caught.value.message


async def test_an_entry_is_not_exchanged_under_open_sessions(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    with pytest.raises(NoEntry):
        _ = jobs.entry
    session = await host.start(by="test", cwd=str(tmp_path))
    with pytest.raises(Conflict, match="Cannot call installJobsEntry while sessions are running"):
        await jobs.install(make(TASKS))
    await session.close(by="test")
    await jobs.install(make(TASKS))
    assert list(jobs.entry.jobs) == ["main"]


async def test_agent_and_model_together_name_a_model(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make({"ok": ok(model={"id": "demo/demo"})}))
    _, words = await play(jobs, tmp_path)
    assert words[-1] == "jobSucceeded"
    assert [summary.agent for summary in host.list()] == ["demo"]


# -- where entries come from -----------------------------------------------------------------------------------


def test_an_entry_is_found(tmp_path: Path) -> None:
    assert find_entry(None, tmp_path) is None
    (tmp_path / ".portico").mkdir()
    hidden = tmp_path / ".portico/entry.json"
    hidden.write_bytes(to_json(make(TASKS)))
    assert find_entry(None, tmp_path) == hidden
    own = tmp_path / "portico.entry.json"
    own.write_bytes(hidden.read_bytes())
    assert find_entry(None, tmp_path) == own
    assert find_entry(Path("other.yaml"), tmp_path) == Path("other.yaml").absolute()


async def test_a_changed_file_is_read_again_when_no_job_runs(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "entry.json"
    path.write_bytes(to_json(make({"hang": task("[[hang]]")})))
    jobs = await Jobs.open(host, EntrySource(path))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    path.write_bytes(to_json(make({"other": ok()})))
    assert list(jobs.entry.tasks) == ["hang"]
    await jobs.stop_job(job, by="test")
    assert list(jobs.entry.tasks) == ["other"]
    path.write_text("{ broken")
    assert list(jobs.entry.tasks) == ["other"]
    path.unlink()
    assert list(jobs.entry.tasks) == ["other"]


async def test_the_packaged_demo_runs_green(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host, EntrySource(None))
    for name in jobs.entry.jobs:
        ident = await jobs.start_job(name, cwd=str(tmp_path), input="a plan", by="test")
        await until_ended(host.log, f"job/{ident}")
        assert jobs.job(ident).status == "succeeded"


# -- after a stop of the host ----------------------------------------------------------------------------------


async def suspended(open_host: HostOpener, tmp_path: Path, tasks: dict[str, Data], work: Data) -> str:
    """A job in the middle of the task `hang` when its host goes."""
    host = await open_host()
    jobs = await opened(host, make(tasks, work))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    async for records in host.log.follow(f"job/{job}"):
        hangs = (r.event for r in records if isinstance(r.event, je.WorkStarted))
        if any(jobs.job(job).works[-1].name == "hang" for _ in hangs):
            break
    await jobs.close()
    return job


async def test_a_session_whose_start_its_task_did_not_record_is_closed(open_host: HostOpener, tmp_path: Path) -> None:
    """The host ended between the two: nobody closed it."""
    await suspended(open_host, tmp_path, TASKS, ref("hang"))
    host = await open_host()
    lost = await host.start(by="task:task-1", cwd=str(tmp_path))
    other = await host.start(by="test", cwd=str(tmp_path))
    await (await Jobs.open(host)).recover()
    closed = {summary.id: summary.closed for summary in host.list()}
    assert (closed[lost.id], closed[other.id]) == (True, False)


@both_engines
async def test_a_job_goes_on_after_a_restart(open_host: HostOpener, tmp_path: Path) -> None:
    work = seq(ref("ok"), ref("hang"), ref("ok"))
    job = await suspended(open_host, tmp_path, TASKS, work)
    host = await open_host()
    jobs = await Jobs.open(host)
    assert await jobs.recover() == 1
    tasks = await until_started(host.log, job, 3)
    assert tasks == ["task-1", "task-2", "task-3"]
    async for _ in host.log.follow("task/task-3"):
        if prompts_sent := await prompts(host, "task-3"):
            break
    assert prompts_sent == ["The session crashed, please redo and here is the last request:\n[[hang]]"]
    await jobs.stop_job(job, by="me")
    words = short(await until_ended(host.log, f"job/{job}"))
    assert words == ["+0", "-0 ok", "+1", "-1 no", "+1", "-1 no", "jobCanceled"]
    assert (await until_ended(host.log, "task/task-2"))[-1] == je.TaskEnded(task="task-2", outcome="interrupted")
    assert all(summary.closed for summary in host.list())


@both_engines
@pytest.mark.parametrize(
    ("choice", "expected"),
    [("fail", ["+0", "-0 no", "+2", "-2 ok", "jobSucceeded"]), ("ask", ["+0", "-0 no"])],
)
async def test_a_task_says_what_an_interruption_means(
    open_host: HostOpener, tmp_path: Path, choice: str, expected: list[str]
) -> None:
    tasks = {**TASKS, "hang": task("[[hang]]", onInterrupt=choice)}
    work = alt(ref("hang"), trueWork=ref("ok"), falseWork=ref("ok"))
    job = await suspended(open_host, tmp_path, tasks, work)
    host = await open_host()
    jobs = await Jobs.open(host)
    await jobs.recover()
    if choice == "fail":
        assert short(await until_ended(host.log, f"job/{job}")) == expected
        return
    await until_waiting(host.log, job)
    assert jobs.job(job).status == "waiting"
    assert short([record.event for record in await host.log.read(f"job/{job}")]) == expected
    assert await jobs.resume(job, by="me") == job
    assert await until_started(host.log, job, 2) == ["task-1", "task-2"]
    await jobs.stop_job(job, by="me")
    assert jobs.job(job).status == "canceled"


@both_engines
async def test_a_waiting_job_can_be_stopped(open_host: HostOpener, tmp_path: Path) -> None:
    tasks = {**TASKS, "hang": task("[[hang]]", onInterrupt="ask")}
    job = await suspended(open_host, tmp_path, tasks, ref("hang"))
    host = await open_host()
    jobs = await Jobs.open(host)
    await jobs.recover()
    await until_waiting(host.log, job)
    await jobs.stop_job(job, by="me")
    assert short(await until_ended(host.log, f"job/{job}")) == ["+0", "-0 no", "jobCanceled"]


async def test_a_task_that_is_always_interrupted_waits_for_a_person(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that takes its host down with it was tried again at every start, for ever. A stop that somebody asked for
    does not count."""
    monkeypatch.setattr(limits, "INTERRUPTIONS", 2)
    job = await suspended(open_host, tmp_path, TASKS, ref("hang"))
    for attempt, orderly in ((2, True), (3, False), (4, True), (5, False)):
        jobs = await Jobs.open(host := await open_host())
        await jobs.recover()
        await until_started(host.log, job, attempt)
        if orderly:
            await jobs.close()
    jobs = await Jobs.open(host := await open_host())
    await jobs.recover()
    summary = jobs.job(job)
    reason = "The host ended in the middle of 'hang' (2 times); resume or stop the job."
    assert (summary.status, summary.reason) == ("waiting", reason)
    await jobs.resume(job, by="me")
    assert (await until_started(host.log, job, 6))[-1] == "task-6"
    await jobs.close()


@both_engines
async def test_what_runs_here_goes_on_when_something_of_another_host_is_taken_over(host: Host, tmp_path: Path) -> None:
    """A takeover looks for tasks without an end, and ended those that this very host was running."""
    jobs = await opened(host, make({"slow": task("[[delay:500]] [[say:done]]")}))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await until_started(host.log, job)
    await jobs.recover()
    assert short(await until_ended(host.log, f"job/{job}")) == ["+0", "-0 ok", "jobSucceeded"]


@both_engines
async def test_no_work_begins_while_the_host_stops(open_host: HostOpener, tmp_path: Path) -> None:
    """One did, counted as stopped, and the job had failed after the restart."""
    host = await open_host()
    jobs = await opened(host, make(TASKS, par(seq(ref("ok"), ref("ok")))))
    running = asyncio.get_running_loop()
    closing: asyncio.Future[asyncio.Task[None]] = running.create_future()

    def stop(records: Sequence[e.Record]) -> None:
        """In the same turn of the loop in which the lane goes on, just before it."""
        if any(isinstance(record.event, je.WorkEnded) for record in records) and not closing.done():
            closing.set_result(running.create_task(jobs.close()))

    host.log.on_commit(stop)
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await (await closing)
    host = await open_host()
    jobs = await Jobs.open(host)
    await jobs.recover()
    words = short(await until_ended(host.log, f"job/{job}"))
    assert words == ["+0", "-0 ok", "+1", "-1 ok", "jobSucceeded"]


async def test_a_borrowing_task_is_interrupted_by_a_restart(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    jobs = await opened(host, make(TASKS))
    session = await host.start(by="test", cwd=str(tmp_path))
    ident = await jobs.start_task("hang", session=session.id, by="test")
    host = await open_host()
    jobs = await Jobs.open(host)
    await jobs.recover()
    info = await jobs.task(ident)
    assert (info.borrowing, info.ended is not None) == (True, True)
    assert not (await host.get(session.id)).state.closed


async def test_history_stays_and_ids_are_never_reused(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    jobs = await opened(host, make(TASKS))
    first, _ = await play(jobs, tmp_path)
    host = await open_host()
    jobs = await opened(host, make({"no": failing()}))
    assert [(job.id, job.status) for job in jobs.history()] == [(first, "succeeded")]
    second, _ = await play(jobs, tmp_path)
    assert (first, second) == ("job-1", "job-2")
    assert [work.task for work in jobs.job(second).works] == ["task-2"]


@both_engines
async def test_a_job_outlasts_a_disk_that_says_no(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = await opened(host, make({"slow": task("[[delay:300]] [[say:x]]")}, par(ref("slow"), ref("slow"))))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await until_started(host.log, job, 2)

    def full(*_: object) -> None:
        raise LogUnavailable("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(host.log._database, "write", full)  # type: ignore[attr-defined]
        patched.setattr(host.log._database, "probe", full)  # type: ignore[attr-defined]
        with pytest.raises(LogUnavailable):
            await host.start(by="test", cwd=str(tmp_path))
    words = short(await until_ended(host.log, f"job/{job}"))
    assert words[-1] == "jobSucceeded"
    assert words.count("-0 ok") == words.count("-1 ok") == 1
    assert sum(word[0] == "+" for word in words) == sum(word[0] == "-" for word in words)


# -- again -----------------------------------------------------------------------------------------------------


@both_engines
async def test_a_failed_job_goes_on_as_a_new_one_that_takes_over_what_succeeded(host: Host, tmp_path: Path) -> None:
    criteria = {"toolExecuted": ["job_boolean_true"], "failureAction": {"retryTimes": 0}}
    once = task("[[after:once|1|job_boolean_true|x]]", criteria=criteria)
    jobs = await opened(host, make({"ok": ok(), "once": once}, seq(ref("ok"), ref("once"), ref("ok"))))
    first, words = await play(jobs, tmp_path)
    assert words[-1] == "jobFailed"
    second = await jobs.resume(first, by="me")
    assert short(await until_ended(host.log, f"job/{second}")) == ["+1", "-1 ok", "+2", "-2 ok", "jobSucceeded"]
    third = await jobs.retry(first, by="me")
    assert short(await until_ended(host.log, f"job/{third}"))[:2] == ["+0", "-0 ok"]
    assert [job.origin for job in jobs.history()] == [None, first, first]
    with pytest.raises(Conflict, match="has succeeded"):
        await jobs.resume(second, by="me")


async def test_a_job_does_not_need_the_entry_any_more(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make(TASKS))
    job, _ = await play(jobs, tmp_path)
    await jobs.install(make({"other": ok()}))
    again = await jobs.retry(job, by="me")
    assert short(await until_ended(host.log, f"job/{again}")) == ["+0", "-0 ok", "jobSucceeded"]
    stored = await host.log.read(f"job/{job}", 0, 1)
    assert list(json.loads(stored[0].data)["entry"]["tasks"]) == ["ok"]

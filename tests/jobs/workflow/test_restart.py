"""A host ends in the middle of a workflow: the next one continues there, and repeats nothing that has an end."""

import asyncio
from pathlib import Path

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs import events as je
from portico.features.jobs.state import JobSummary
from portico.kernel import events as e
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener
from tests.jobs.playing import both_engines, until_ended, until_started
from tests.jobs.workflow.playing import start
from tests.jobs.workflow.test_folders import git, repository
from tests.jobs.workflow.test_steps import answer, question, save

__all__ = ["repository"]


async def restarted(open_host: HostOpener, jobs: Jobs) -> tuple[Host, Jobs]:
    await jobs.close()
    host = await open_host()
    return host, await Jobs.open(host)


async def ended(jobs: Jobs, job: str = "job-1") -> JobSummary:
    async with asyncio.timeout(30):
        await until_ended(jobs.host.log, f"job/{job}")
    return jobs.job(job)


async def events(host: Host, *kinds: type[e.Event]) -> list[e.Event]:
    return [record.event for record in await host.log.read_all(limit=10_000) if isinstance(record.event, kinds)]


@both_engines
@pytest.mark.parametrize("early", [False, True], ids=["answered after", "answered before it is resumed"])
async def test_the_same_question_stays_open(open_host: HostOpener, tmp_path: Path, early: bool) -> None:
    text = """
        steps:
          - {id: before, run: "echo ran >> ran; echo a"}
          - {id: way, ask: "Way {{ steps.before.output }}?", choices: [left, right], expires: 3600}
          - {id: after, run: "echo {{ steps.way.answer }}"}
        result: "{{ steps.after.output }}"
    """
    jobs = await Jobs.open(await open_host())
    await start(jobs, text, tmp_path)
    asked = await question(jobs.host)
    host, jobs = await restarted(open_host, jobs)
    if not early:
        await jobs.recover()
    assert await answer(host, "left") == asked
    await jobs.recover()
    assert (await ended(jobs)).result == "left"
    assert len(await events(host, e.QuestionAsked)) == 1
    assert (tmp_path / "ran").read_text() == "ran\n"
    await jobs.close()


async def test_a_command_that_was_interrupted_runs_again(open_host: HostOpener, tmp_path: Path) -> None:
    text = """
        steps:
          - {id: slow, run: "echo ran >> ran; test -e free || sleep 60; echo {{ run.attempt }}"}
        result: "{{ steps.slow.output }}"
    """
    jobs = await Jobs.open(await open_host())
    await start(jobs, text, tmp_path)
    await until_started(jobs.host.log, "job-1")
    host, jobs = await restarted(open_host, jobs)
    (tmp_path / "free").touch()
    await jobs.recover()
    assert (await ended(jobs)).result == "2"
    ends = await events(host, je.WorkEnded)
    assert [end.outcome for end in ends if isinstance(end, je.WorkEnded)] == ["interrupted", "succeeded"]
    await jobs.close()


@pytest.mark.parametrize(("choice", "status"), [("fail", "failed"), ("ask", "waiting")])
async def test_a_command_that_must_not_run_twice(
    open_host: HostOpener, tmp_path: Path, choice: str, status: str
) -> None:
    text = f"steps: [{{run: 'echo ran >> ran; sleep 60', on_interrupt: {choice}}}]"
    jobs = await Jobs.open(await open_host())
    await start(jobs, text, tmp_path)
    await until_started(jobs.host.log, "job-1")
    while not (tmp_path / "ran").exists():  # noqa: ASYNC110 - the command has no event of its own
        await asyncio.sleep(0.01)
    _, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    if status == "failed":
        await ended(jobs)
    assert jobs.job("job-1").status == status
    assert (tmp_path / "ran").read_text() == "ran\n"
    await jobs.close()


async def test_a_wait_keeps_its_end(open_host: HostOpener, tmp_path: Path) -> None:
    jobs = await Jobs.open(await open_host())
    await start(jobs, "steps: [{wait: 60}]", tmp_path)
    await until_started(jobs.host.log, "job-1")
    async for records in jobs.host.log.follow("job/job-1"):
        if any(isinstance(record.event, je.JobValue) for record in records):
            break
    before = (await jobs.load("job-1")).values["r"]["until"]
    host, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    await until_started(host.log, "job-1", 2)
    assert (await jobs.load("job-1")).values["r"]["until"] == before
    await jobs.stop_job("job-1", by="test")
    assert jobs.job("job-1").status == "canceled"
    await jobs.close()


async def test_a_called_job_starts_once_and_stops_with_its_caller(open_host: HostOpener, tmp_path: Path) -> None:
    save(tmp_path, "inner.yaml", "steps: [{wait: {hook: go}}]\nresult: inner")
    jobs = await Jobs.open(await open_host())
    text = "steps: [{id: a, call: inner}]\nresult: '{{ steps.a.output }}'"
    await start(jobs, text, tmp_path)
    await until_started(jobs.host.log, "job-2")
    _, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    await jobs.signal("job-2", "go", by="test")
    assert (await ended(jobs)).result == "inner"
    assert len(jobs.history()) == 2
    await start(jobs, text, tmp_path)
    await until_started(jobs.host.log, "job-4")
    await jobs.stop_job("job-3", by="test")
    assert (await ended(jobs, "job-4")).status == "canceled"
    await jobs.close()


async def test_a_run_continues_in_its_worktree(open_host: HostOpener, repository: Path) -> None:
    text = """
        folder: worktree
        branch: work
        steps:
          - run: echo first > first.txt
          - each: [a, b]
            folder: worktree
            steps:
              - run: echo {{ item }} > {{ item }}.txt
              - {id: way, ask: "Go on with {{ item }}?"}
        result: "{{ run.folder }}"
    """
    jobs = await Jobs.open(await open_host())
    await start(jobs, text, repository)
    await question(jobs.host)
    host, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    await answer(host, "yes")
    async for records in host.log.follow():
        asked = [record.event for record in records if isinstance(record.event, e.QuestionAsked)]
        if second := [each for each in asked if "with b" in each.text]:
            session = await host.get(host.session_of(second[0].question))
            await session.questions.answer(second[0].question, "accept", {"answer": "y"}, by="token:ann")
            break
    summary = await ended(jobs)
    assert (summary.status, summary.branch) == ("succeeded", "work")
    names = git(repository, "ls-tree", "--name-only", "work").split()
    assert names == ["a.txt", "b.txt", "first.txt", "list"]
    await jobs.close()

"""However a run ends, nothing of it is left but its branches: no folders, no changes in the checkout."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs import events as je
from portico.features.jobs.state import JobSummary
from portico.testing.fixtures import HostOpener
from tests.jobs.playing import both_engines, until_ended, until_started
from tests.jobs.workflow.playing import start
from tests.jobs.workflow.test_folders import git, repository
from tests.jobs.workflow.test_restart import restarted

__all__ = ["repository"]

LANES = """
    folder: worktree
    branch: work
    steps:
      - run: echo first > first.txt
      - each: [a, b]
        parallel: 2
        fail: at_once
        folder: worktree
        steps:
          - run: echo {{ item }} > {{ item }}.txt
          - {id: last, run: "test {{ item }} = a && exec sleep 60; test ! -e stop"}
          - {run: sleep 60}
"""


async def until_busy(jobs: Jobs) -> None:
    await until_started(jobs.host.log, "job-1", 5)


async def fails(open_host: HostOpener, jobs: Jobs, project: Path) -> Jobs:
    return jobs


async def is_stopped(open_host: HostOpener, jobs: Jobs, project: Path) -> Jobs:
    await until_busy(jobs)
    await jobs.stop_job("job-1", by="test")
    return jobs


async def is_stopped_after_a_restart(open_host: HostOpener, jobs: Jobs, project: Path) -> Jobs:
    """The stop is recorded, and the host ends before it is done."""
    await until_busy(jobs)
    _, jobs = await restarted(open_host, jobs)
    await jobs._engine.put("job-1", je.JobStopping(by="test"))
    await jobs.recover()
    return jobs


async def is_stopped_while_it_waits(open_host: HostOpener, jobs: Jobs, project: Path) -> Jobs:
    await until_busy(jobs)
    _, jobs = await restarted(open_host, jobs)
    await jobs._engine.put("job-1", je.JobWaiting(reason="a person"))
    await jobs.recover()
    await jobs.stop_job("job-1", by="test")
    return jobs


Way = Callable[[HostOpener, Jobs, Path], Awaitable[Jobs]]
WAYS: list[tuple[Way, str]] = [
    (fails, "failed"),
    (is_stopped, "canceled"),
    (is_stopped_after_a_restart, "canceled"),
    (is_stopped_while_it_waits, "canceled"),
]


@pytest.mark.parametrize(("way", "status"), WAYS, ids=[way.__name__ for way, _ in WAYS])
async def test_no_folder_of_a_lane_is_left(open_host: HostOpener, repository: Path, way: Way, status: str) -> None:
    """The folders of lanes were only removed by their merge, and a stopped job had no merge."""
    text = LANES.replace("test ! -e stop", "test -e stop" if way is fails else "exec sleep 60")
    jobs = await Jobs.open(await open_host())
    await start(jobs, text, repository)
    jobs = await way(open_host, jobs, repository)
    async with asyncio.timeout(30):
        await until_ended(jobs.host.log, "job/job-1")
    assert (jobs.job("job-1").status, jobs.job("job-1").branch) == (status, "work")
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not repository.with_name(f"{repository.name}.worktrees").exists()
    assert git(repository, "status", "--porcelain") == ""
    branches = [each for each in git(repository, "branch", "--format=%(refname:short)").split() if "work" in each]
    kept = {branch[-1]: git(repository, "ls-tree", "--name-only", branch).split() for branch in branches}
    assert kept == {
        "k": ["first.txt", "list"],
        "0": ["a.txt", "first.txt", "list"],
        "1": ["b.txt", "first.txt", "list"],
    }
    await jobs.close()


ONCE = """
    steps:
      - {id: a, run: "echo ran >> ran; exec sleep 60", on_interrupt: fail, may_fail: true}
      - {id: b, run: "echo {{ steps.a.outcome }}: {{ steps.a.reason }}"}
    result: "{{ steps.b.output }}"
"""


@both_engines
async def test_a_step_that_was_interrupted_and_fails_has_a_result(open_host: HostOpener, tmp_path: Path) -> None:
    """Its end was recorded without its result, so later steps read that it was skipped."""
    jobs = await Jobs.open(await open_host())
    await start(jobs, ONCE, tmp_path)
    while not (tmp_path / "ran").exists():  # noqa: ASYNC110 - the command has no event of its own
        await asyncio.sleep(0.01)
    _, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    async with asyncio.timeout(60):
        await until_ended(jobs.host.log, "job/job-1")
    ended: JobSummary = jobs.job("job-1")
    assert (ended.status, str(ended.result).partition(" in the middle")[0]) == ("succeeded", "failed: The host ended")
    assert (tmp_path / "ran").read_text() == "ran\n"
    await jobs.close()


async def test_a_failure_during_a_stop_is_no_result(open_host: HostOpener, tmp_path: Path) -> None:
    """A step that called another job failed with "The host is stopping", and the job with it."""
    (tmp_path / ".portico/jobs").mkdir(parents=True)
    (tmp_path / ".portico/jobs/inner.yaml").write_text("steps: [{run: echo in}]\nresult: in")
    text = """
        steps:
          - {id: wait, wait: {hook: ready}}
          - {id: a, call: inner}
        result: "{{ steps.a.output }}"
    """
    jobs = await Jobs.open(await open_host())
    await start(jobs, text, tmp_path)
    await until_started(jobs.host.log, "job-1")
    jobs.host.stopping = True
    await jobs.signal("job-1", "ready", by="test")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            await until_ended(jobs.host.log, "job/job-1")
    jobs.host.stopping = False
    _, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    async with asyncio.timeout(30):
        await until_ended(jobs.host.log, "job/job-1")
    assert (jobs.job("job-1").status, jobs.job("job-1").result) == ("succeeded", "in")
    await jobs.close()

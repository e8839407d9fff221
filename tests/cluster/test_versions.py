"""A rolling upgrade while jobs on Temporal run, to a newer version of the workflow and back."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from portico.cluster.host_tables import Info
from portico.features.jobs import events as je
from portico.features.jobs import load_entry
from portico.features.jobs import temporal as module
from portico.features.jobs.temporal import TemporalJobs
from portico.kernel import events as e
from portico.testing.temporal import TemporalServer
from tests.cluster.conftest import Node, Nodes
from tests.cluster.test_labels import JobNodes, entry
from tests.jobs.playing import until_ended


@pytest.fixture
async def with_jobs(nodes: Nodes, temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[JobNodes]:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.2)
    made = JobNodes(nodes, temporal)
    yield made
    for jobs in made.jobs.values():
        await jobs.close()


async def _host(with_jobs: JobNodes, name: str, version: int, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A host of that version of the package and of the workflow."""
    monkeypatch.setattr(module, "VERSION", version)
    node = await with_jobs(name)
    jobs = _jobs(with_jobs, name)
    said = node.log.info

    def info() -> str:
        return msgspec.json.encode(
            msgspec.structs.replace(msgspec.json.decode(said(), type=Info), version=str(version))
        ).decode()

    node.log.info = info
    await node.log.renew_now()
    monkeypatch.setattr(jobs, "package", str(version))
    return node


def _jobs(with_jobs: JobNodes, name: str) -> TemporalJobs:
    jobs = with_jobs.jobs[name]
    assert isinstance(jobs, TemporalJobs)
    return jobs


async def _leave(with_jobs: JobNodes, node: Node, name: str) -> None:
    """It is stopped, to be upgraded."""
    await with_jobs.jobs.pop(name).close()
    await node.host.close()
    await node.cluster.close_link()
    await node.log.close()
    node.dead = True


def _done(events: list[e.Event]) -> dict[str, int]:
    return Counter(each.path for each in events if isinstance(each, je.WorkEnded) and each.outcome == "succeeded")


@pytest.mark.parametrize(("old", "new"), [(1, 2), (2, 1)], ids=["upgrade", "downgrade"])
async def test_a_running_job_survives_a_rolling_change_of_version(
    with_jobs: JobNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: int, new: int
) -> None:
    """Jobs that ran when the version of the workflow was raised were stuck for ever, and nothing reported it: no host
    took from the queue of the old version any more."""
    first = await _host(with_jobs, "first", old, monkeypatch)
    job = await with_jobs.jobs["first"].start_job(
        "main", cwd=str(tmp_path), by="test", entry=load_entry(entry({"plain": {}, "wait": {}}))
    )
    await _until_begun(first, job, 2)
    second = await _host(with_jobs, "second", new, monkeypatch)
    other = await with_jobs.jobs["second"].start_job(
        "main", cwd=str(tmp_path), by="test", entry=load_entry(entry({"plain": {}}))
    )
    assert _done(await asyncio.wait_for(until_ended(second.log, f"job/{other}"), 60)) == {"r.0": 1}
    second.agent.go.set()
    handle = _jobs(with_jobs, "second")._client.get_workflow_handle(  # type: ignore[union-attr]
        _jobs(with_jobs, "second").workflow_id(job)
    )
    assert (await handle.describe()).task_queue == _jobs(with_jobs, "first").queue  # while its host is there
    await _leave(with_jobs, first, "first")
    events = await asyncio.wait_for(until_ended(second.log, f"job/{job}"), 90)
    assert isinstance(events[-1], je.JobEnded)
    assert (events[-1].outcome, _done(events)) == ("succeeded", {"r.0": 1, "r.1": 1})
    assert await handle.result() == "succeeded"
    assert (await handle.describe()).task_queue == _jobs(with_jobs, "second").queue


async def test_a_job_stays_with_hosts_of_its_version(
    with_jobs: JobNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner is upgraded first: while a host of the old version is there, that one continues the job."""
    first, beside = await _host(with_jobs, "first", 1, monkeypatch), await _host(with_jobs, "beside", 1, monkeypatch)
    beside.agent.go.set()
    job = await with_jobs.jobs["first"].start_job(
        "main", cwd=str(tmp_path), by="test", entry=load_entry(entry({"plain": {}, "wait": {}, "more": {}}))
    )
    second = await _host(with_jobs, "second", 2, monkeypatch)
    first.agent.go.set()
    events = await asyncio.wait_for(until_ended(second.log, f"job/{job}"), 60)
    assert isinstance(events[-1], je.JobEnded)
    assert (events[-1].outcome, set(_done(events).values())) == ("succeeded", {1})
    jobs = _jobs(with_jobs, "second")
    assert jobs._client is not None
    described = await jobs._client.get_workflow_handle(jobs.workflow_id(job)).describe()
    assert described.task_queue == _jobs(with_jobs, "beside").queue


async def _until_begun(node: Node, job: str, works: int) -> None:
    begun = 0
    async with asyncio.timeout(60):
        async for records in node.log.follow(f"job/{job}"):
            begun += sum(isinstance(record.event, je.WorkStarted) for record in records)
            if begun >= works:
                return

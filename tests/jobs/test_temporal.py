"""What only the engine on Temporal has: histories that are replayed and cut, and a server that goes away."""

import asyncio
import sys
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from portico.features.jobs import Jobs
from portico.features.jobs import temporal_messages as messages
from portico.features.jobs.temporal import TemporalJobs
from portico.features.jobs.temporal_messages import CONVERTER
from portico.features.jobs.temporal_workflow import JobWorkflow
from portico.kernel.host import Host
from portico.server.settings import JobSettings
from portico.testing.temporal import TemporalServer
from tests.jobs.playing import crashing, failing, make, ok, opened, play, task, until_ended, until_started
from tests.jobs.samples import alt, loop, par, ref, seq

GOLDEN = Path(__file__).parent / "golden" / "temporal"
TASKS = {"ok": ok(), "no": failing(), "crash": crashing(), "slow": task("[[delay:60000]]")}
TREES = {
    "nested": seq(ref("ok"), par(ref("ok"), seq(ref("ok"), alt(ref("no"), falseWork=ref("ok"))), concurrency=1)),
    "loop": loop(par(ref("ok"), ref("no")), postCondition=[False, ref("ok")]),
    "crash": par(ref("slow"), seq(ref("crash"), ref("ok")), {"kind": "Wait", "seconds": 60}),
}
on_temporal = pytest.mark.parametrize("engine", ["temporal"], indirect=True)


def replayer() -> Replayer:
    return Replayer(workflows=[JobWorkflow], workflow_runner=UnsandboxedWorkflowRunner(), data_converter=CONVERTER)


async def history(jobs: Jobs, job: str) -> WorkflowHistory:
    assert isinstance(jobs, TemporalJobs)
    assert jobs._client is not None
    handle = jobs._client.get_workflow_handle(jobs.workflow_id(job))
    await handle.result()
    return await handle.fetch_history()


@on_temporal
@pytest.mark.parametrize("name", TREES)
async def test_a_history_is_replayed_the_same_way(host: Host, tmp_path: Path, name: str) -> None:
    jobs = await opened(host, make(TASKS, TREES[name]))
    job, _ = await play(jobs, tmp_path)
    await replayer().replay_workflow(await history(jobs, job))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
async def test_a_history_of_an_earlier_build_is_replayed(path: Path) -> None:
    """A change that fails here would break the jobs that run during an upgrade: raise `temporal_messages.VERSION`, so
    that hosts of both builds take from queues of their own, and save new histories."""
    text = path.read_text("utf-8")  # noqa: ASYNC240 - a small file
    await replayer().replay_workflow(WorkflowHistory.from_json(path.stem, text))


@on_temporal
async def test_a_long_job_goes_on_in_a_new_history(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 works in one job stay within Temporal's limits that way; what is done is read from the log."""
    monkeypatch.setattr(messages, "HISTORY_QUIET", 20)
    jobs = await opened(host, make(TASKS, seq(*[ref("ok")] * 8)))
    job, words = await play(jobs, tmp_path)
    assert words == [word for work in range(8) for word in (f"+{work}", f"-{work} ok")] + ["jobSucceeded"]
    last = await history(jobs, job)
    assert last.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
    assert len(last.events) < 60


_TRACED = """
import asyncio, logging, os, sys
from temporalio.runtime import TelemetryFilter
from portico.features.jobs import temporal_connect
from portico.server.settings import JobSettings

async def main(address):
    temporal_connect.LEVELS = TelemetryFilter(core_level="TRACE", other_level="TRACE")
    logger, heard = logging.getLogger("portico.temporal"), asyncio.Event()
    loop, handler = asyncio.get_running_loop(), logging.Handler()
    handler.emit = lambda record: loop.call_soon_threadsafe(heard.set)
    logger.addHandler(handler)
    logger.setLevel(1)
    await temporal_connect.connect(JobSettings(engine="temporal", address=address))
    await asyncio.wait_for(heard.wait(), 60)
    logger.setLevel(logging.CRITICAL)
    sys.stdout.flush()
    os._exit(0)  # the library's runtime does not like to go while it speaks

asyncio.run(main(sys.argv[1]))
"""


async def test_the_librarys_lines_are_in_the_hosts_and_not_on_stdout(temporal: TemporalServer) -> None:
    """Nobody reads there after the ready line: with the pipe full, its threads stood still, and all jobs with them."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _TRACED, temporal.address), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, out) == (0, b"")


async def test_jobs_wait_for_a_server_that_is_away_and_sessions_do_not(host: Host, tmp_path: Path) -> None:
    server = TemporalServer(tmp_path / "temporal")
    jobs = await TemporalJobs.connect(host, None, JobSettings(engine="temporal", address=server.address))
    try:
        assert jobs.down is not None
        assert "does not answer (Connection refused). Is it running" in jobs.down
        await jobs.install(make({"ok": ok(), "slow": task("[[delay:2000]] [[say:done]]")}, seq(ref("slow"), ref("ok"))))
        job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
        session = await host.start(by="test", cwd=str(tmp_path))
        await session.rename("goes on", by="test")
        server.start()
        await until_started(host.log, job)
        server.stop(at_once=True)
        await session.rename("goes on again", by="test")
        server.start()
        async with asyncio.timeout(120):
            events = await until_ended(host.log, f"job/{job}")
        kinds = [type(event).__name__ for event in events]
        assert (kinds.count("WorkStarted"), kinds.count("WorkEnded"), kinds[-1]) == (2, 2, "JobEnded")
    finally:
        await jobs.close()
        server.stop(at_once=True)

"""Running workflow texts in a test's own host."""

from pathlib import Path
from textwrap import dedent
from typing import Any

from portico.features.jobs import Jobs
from portico.features.jobs.flow import FlowValues
from portico.features.jobs.state import JobState, JobSummary
from portico.features.jobs.workflow.files import load_text
from portico.features.jobs.workflow.inputs import check_inputs
from portico.kernel import events as e
from portico.kernel.host import Host
from tests.jobs.playing import until_ended


async def start(jobs: Jobs, text: str, cwd: Path, trigger: dict[str, Any] | None = None, **inputs: Any) -> str:
    entry = load_text(dedent(text), "main.yaml", "main")
    flow = entry.jobs["main"].flow
    assert flow is not None
    given = check_inputs(flow.inputs, inputs, (trigger or {}).get("payload"))
    return await jobs.start_job("main", cwd=str(cwd), by="test", entry=entry, inputs=given, trigger=trigger)


async def finish(jobs: Jobs, job: str) -> JobSummary:
    await until_ended(jobs.host.log, f"job/{job}")
    return jobs.job(job)


async def run(host: Host, text: str, cwd: Path, **inputs: Any) -> JobSummary:
    """Run a workflow to its end."""
    jobs = await Jobs.open(host)
    return await finish(jobs, await start(jobs, text, cwd, **inputs))


async def steps(jobs: Jobs, job: str) -> dict[str, Any]:
    """The results of all steps with an id, as templates see them at the end."""
    state: JobState = await jobs.load(job)
    assert state.job.flow is not None
    found = FlowValues(jobs.host, state, jobs.services, _no_put).context("r")["steps"]
    return {ident: found[ident] for ident in state.job.flow.ids}


async def _no_put(*events: e.Event) -> None:
    raise AssertionError("nothing is written")

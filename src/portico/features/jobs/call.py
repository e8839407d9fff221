"""Jobs that other jobs call."""

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from portico.features.jobs import events as je
from portico.features.jobs.entry import Entry
from portico.features.jobs.state import JobSummary, secret_references
from portico.features.jobs.workflow.files import find_workflow, load_workflow, workflows
from portico.features.jobs.workflow.inputs import check_inputs
from portico.kernel.errors import BadRequest, NotFound

if TYPE_CHECKING:
    from portico.features.jobs.jobs import Jobs

CALL_DEPTH = 8
"""Jobs that call jobs: deeper ones call each other in a circle."""
_CALLER = re.compile(r"job:(job-\d+)@")


async def call_job(jobs: "Jobs", caller: JobSummary, key: str, name: str, inputs: dict[str, Any]) -> JobSummary:
    """Run a workflow of the caller's folder to its end. It is found by its key if it was started before."""
    known = next((each for each in reversed(jobs.history()) if each.by == key), None)
    ident = known.id if known is not None else await _start(jobs, caller, key, name, inputs)
    try:
        async for records in jobs.host.log.follow(f"job/{ident}"):
            if any(isinstance(record.event, je.JobEnded) for record in records):
                break
    except asyncio.CancelledError:
        if not jobs.host.stopping and not jobs.is_suspended(caller.id):
            jobs.host.own(jobs.stop_job(ident, by=key), f"stop {ident}")
        raise
    return jobs.job(ident)


async def _start(jobs: "Jobs", caller: JobSummary, key: str, name: str, inputs: dict[str, Any]) -> str:
    if _depth(jobs, caller) >= CALL_DEPTH:
        raise BadRequest(f"Jobs call each other more than {CALL_DEPTH} times.", field="call")
    entry = workflow_of(caller.cwd, name)
    flow = entry.jobs[name].flow
    assert flow is not None
    given = check_inputs(flow.inputs, inputs)
    references = secret_references(await jobs.load(caller.id))
    for field, value in given.items():
        if isinstance(value, str) and value in references and flow.inputs[field].type != "secret":
            words = f"The input {field!r} of {name!r} would get a secret, so its type has to be 'secret'."
            raise BadRequest(words, field="call")
    return await jobs.start_job(
        name, cwd=caller.cwd, by=key, entry=entry, owner=caller.owner, inputs=given, known=references
    )


def _depth(jobs: "Jobs", job: JobSummary) -> int:
    depth = 0
    while (found := _CALLER.match(job.by)) is not None and depth < CALL_DEPTH:
        job, depth = jobs.job(found[1]), depth + 1
    return depth


def workflow_of(folder: str, name: str) -> Entry:
    path = find_workflow(Path(folder), name)
    if path is None:
        known = ", ".join(map(repr, workflows(Path(folder)))) or "none"
        raise NotFound("job", name, f"The workflows of {folder}: {known}.")
    return load_workflow(path)

"""The jobs API, `/v1/jobs`: the whole history, custom entries, resume and retry.

The command line uses it. The events of a job are in its channel: `/v1/events?channel=job/ID`.
"""

from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from starlette.requests import Request

from portico.doors.rest.commands import routes
from portico.features.jobs import Entry, EntryError, Jobs, JobStatus, JobSummary, job_listing, load_entry
from portico.features.jobs import commands as jc
from portico.features.jobs.chart import ChartGraph, generate_chart
from portico.features.jobs.events import Artifact
from portico.features.jobs.load import Syntax, parse
from portico.features.jobs.rows import JobRow, RowFilter
from portico.features.jobs.schema import entry_schema
from portico.features.sandboxes.record import NetworkRecord
from portico.features.sandboxes.shapes import HostUse, NetworkUse
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json
from portico.server.app import App
from portico.server.body import read_as
from portico.server.door import Door
from portico.server.route import Param, Table
from portico.server.routes import Routes


class JobHistory(Struct):
    jobs: list[JobSummary]


class JobWithEntry(JobSummary, kw_only=True):
    entry: Entry
    """The part of the entry that this job needs."""
    chart: ChartGraph
    """The chart of that entry, which may differ from the current entry of the host."""
    network: list[HostUse] = []
    """The hosts that its sandboxed sessions and its `http` steps connected to, or tried to."""
    rows: list[JobRow] = []
    """Of a workflow: one for each step that has started."""
    inputs: dict[str, Any] = {}


class JobResult(Struct):
    id: str
    status: JobStatus
    result: Any
    """What the workflow declares as its result; null while it runs."""
    artifacts: list[Artifact]
    error: str
    """Of a failed job: the step that failed and why."""
    network: list[HostUse] = []
    """The hosts that it connected to, or tried to."""


def read_filter(text: str) -> RowFilter:
    known: dict[str, RowFilter] = {each: each for each in get_args(RowFilter)}
    if text not in known:
        raise BadRequest(f"'rows' is one of {', '.join(filter(None, known))}, not {text!r}.", field="rows")
    return known[text]


class CurrentEntry(Struct):
    name: str
    """The source of the entry."""
    entry: Entry
    chart: dict[str, ChartGraph]


class CheckBody(Struct, forbid_unknown_fields=True):
    text: str
    syntax: Syntax = "json"


class EntryChecked(Struct, omit_defaults=True):
    """Either the charts of its jobs, or the first mistake and its place."""

    chart: dict[str, ChartGraph] = {}
    inputs: list[str] = []
    """The jobs that need input from their user."""
    path: str = ""
    mistake: str = ""


class JobsDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.routes = _routes(app, app.jobs)


def _routes(app: App, jobs: Jobs) -> Table:
    read = Routes(app)

    @read("/entry.schema.json", "open", "The JSON Schema of entries, for editors.")
    async def schema(request: Request) -> Json:
        return entry_schema()

    @read("/v1/entry", "read", "The host's own entry, with the charts of its jobs.", codes=["conflict"])
    async def current(request: Request) -> CurrentEntry:
        entry = jobs.entry
        return CurrentEntry(jobs.entry_name, entry, job_listing(entry).chart)

    async def network(job: JobSummary) -> NetworkUse:
        tasks = {f"task:{work.task}" for work in job.works}
        channels = [f"session/{each.id}" for each in app.host.summaries() if each.by in tasks]
        return await app.features[NetworkRecord].of(*channels, *(f"task/{work.task}" for work in job.works))

    summary = "Check an entry and draw its charts; nothing is started."

    @read("/v1/entry/check", "read", summary, methods=("POST",), body=CheckBody)
    async def check(request: Request) -> EntryChecked:
        body = await read_as(request, CheckBody)
        try:
            entry = load_entry(parse(body.text, body.syntax))
        except EntryError as error:
            return EntryChecked(path=error.path, mistake=error.text)
        inputs = [name for name, job in entry.jobs.items() if job.require_user_input]
        return EntryChecked(job_listing(entry).chart, inputs)

    @read("/v1/jobs", "read", "Every job there ever was.")
    async def listing(request: Request) -> JobHistory:
        return JobHistory(list(app.view(request).jobs(jobs.history())))

    rows = Param("of a workflow: only the steps with this status", Literal["running", "succeeded", "failed", "stopped"])

    @read("/v1/jobs/{id}", "read", "A job: what became of its works, and the entry it runs.", query={"rows": rows})
    async def show(request: Request) -> JobWithEntry:
        job = request.path_params["id"]
        summary = app.view(request).job(jobs.job(job))
        entry = await jobs.entry_of(job)
        chart = generate_chart(entry.jobs[summary.name].work)
        used = await network(summary)
        found = await jobs.rows(job, read_filter(request.query_params.get("rows", "")))
        inputs = await jobs.inputs_of(job)
        more: dict[str, Any] = {"network": used.hosts, "rows": found, "inputs": inputs}
        return JobWithEntry(**msgspec.structs.asdict(summary), entry=entry, chart=chart, **more)

    @read("/v1/jobs/{id}/result", "read", "The result of a job, its artifacts, and why it failed.")
    async def result(request: Request) -> JobResult:
        summary = app.view(request).job(jobs.job(request.path_params["id"]))
        used = await network(summary)
        return JobResult(summary.id, summary.status, summary.result, summary.artifacts, summary.error, used.hosts)

    return [*read.table, *routes(app, jc.COMMANDS)]

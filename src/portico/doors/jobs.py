"""Jobs in the host's own words, `/v1/jobs`: the whole history, entries of one's own, resume and retry.

The command line uses it. A job's events are those of its channel: `/v1/events?channel=job/ID`.
"""

from typing import get_args

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.commands import JobCommand
from portico.doors.app import App
from portico.doors.body import JsonResponse, read_as
from portico.doors.door import Door
from portico.doors.rest.commands import routes
from portico.doors.route import Route, Table
from portico.events import Json
from portico.jobs import Entry, EntryError, Jobs, JobSummary, job_listing, load_entry
from portico.jobs.chart import ChartGraph, generate_chart
from portico.jobs.load import Syntax, parse
from portico.jobs.schema import entry_schema


class JobHistory(Struct):
    jobs: list[JobSummary]


class JobWithEntry(JobSummary, kw_only=True):
    entry: Entry
    """As far as this job needs it."""
    chart: ChartGraph
    """Of that entry, whatever the host's own says today."""


class CurrentEntry(Struct):
    name: str
    """Where it comes from."""
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
    async def listing(request: Request) -> Response:
        return JsonResponse(JobHistory(list(app.view(request).jobs(jobs.history()))))

    async def show(request: Request) -> Response:
        job = request.path_params["id"]
        summary = app.view(request).job(jobs.job(job))
        entry = await jobs.entry_of(job)
        chart = generate_chart(entry.jobs[summary.name].work)
        return JsonResponse(JobWithEntry(**msgspec.structs.asdict(summary), entry=entry, chart=chart))

    async def current(request: Request) -> Response:
        entry = jobs.entry
        return JsonResponse(CurrentEntry(jobs.entry_name, entry, job_listing(entry).chart))

    async def check(request: Request) -> Response:
        body = await read_as(request, CheckBody)
        try:
            entry = load_entry(parse(body.text, body.syntax))
        except EntryError as error:
            return JsonResponse(EntryChecked(path=error.path, mistake=error.text))
        inputs = [name for name, job in entry.jobs.items() if job.require_user_input]
        return JsonResponse(EntryChecked(job_listing(entry).chart, inputs))

    async def schema(request: Request) -> Response:
        return JsonResponse(entry_schema())

    one = "/v1/jobs/{id}"
    return [
        Route(
            "/entry.schema.json",
            schema,
            "open",
            summary="The JSON Schema of entries, for editors.",
            doc={"answer": Json},
        ),
        Route(
            "/v1/entry",
            current,
            "read",
            summary="The host's own entry, with the charts of its jobs.",
            doc={"answer": CurrentEntry, "codes": ["conflict"]},
        ),
        Route(
            "/v1/entry/check",
            check,
            "read",
            ("POST",),
            "Check an entry and draw its charts; nothing is started.",
            doc={"body": CheckBody, "answer": EntryChecked},
        ),
        Route("/v1/jobs", listing, "read", summary="Every job there ever was.", doc={"answer": JobHistory}),
        Route(
            one,
            show,
            "read",
            summary="A job: what became of its works, and the entry it runs.",
            doc={"answer": JobWithEntry},
        ),
        *routes(app, get_args(JobCommand)),
    ]

"""Jobs in the host's own words, `/v1/jobs`: the whole history, entries of one's own, resume and retry.

The command line uses it. A job's events are those of its channel: `/v1/events?channel=job/ID`.
"""

from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import EmptyBody, JsonResponse, read_as
from portico.doors.route import Doc, Route, Table, caller
from portico.errors import BadRequest
from portico.events import Json
from portico.jobs import Entry, EntryError, Jobs, JobSummary, job_listing, load_entry
from portico.jobs.chart import ChartGraph, generate_chart
from portico.jobs.load import Syntax, parse
from portico.jobs.schema import entry_schema


class StartJob(Struct, forbid_unknown_fields=True):
    job: str
    cwd: str
    input: str = ""
    entry: dict[str, Any] | None = None
    """An entry for this job alone; absent: the host's own."""


class History(Struct):
    jobs: list[JobSummary]


class JobNamed(Struct):
    job: str


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


class Checked(Struct, omit_defaults=True):
    """Either the charts of its jobs, or the first mistake and its place."""

    chart: dict[str, ChartGraph] = {}
    inputs: list[str] = []
    """The jobs that need input from their user."""
    path: str = ""
    mistake: str = ""


def job_routes(app: App, jobs: Jobs) -> Table:
    async def listing(request: Request) -> Response:
        return JsonResponse(History(jobs.history()))

    async def start(request: Request) -> Response:
        body = await read_as(request, StartJob)
        entry = None if body.entry is None else load_entry(body.entry)
        by = caller(request).by
        _check_input(body, entry or jobs.entry)
        job = await jobs.start_job(body.job, cwd=body.cwd, input=body.input, by=by, entry=entry)
        return JsonResponse(JobNamed(job), 201)

    async def show(request: Request) -> Response:
        job = request.path_params["id"]
        entry = await jobs.entry_of(job)
        summary = jobs.job(job)
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
            return JsonResponse(Checked(path=error.path, mistake=error.text))
        inputs = [name for name, job in entry.jobs.items() if job.require_user_input]
        return JsonResponse(Checked(job_listing(entry).chart, inputs))

    async def stop(request: Request) -> Response:
        await read_as(request, EmptyBody)
        await jobs.stop_job(request.path_params["id"], by=caller(request).by)
        return JsonResponse(EmptyBody())

    async def resume(request: Request) -> Response:
        await read_as(request, EmptyBody)
        return JsonResponse(JobNamed(await jobs.resume(request.path_params["id"], by=caller(request).by)), 202)

    async def retry(request: Request) -> Response:
        await read_as(request, EmptyBody)
        return JsonResponse(JobNamed(await jobs.retry(request.path_params["id"], by=caller(request).by)), 202)

    async def schema(request: Request) -> Response:
        return JsonResponse(entry_schema())

    one = "/v1/jobs/{id}"
    begun: Doc = {"body": StartJob, "answer": JobNamed, "status": 201, "codes": ["not_found", "conflict"]}
    again: Doc = {"body": EmptyBody, "answer": JobNamed, "status": 202, "codes": ["conflict"]}
    stopped: Doc = {"body": EmptyBody, "answer": EmptyBody, "codes": ["conflict"]}
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
            doc={"body": CheckBody, "answer": Checked},
        ),
        Route("/v1/jobs", listing, "read", summary="Every job there ever was.", doc={"answer": History}),
        Route("/v1/jobs", start, "jobs", ("POST",), "Start a job.", doc=begun),
        Route(
            one,
            show,
            "read",
            summary="A job: what became of its works, and the entry it runs.",
            doc={"answer": JobWithEntry},
        ),
        Route(f"{one}/stop", stop, "jobs", ("POST",), "Cancel a job.", doc=stopped),
        Route(f"{one}/resume", resume, "jobs", ("POST",), "Go on with a waiting, failed or canceled job.", doc=again),
        Route(f"{one}/retry", retry, "jobs", ("POST",), "The same job from the beginning.", doc=again),
    ]


def _check_input(body: StartJob, entry: Entry) -> None:
    """Its prompts would say `<MISSING>`. The Portal door has no word for that, and lets it pass."""
    job = entry.jobs.get(body.job)
    if job is not None and job.require_user_input and not body.input:
        raise BadRequest(f"The job {body.job!r} needs input from its user.", field="input")

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
from portico.doors.body import JsonResponse
from portico.doors.rest.commands import routes
from portico.doors.route import Route, Table
from portico.events import Json
from portico.jobs import Entry, Jobs, JobSummary
from portico.jobs.schema import entry_schema


class History(Struct):
    jobs: list[JobSummary]


class JobWithEntry(JobSummary, kw_only=True):
    entry: Entry
    """As far as this job needs it."""


def job_routes(app: App, jobs: Jobs) -> Table:
    async def listing(request: Request) -> Response:
        return JsonResponse(History(jobs.history()))

    async def show(request: Request) -> Response:
        job = request.path_params["id"]
        entry = await jobs.entry_of(job)
        return JsonResponse(JobWithEntry(**msgspec.structs.asdict(jobs.job(job)), entry=entry))

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
        Route("/v1/jobs", listing, "read", summary="Every job there ever was.", doc={"answer": History}),
        Route(
            one,
            show,
            "read",
            summary="A job: what became of its works, and the entry it runs.",
            doc={"answer": JobWithEntry},
        ),
        *routes(app, get_args(JobCommand)),
    ]

"""What the rules of retention would do, and doing it; and erasing all that one person has said."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse, read_as
from portico.doors.people import read_people
from portico.doors.route import Doc, Route, Table, caller
from portico.errors import NotFound
from portico.people.retention import Planned, Retention


class RetentionBody(Struct, forbid_unknown_fields=True):
    dry_run: bool = False


class RetentionDone(Struct):
    dry_run: bool
    sessions: list[Planned]
    """What was done; with `dry_run`, what would be."""


def table(app: App) -> Table:
    retention = app.host.part(Retention)

    async def answer(request: Request, body: RetentionBody, planned: list[Planned]) -> Response:
        done = planned if body.dry_run else await retention.carry_out(planned, caller(request))
        return JsonResponse(RetentionDone(body.dry_run, done))

    async def by_rule(request: Request) -> Response:
        return await answer(request, await read_as(request, RetentionBody), retention.planned())

    async def erase(request: Request) -> Response:
        body, name = await read_as(request, RetentionBody), request.path_params["name"]
        planned = retention.of_person(name)
        if not planned and all(each.name != name for each in read_people(app.home)):
            raise NotFound("person", name)
        return await answer(request, body, planned)

    doc: Doc = {"body": RetentionBody, "answer": RetentionDone}
    words = "Delete all sessions of a person."
    return [
        Route("/v1/retention", by_rule, "admin", ("POST",), "Archive and delete old sessions by rule.", doc=doc),
        Route("/v1/people/{name}/erase", erase, "admin", ("POST",), words, doc=doc),
    ]

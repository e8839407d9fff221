"""What a session's turns changed in its folder."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from portico.changes.captures import OwnChanges
from portico.changes.component import captures_of
from portico.commands import READS
from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.read_forward import at_place
from portico.doors.route import Route, Table
from portico.host.state import ChangeList


def table(app: App) -> Table:
    async def listing(request: Request) -> Response:
        session = await app.view(request).get(request.path_params["id"])
        return JsonResponse(await session.changes(request.query_params.get("turn")))

    async def diff(request: Request) -> Response:
        session = await app.view(request).get(request.path_params["id"])
        query = request.query_params
        return PlainTextResponse(await session.diff(query.get("path"), query.get("turn")))

    async def own(request: Request) -> Response:
        return JsonResponse(await captures_of(await app.view(request).get(request.path_params["id"])).own())

    one, turn = "/v1/sessions/{id}/changes", "of one turn; without it of all"
    return [
        Route(
            one,
            at_place(app, listing),
            READS["changes"],
            summary="Files that the turns changed.",
            doc={"answer": ChangeList, "query": {"turn": turn}, "codes": ["conflict"]},
        ),
        Route(
            f"{one}/own",
            at_place(app, own),
            READS["changes"],
            summary="Which of them are the session's own, where others work in its folder.",
            doc={"answer": OwnChanges, "codes": ["conflict"]},
        ),
        Route(
            f"{one}/diff",
            at_place(app, diff),
            READS["changes"],
            summary="The same as a unified diff.",
            doc={"media": "text/plain", "query": {"turn": turn, "path": "of one file"}, "codes": ["conflict"]},
        ),
    ]

"""What people have answered for longer than once: the grants."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.route import Doc, Route, Table
from portico.events import Grant


class GrantList(Struct):
    grants: list[Grant]


def table(app: App) -> Table:
    async def grants(request: Request) -> Response:
        return JsonResponse(GrantList(list(app.view(request).grants())))

    doc: Doc = {"answer": GrantList}
    return [Route("/v1/grants", grants, "read", summary="Remembered answers that are still valid.", doc=doc)]

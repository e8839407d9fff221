"""The draft of a session: what stands in every input until a person sends it."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse, read_as
from portico.doors.route import Route, Table, caller
from portico.host.draft import set_draft


class Draft(Struct, forbid_unknown_fields=True):
    text: str
    """Empty: there is none any more."""


def table(app: App) -> Table:
    async def put(request: Request) -> Response:
        session, body = await app.host.get(request.path_params["id"]), await read_as(request, Draft)
        await set_draft(session, body.text, by=caller(request).by)
        return JsonResponse(body)

    summary = "Put a text into every page's and editor's input, without sending it; an empty one takes it away."
    return [
        Route(
            "/v1/sessions/{id}/draft",
            put,
            "drive",
            ("PUT",),
            summary,
            doc={"body": Draft, "answer": Draft, "codes": ["conflict"]},
        )
    ]

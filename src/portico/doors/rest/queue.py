"""The queue that the host holds for a session."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.route import Doc, Route, Table
from portico.host.state import PendingState


class QueueShown(Struct):
    queue: list[PendingState]
    held: bool
    """It waits after a crash or an interrupted turn, until somebody lets it go on."""


def table(app: App) -> Table:
    async def listing(request: Request) -> Response:
        state = (await app.view(request).get(request.path_params["id"])).state
        return JsonResponse(QueueShown(state.queue, state.queue_held))

    doc: Doc = {"answer": QueueShown}
    return [Route("/v1/sessions/{id}/queue", listing, "read", summary="The waiting messages.", doc=doc)]

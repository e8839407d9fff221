"""The queue that the host holds for a session."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse, read_as
from portico.doors.route import Doc, Route, Table, caller
from portico.events import Json, Message
from portico.host.session import Session
from portico.host.state import PendingState


class PendingBody(Struct, forbid_unknown_fields=True):
    text: str
    attachments: list[Json] = []
    model: str | None = None


class OrderBody(Struct, forbid_unknown_fields=True):
    order: list[str]


class Queue(Struct):
    queue: list[PendingState]
    held: bool
    """It waits after a crash or an interrupted turn, until somebody lets it go on."""


class SteeredNow(Struct):
    steered: bool


def table(app: App) -> Table:
    async def get(request: Request) -> Session:
        return await app.host.get(request.path_params["id"])

    def shown(session: Session) -> Response:
        return JsonResponse(Queue(session.state.queue, session.state.queue_held))

    async def listing(request: Request) -> Response:
        return shown(await get(request))

    async def edit(request: Request) -> Response:
        session, body = await get(request), await read_as(request, PendingBody)
        message = Message(body.text, body.attachments, body.model)
        await session.queue.edit(request.path_params["pending"], message, by=caller(request).by)
        return shown(session)

    async def remove(request: Request) -> Response:
        session = await get(request)
        await session.queue.remove(request.path_params["pending"], by=caller(request).by)
        return shown(session)

    async def steer(request: Request) -> Response:
        session = await get(request)
        taken = await session.queue.steer_now(request.path_params["pending"], by=caller(request).by)
        return JsonResponse(SteeredNow(taken))

    async def reorder(request: Request) -> Response:
        session, body = await get(request), await read_as(request, OrderBody)
        await session.queue.reorder(body.order, by=caller(request).by, strict=True)
        return shown(session)

    async def release(request: Request) -> Response:
        session = await get(request)
        await session.queue.release(by=caller(request).by)
        return shown(session)

    base = "/v1/sessions/{id}/queue"
    shows: Doc = {"answer": Queue, "codes": ["conflict"]}
    ordered: Doc = {"body": OrderBody, **shows}
    edited: Doc = {"body": PendingBody, **shows}
    steered: Doc = {"answer": SteeredNow, "codes": ["conflict"]}
    return [
        Route(base, listing, "read", summary="The waiting messages.", doc={"answer": Queue}),
        Route(
            f"{base}/order", reorder, "drive", ("POST",), "Put the waiting messages into another order.", doc=ordered
        ),
        Route(f"{base}/release", release, "drive", ("POST",), "Let a held queue go on.", doc=shows),
        Route(f"{base}/{{pending}}", edit, "drive", ("PATCH",), "Edit a waiting message.", doc=edited),
        Route(f"{base}/{{pending}}", remove, "drive", ("DELETE",), "Remove a waiting message.", doc=shows),
        Route(
            f"{base}/{{pending}}/steer", steer, "drive", ("POST",), "Offer it to the running agent now.", doc=steered
        ),
    ]

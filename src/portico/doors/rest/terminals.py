"""Terminals: shells of the host that people open, watch and come back to."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.rest.attachment import Attachment
from portico.doors.rest.query import number
from portico.doors.rest.shell import TerminalInfo, TerminalScreen, info, screen
from portico.doors.route import Route, Socket, Table
from portico.terminals.state import TerminalState


class TerminalList(Struct):
    terminals: list[TerminalInfo]


def table(app: App) -> Table:
    def get(connection: Request | WebSocket) -> TerminalState:
        return app.view(connection).terminal(connection.path_params["id"])

    async def listing(request: Request) -> Response:
        wanted = request.query_params.get("session")
        found = [each for each in app.view(request).terminals() if wanted is None or each.session == wanted]
        return JsonResponse(TerminalList([info(each, app.host.connected) for each in found]))

    async def show(request: Request) -> Response:
        return JsonResponse(screen(get(request), app.host.connected))

    async def attach(socket: WebSocket) -> None:
        terminal = get(socket)
        after = number(socket, "after", 0) if "after" in socket.query_params else None
        await Attachment(app.host, app.view(socket), terminal, socket).run(after)

    one = "/v1/terminals/{id}"
    return [
        Route(
            "/v1/terminals",
            listing,
            "terminal",
            summary="Open terminals.",
            doc={"answer": TerminalList, "query": {"session": "opened from this session"}},
        ),
        Route(one, show, "terminal", summary="A terminal, and what it has shown.", doc={"answer": TerminalScreen}),
        Socket(f"{one}/socket", attach, "terminal", "A terminal, live: what it shows, and what is typed."),
    ]

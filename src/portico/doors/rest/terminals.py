"""Terminals: shells on the host that people open, watch and reattach to."""

from msgspec import Struct
from starlette.requests import Request
from starlette.websockets import WebSocket

from portico.doors.rest.attachment import Attachment
from portico.doors.rest.query import number
from portico.doors.rest.shell import TerminalInfo, TerminalScreen, info, screen
from portico.features.terminals.state import TerminalState
from portico.server.app import App
from portico.server.route import Socket, Table
from portico.server.routes import Routes


class TerminalList(Struct):
    terminals: list[TerminalInfo]


def table(app: App) -> Table:
    read, one = Routes(app), "/v1/terminals/{id}"

    def get(connection: Request | WebSocket) -> TerminalState:
        return app.view(connection).terminal(connection.path_params["id"])

    @read("/v1/terminals", "terminal", "Open terminals.", query={"session": "opened from this session"})
    async def listing(request: Request) -> TerminalList:
        wanted = request.query_params.get("session")
        found = [each for each in app.view(request).terminals() if wanted is None or each.session == wanted]
        return TerminalList([info(each, app.host.connected) for each in found])

    @read(one, "terminal", "A terminal, and what it has shown.")
    async def show(request: Request) -> TerminalScreen:
        return screen(get(request), app.host.connected)

    async def attach(socket: WebSocket) -> None:
        terminal = get(socket)
        after = number(socket, "after", 0) if "after" in socket.query_params else None
        await Attachment(app.host, app.view(socket), terminal, socket).run(after)

    live = Socket(f"{one}/socket", attach, "terminal", "A terminal, live: what it shows, and what is typed.")
    return [*read.table, live]

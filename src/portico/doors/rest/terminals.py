"""Terminals: shells of the host that people open, watch and come back to."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from portico import limits
from portico.doors.app import App
from portico.doors.body import JsonResponse, read_as
from portico.doors.rest.attachment import Attachment
from portico.doors.rest.query import number
from portico.doors.rest.shell import TerminalInfo, TerminalScreen, info, resize, screen, type_into
from portico.doors.route import Doc, Route, Socket, Table, caller
from portico.errors import BadRequest, NotFound, PorticoError
from portico.host.terminals import OpenTerminal
from portico.workspace.jail import Jail


class OpenBody(Struct, forbid_unknown_fields=True):
    cwd: str | None = None
    session: str | None = None
    title: str = ""
    cols: int = 80
    rows: int = 24


class InputBody(Struct, forbid_unknown_fields=True):
    data: str


class ResizeBody(Struct, forbid_unknown_fields=True):
    cols: int
    rows: int


class Terminals(Struct):
    terminals: list[TerminalInfo]


def folder(app: App, body: OpenBody) -> str:
    """Where the shell begins: inside a workspace, or in the folder of the session it is opened from."""
    roots = [str(each) for each in app.workspaces if each.is_dir()]
    if body.session is not None:
        found = app.host.find(body.session)
        if found is None:
            raise NotFound("session", body.session)
        if found.summary.cwd not in ("", "/"):
            roots.insert(0, found.summary.cwd)
    if not roots:
        raise BadRequest("The host has no workspace; start it with --workspace FOLDER.", field="cwd")
    wanted = body.cwd if body.cwd is not None else roots[0]
    try:
        where = Jail(roots).resolve(wanted)
    except PorticoError as error:
        error.field = "cwd"
        raise
    if not where.is_dir():
        raise BadRequest(f"There is no folder {wanted!r}.", field="cwd")
    return str(where)


def table(app: App) -> Table:
    terminals = app.host.terminals

    def get(connection: Request | WebSocket) -> OpenTerminal:
        return terminals.get(connection.path_params["id"])

    async def listing(request: Request) -> Response:
        wanted = request.query_params.get("session")
        found = [each for each in terminals.list() if wanted is None or each.session == wanted]
        return JsonResponse(Terminals([info(each) for each in found]))

    async def start(request: Request) -> Response:
        body, by = await read_as(request, OpenBody), caller(request).by
        if len(body.title) > limits.TITLE_CHARS:
            raise BadRequest(f"A title has at most {limits.TITLE_CHARS} characters.", field="title")
        terminal = await terminals.start(
            claim={"kind": "client", "clientId": by},
            cwd=folder(app, body),
            by=by,
            title=body.title,
            cols=body.cols,
            rows=body.rows,
            session=body.session,
        )
        return JsonResponse(info(terminal), 201)

    async def show(request: Request) -> Response:
        return JsonResponse(screen(get(request)))

    async def typed(request: Request) -> Response:
        terminal = get(request)
        type_into(terminal, (await read_as(request, InputBody)).data)
        return Response(status_code=204)

    async def resized(request: Request) -> Response:
        terminal = get(request)
        body = await read_as(request, ResizeBody)
        await resize(terminal, body.cols, body.rows, caller(request).by)
        return JsonResponse(info(terminal))

    async def close(request: Request) -> Response:
        await terminals.dispose(get(request).id, by=caller(request).by)
        return Response(status_code=204)

    async def attach(socket: WebSocket) -> None:
        terminal = get(socket)
        after = number(socket, "after", 0) if "after" in socket.query_params else None
        await Attachment(app.host, terminal, socket).run(after)

    one = "/v1/terminals/{id}"
    opened: Doc = {"body": OpenBody, "answer": TerminalInfo, "status": 201, "codes": ["not_found", "conflict"]}
    return [
        Route(
            "/v1/terminals",
            listing,
            "terminal",
            summary="Open terminals.",
            doc={"answer": Terminals, "query": {"session": "opened from this session"}},
        ),
        Route("/v1/terminals", start, "terminal", ("POST",), "Open a terminal.", limited=True, doc=opened),
        Route(one, show, "terminal", summary="A terminal, and what it has shown.", doc={"answer": TerminalScreen}),
        Route(one, close, "terminal", ("DELETE",), "End the shell and all it started.", doc={"others": {204: None}}),
        Route(
            f"{one}/input",
            typed,
            "terminal",
            ("POST",),
            "Type into it.",
            doc={"body": InputBody, "others": {204: None}, "codes": ["conflict"]},
        ),
        Route(
            f"{one}/resize",
            resized,
            "terminal",
            ("POST",),
            "Change its size.",
            doc={"body": ResizeBody, "answer": TerminalInfo, "codes": ["conflict"]},
        ),
        Socket(f"{one}/socket", attach, "terminal", "A terminal, live: what it shows, and what is typed."),
    ]

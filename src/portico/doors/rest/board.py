"""The list of sessions as people watch it, live over one WebSocket; and the inbox: all that waits for a person."""

import asyncio

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from portico import limits
from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.read_forward import at_owner
from portico.doors.rest.query import Flag, flag, number, numbered
from portico.doors.route import Param, Route, Socket, Table
from portico.events import Breadth
from portico.people.view import View
from portico.queries.answers import Answers, PastAnswers
from portico.queries.board import Board, BoardRow, PendingRequest


class BoardPage(Struct):
    version: int
    rows: list[BoardRow]
    older: int
    """Sessions that are not among the rows; ask with `?before=`."""
    archived: int
    """Sessions in the archive; ask with `?archived=true`."""


class Inbox(Struct):
    waiting: list[PendingRequest]


class Covered(Struct):
    breadth: Breadth
    covers: list[str]
    """As in a grant; nothing: all that the tool does."""


class Coverage(Struct):
    covers: list[Covered]


def table(app: App) -> Table:
    host = app.host
    board, answers = Board(host), Answers(host)

    def page(view: View, limit: int, before: int | None = None, archived: bool = False) -> BoardPage:
        rows, older = board.rows(view, limit, before, archived)
        return BoardPage(board.version, rows, older, len(view.list(archived=True)))

    async def listing(request: Request) -> Response:
        before = number(request, "before", 0) if "before" in request.query_params else None
        limit = number(request, "limit", limits.BOARD_ROWS, 1, limits.BOARD_ROWS)
        return JsonResponse(page(app.view(request), limit, before, flag(request, "archived") or False))

    async def inbox(request: Request) -> Response:
        return JsonResponse(Inbox(board.inbox(app.view(request))))

    async def answered(request: Request) -> Response:
        return JsonResponse(await answers.since(number(request, "since", 0), app.view(request)))

    async def coverage(request: Request) -> Response:
        ident = request.path_params["id"]
        session = await app.view(request).get(app.view(request).session_of(ident))
        return JsonResponse(Coverage([Covered(*each) for each in session.approvals.breadths(ident)]))

    async def live(socket: WebSocket) -> None:
        await socket.accept()
        view = app.view(socket)
        sending = asyncio.ensure_future(_send_board(socket, page(view, limits.BOARD_ROWS), board, view))
        taking = asyncio.ensure_future(_until_gone(socket))
        try:
            await asyncio.wait({sending, taking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, taking):
                task.cancel()
            await asyncio.gather(sending, taking, return_exceptions=True)

    return [
        Route(
            "/v1/board",
            listing,
            "read",
            summary="Sessions with what they do now.",
            doc={
                "answer": BoardPage,
                "query": {
                    "before": numbered("only those that changed before this time (ms)"),
                    "limit": numbered(f"how many; {limits.BOARD_ROWS}", 1, limits.BOARD_ROWS),
                    "archived": Param("`true`: those in the archive instead", Flag),
                },
            },
        ),
        Socket("/v1/board/socket", live, "read", "The same, live."),
        Route("/v1/inbox", inbox, "read", summary="All that waits for a person, oldest first.", doc={"answer": Inbox}),
        Route(
            "/v1/inbox/answered",
            answered,
            "read",
            summary="What was answered, newest first, and how often a rule did.",
            doc={"answer": PastAnswers, "query": {"since": numbered("from this time on (ms); 0")}},
        ),
        Route(
            "/v1/approvals/{id}/covers",
            at_owner(app, coverage, lambda request: app.view(request).session_of(request.path_params["id"])),
            "read",
            summary="For what an answer to it can be remembered.",
            doc={"answer": Coverage},
        ),
    ]


async def _send_board(socket: WebSocket, first: BoardPage, board: Board, view: View) -> None:
    await _send(socket, msgspec.json.encode(first))
    version, shown = first.version, {row.session.id for row in first.rows}
    while True:
        await board.wait(version)
        await asyncio.sleep(limits.BOARD_SECONDS)
        changed = board.since(version, view)
        version = changed.version
        if not view.whole:  # what was never theirs to see is not even gone for them
            changed.removed = [each for each in changed.removed if each in shown]
            shown |= {row.session.id for row in changed.rows}
        await _send(socket, msgspec.json.encode(changed))


async def _send(socket: WebSocket, frame: bytes) -> None:
    async with asyncio.timeout(limits.SEND_SECONDS):
        await socket.send_text(frame.decode())


async def _until_gone(socket: WebSocket) -> None:
    """Nothing is said to it; what comes is left unread."""
    try:
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
    except WebSocketDisconnect:
        return

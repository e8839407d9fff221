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
from portico.doors.rest.query import Flag, flag, number, numbered
from portico.doors.route import Param, Route, Socket, Table
from portico.queries.board import Asked, Board, Row


class BoardPage(Struct):
    version: int
    rows: list[Row]
    older: int
    """Sessions that are not among the rows; ask with `?before=`."""
    archived: int
    """Sessions in the archive; ask with `?archived=true`."""


class Inbox(Struct):
    waiting: list[Asked]


def table(app: App) -> Table:
    host = app.host
    board = Board(host)

    def page(limit: int, before: int | None = None, archived: bool = False) -> BoardPage:
        rows, older = board.rows(limit, before, archived)
        return BoardPage(board.version, rows, older, board.archived())

    async def listing(request: Request) -> Response:
        before = number(request, "before", 0) if "before" in request.query_params else None
        limit = number(request, "limit", limits.BOARD_ROWS, 1, limits.BOARD_ROWS)
        return JsonResponse(page(limit, before, flag(request, "archived") or False))

    async def inbox(request: Request) -> Response:
        return JsonResponse(Inbox(board.inbox()))

    async def live(socket: WebSocket) -> None:
        await socket.accept()
        sending = asyncio.ensure_future(_send_board(socket, page(limits.BOARD_ROWS), board))
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
    ]


async def _send_board(socket: WebSocket, first: BoardPage, board: Board) -> None:
    await _send(socket, msgspec.json.encode(first))
    version = first.version
    while True:
        await board.wait(version)
        await asyncio.sleep(limits.BOARD_SECONDS)
        changed = board.since(version)
        version = changed.version
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

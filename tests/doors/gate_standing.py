"""A server with routes that try the gate; modules take it over as they do with `sharing`."""

from collections.abc import AsyncIterator

import pytest
import websockets
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from portico.server.route import Route, Socket
from tests.doors import sharing
from tests.doors.standing import Standing, standing

anyio_backend = sharing.anyio_backend


async def _fail(request: Request) -> Response:
    raise RuntimeError("a secret of the inside")


async def length(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


_HEADS: dict[str, list[tuple[bytes, bytes]]] = {
    "length": [(b"content-length", b"2")],
    "chunked": [],
    "upper": [(b"Content-Length", b"2"), (b"X-Two", b"2")],
    "close": [(b"content-length", b"2"), (b"connection", b"close")],
    "split": [(b"content-length", b"2"), (b"x-two", b"a\r\nset-cookie: b")],
    "name": [(b"content-length", b"2"), (b"x two", b"a")],
    "short": [(b"content-length", b"3")],
}


async def _raw(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADS[scope["path_params"]["how"]]})
    await send({"type": "http.response.body", "body": b"ok"})


async def _echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_text(str(len(await socket.receive_text())))
    except WebSocketDisconnect:
        return


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Standing]:
    async with standing(tmp_path_factory.mktemp("gate")) as here:
        here.server.gate.add(
            [
                Route("/test/fail", _fail, "read"),
                Route("/test/length", length, "drive", ("POST",)),
                Route("/test/small", length, "drive", ("POST",), max_body=10),
                Route("/test/limited", length, "drive", ("POST",), limited=True),
                Route("/test/raw/{how}", None, "read", app=_raw),
                Socket("/test/echo", _echo, "drive"),
            ]
        )
        yield here


async def upgrade(here: Standing, path: str, **headers: str) -> int:
    try:
        async with await connect(here, path, **headers):
            return 101
    except websockets.InvalidStatus as refused:
        return refused.response.status_code


async def connect(here: Standing, path: str, **headers: str) -> websockets.ClientConnection:
    url = here.url.replace("http://", "ws://") + path
    host = headers.pop("Host", None)
    if host is not None:  # the client sets its own Host: give it the name and the address apart
        port = here.server.port
        return await websockets.connect(f"ws://{host}:{port}{path}", host="127.0.0.1", port=port, proxy=None)
    return await websockets.connect(url, additional_headers=headers, max_size=None, proxy=None)

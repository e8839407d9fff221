"""Requests that never become one, on real sockets: whoever is too slow is told and cut off, everybody else is not."""

import asyncio
import contextlib
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import websockets
from starlette.types import ASGIApp, Receive, Scope, Send

from portico import limits
from portico.kernel.events import PartDelta
from portico.server.protocol import BoundedHttp
from tests.doors import sharing
from tests.doors.standing import Standing, read_events, standing

anyio_backend, shared = sharing.anyio_backend, sharing.shared

SHORT = 0.2
SLOW_HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


def _slow_body(here: Standing) -> bytes:
    return (
        f"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {here.home.token()}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"
    ).encode()


async def stall(here: Standing, beginning: bytes) -> bytes:
    """Sends the beginning and no more; returns what the server says before it closes the connection."""
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", here.server.port)
        writer.write(beginning)
        try:
            return await reader.read()
        finally:
            writer.close()


async def trickle(here: Standing, beginning: bytes) -> None:
    """Sends the beginning, then a byte at a time; returns when the server has had enough of it."""
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", here.server.port)
        writer.write(beginning)
        ended = asyncio.ensure_future(reader.read())
        with contextlib.suppress(ConnectionError):  # what it says last may be lost: we are still sending
            while not ended.done():
                writer.write(b" ")
                await writer.drain()
                await asyncio.wait({ended}, timeout=0.02)
        with contextlib.suppress(ConnectionError):
            await ended
        writer.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_HEAD_SECONDS", SHORT)
    monkeypatch.setattr(limits, "REQUEST_BODY_SECONDS", SHORT)


@pytest.mark.usefixtures("impatient")
async def test_a_connection_that_says_nothing_is_closed(shared: Standing) -> None:
    assert await stall(shared, b"") == b""
    assert (await shared.http.get("/v1")).status_code == 200


@pytest.mark.usefixtures("impatient")
async def test_a_head_that_comes_a_byte_at_a_time_is_cut_off(shared: Standing) -> None:
    """Some thousand of these held every connection of the host, for ever."""
    await trickle(shared, SLOW_HEAD)
    said = await stall(shared, SLOW_HEAD)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b'"field":"head"' in said
    assert b"within 0.2 seconds" in said


@pytest.mark.usefixtures("impatient")
async def test_a_body_that_comes_a_byte_at_a_time_is_cut_off(
    shared: Standing, caplog: pytest.LogCaptureFixture
) -> None:
    before = len(shared.server.host.list())
    with caplog.at_level(logging.WARNING):
        await trickle(shared, _slow_body(shared))
        said = await stall(shared, _slow_body(shared))
        assert (await shared.http.get("/v1")).status_code == 200
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b'"field":"body"' in said
    assert len(shared.server.host.list()) == before
    assert caplog.messages == [], "a client that is too slow is no bug of ours"


@pytest.mark.usefixtures("impatient")
async def test_a_further_request_on_the_same_connection_has_a_time_limit_too(shared: Standing) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    said = await stall(shared, whole + SLOW_HEAD)
    assert said.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in said


@pytest.mark.usefixtures("impatient")
async def test_streams_and_sockets_have_no_time_limit(shared: Standing) -> None:
    ident = await shared.start()
    async with (
        shared.http.stream("GET", f"/v1/sessions/{ident}/events", headers={"Accept": "text/event-stream"}) as stream,
        websockets.connect(f"{shared.url.replace('http', 'ws')}/ahp?tkn={shared.home.token()}") as socket,
    ):
        for _ in range(3):  # each takes as long as the limit
            assert b"408" in await stall(shared, SLOW_HEAD)
        await shared.say(ident, "[[say:still there]]")
        assert (await read_events(stream, 1))[0][0] == 1
        await (await socket.ping())


START = "http.response.start"
BODY = "http.response.body"


def _length(size: int) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", b"text/plain"), (b"content-length", b"%d" % size)]


HEAD = b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n"
CLOSE = b"connection: close\r\n\r\n"
ANSWERS: dict[str, tuple[str, list[dict[str, Any]], bytes]] = {
    "in one piece": ("GET", [{"body": b"hello"}], HEAD % (b"200 OK", 5) + CLOSE + b"hello"),
    "in two": ("GET", [{"body": b"he", "more_body": True}, {"body": b"llo"}], HEAD % (b"200 OK", 5) + CLOSE + b"hello"),
    "the end by itself": (
        "GET",
        [{"body": b"hello", "more_body": True}, {}],
        HEAD % (b"200 OK", 5) + CLOSE + b"hello",
    ),
    "only the head": ("HEAD", [{"body": b"hello"}], HEAD % (b"200 OK", 5) + CLOSE),
    "nothing": ("GET", [{"body": b""}], HEAD % (b"200 OK", 0) + CLOSE),
    "too little": ("GET", [{"body": b"hell"}], HEAD % (b"200 OK", 5) + CLOSE + b"hell"),
    "too much": ("GET", [{"body": b"hello!"}], HEAD % (b"200 OK", 5) + CLOSE),
}
"""The method, what the application sends behind a head, and what is on the wire then."""


@pytest.mark.parametrize("what", ANSWERS)
async def test_an_answer_is_on_the_wire_as_the_application_gave_it(what: str) -> None:
    """Its head waits for the first piece of the body; both are one write where that is all of it."""
    method, pieces, wire = ANSWERS[what]
    size = int(wire.partition(b"content-length: ")[2].partition(b"\r")[0])

    taken: list[dict[str, Any]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": START, "status": 200, "headers": _length(size)})
        for piece in pieces:
            await send({"type": BODY, **piece})
            taken.append(piece)

    assert await _ask(app, f"{method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()) == wire
    assert taken == ([] if what.startswith("too") else pieces)


async def test_a_connection_goes_on_behind_an_answer_in_one_piece() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": START, "status": 200, "headers": _length(1)})
        await send({"type": BODY, "body": scope["path"][1:].encode()})

    asked = b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(3))
    last = b"GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    head = HEAD % (b"200 OK", 1)
    said = b"".join(head + b"\r\n%d" % number for number in range(3)) + head + CLOSE + b"3"
    assert await _ask(app, asked + last) == said


async def _ask(app: ASGIApp, request: bytes) -> bytes:
    """All that a server with only this application says before it closes the connection."""
    config = uvicorn.Config(
        app, http=BoundedHttp, lifespan="off", log_config=None, access_log=False, date_header=False, server_header=False
    )
    config.load()
    state = uvicorn.Server(config).server_state
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: BoundedHttp(config, state, {}), "127.0.0.1", 0)
    async with server, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(request)
        said = await reader.read()
        writer.close()
    return said


async def test_an_idle_connection_is_closed_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEEP_ALIVE_SECONDS", SHORT)
    async with standing(tmp_path) as here, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", here.server.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        said = await reader.read()
        assert said.startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_requests_that_come_before_their_turn_are_answered_in_order(shared: Standing) -> None:
    paths = ["/healthz", "/nosuch", "/v1", "/healthz"]
    token = shared.home.token()
    heads = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n" for path in paths]
    heads[-1] += "Connection: close\r\n"
    answer = await stall(shared, "".join(f"{head}\r\n" for head in heads).encode())
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"404", b"200", b"200"]


async def test_a_stream_whose_client_takes_nothing_gives_its_connection_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SEND_SECONDS", 0.2)
    async with standing(tmp_path) as here:
        ident = await here.start()
        for _ in range(80):  # more than the system takes
            await here.server.host.log.append(f"session/{ident}", PartDelta(turn="t", part="p", text="x" * 100_000))
        ours = set(_sockets())
        with socket.socket() as plug:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plug.connect(("127.0.0.1", here.server.port))
            head = f"GET /v1/sessions/{ident}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
            plug.sendall(f"{head}Authorization: Bearer {here.home.token()}\r\n\r\n".encode())
            async with asyncio.timeout(60):
                while not set(_sockets()) - ours - {plug.fileno()}:  # noqa: ASYNC110 - until it is accepted
                    await asyncio.sleep(0.01)
                while set(_sockets()) - ours - {plug.fileno()}:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)


def _sockets() -> Iterator[int]:
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if each.readlink().name.startswith("socket:"):
                yield int(each.name)

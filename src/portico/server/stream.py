"""Server-sent events: frames are sent as they arrive, until the client disconnects. `BoundedHttp` closes a connection
that makes no progress; the client can reconnect with its cursor."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from starlette.types import Receive, Send

from portico import limits
from portico.kernel.errors import PorticoError

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def beat() -> bytes:
    return b": beat\n\n"


async def send_events(
    receive: Receive, send: Send, frames: AsyncGenerator[bytes, None], beat: Callable[[], bytes] = beat
) -> None:
    """Send `frames` (each item contains whole SSE frames) until they end or the client disconnects. An empty item means
    that there was nothing for a while; `beat` is sent instead."""
    task = asyncio.current_task()
    assert task is not None
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    leaving = asyncio.get_running_loop().create_task(_cancel_when_gone(receive, task))
    try:
        await _send_all(send, frames, beat)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except asyncio.CancelledError:
        if not leaving.done():
            raise
        task.uncancel()
    finally:
        leaving.cancel()
        await frames.aclose()


async def _cancel_when_gone(receive: Receive, task: "asyncio.Task[None]") -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()


async def _send_all(send: Send, frames: AsyncIterator[bytes], beat: Callable[[], bytes]) -> None:
    clock = asyncio.get_running_loop().time
    sent = clock()
    await _send(send, b"retry: 1000\n\n")
    try:
        async for frame in frames:
            if not frame and clock() - sent < limits.HEARTBEAT_SECONDS / 2:
                continue
            whole = memoryview(frame or beat())  # no copy of pieces that wait for the reader
            for start in range(0, len(whole), limits.PIECE_BYTES):
                await _send(send, whole[start : start + limits.PIECE_BYTES])
            sent = clock()
    except PorticoError as error:
        await _send(send, b'event: end\ndata: {"code":"%s"}\n\n' % error.code.encode())


def _send(send: Send, body: bytes | memoryview) -> Awaitable[None]:
    return send({"type": "http.response.body", "body": body, "more_body": True})

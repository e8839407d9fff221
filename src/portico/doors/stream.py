"""Long answers: server-sent events, sent as they come, ended when the client is gone or makes no progress."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from starlette.types import Receive, Send

from portico import limits
from portico.errors import PorticoError

T = TypeVar("T")

HEARTBEAT_SECONDS = 15.0
"""Proxies and phones drop silent connections after some 30 to 60 seconds."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def beat() -> bytes:
    return b": beat\n\n"


async def send_events(
    receive: Receive, send: Send, frames: AsyncIterator[bytes], beat: Callable[[], bytes] = beat
) -> None:
    """Sends each of `frames` (whole SSE frames, any number in one piece) until they or the client end. `beat` is what a
    client hears when nothing has come for a while."""
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    sending = asyncio.ensure_future(_pump(send, frames, beat))
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)


async def _pump(send: Send, frames: AsyncIterator[bytes], beat: Callable[[], bytes]) -> None:
    try:
        await _send(send, b"retry: 1000\n\n")
        await _send_all(send, frames, beat)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except TimeoutError:
        return  # the client takes nothing any more: its cursor lets it come back


async def _send_all(send: Send, frames: AsyncIterator[bytes], beat: Callable[[], bytes]) -> None:
    try:
        async for frame in beating(frames, HEARTBEAT_SECONDS, beat):
            whole = memoryview(frame)  # a piece that waits for its reader is no second copy
            for start in range(0, len(frame), limits.PIECE_BYTES):
                await _send(send, whole[start : start + limits.PIECE_BYTES])
    except PorticoError as error:
        await _send(send, b'event: end\ndata: {"code":"%s"}\n\n' % error.code.encode())


async def _send(send: Send, body: bytes | memoryview) -> None:
    async with asyncio.timeout(limits.SEND_SECONDS):
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def beating(items: AsyncIterator[T], seconds: float, beat: Callable[[], T]) -> AsyncIterator[T]:
    """The items, with a `beat` in between whenever nothing has come for that long."""
    following = asyncio.ensure_future(anext(items, None))
    try:
        while True:
            await asyncio.wait({following}, timeout=seconds)
            if not following.done():
                yield beat()
                continue
            item = following.result()
            if item is None:
                return
            yield item
            following = asyncio.ensure_future(anext(items, None))
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError, PorticoError):
            await following
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()

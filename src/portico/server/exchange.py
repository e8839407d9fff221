"""A WebSocket with one sending and one receiving task. The end of either closes it, with a code for the reason.

An unexpected error is a bug. It is logged, and the client gets 1011 (internal error) instead of a connection that
breaks without a close frame.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from portico.kernel.errors import PorticoError, TooSlow
from portico.tasks import end_tasks

CLOSED, INTERNAL, TOO_SLOW = 1000, 1011, 1013
"""TOO_SLOW: the reader fell behind and may reconnect with its cursor."""
GONE = (WebSocketDisconnect, TimeoutError)
"""The client has disconnected or accepts no data: it may reconnect."""


async def exchange(socket: WebSocket, send: Coroutine[Any, Any, None], receive: Coroutine[Any, Any, None]) -> None:
    """Run until `receive` returns because the client has disconnected, or `send` returns because all data is sent."""
    path = socket.url.path
    sending, receiving = (
        asyncio.get_running_loop().create_task(work, name=f"{what} {path}")
        for what, work in (("send", send), ("receive", receive))
    )
    try:
        await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
        if receiving.done():
            await _close(socket, receiving, None)
        if sending.done():
            await _close(socket, sending, CLOSED)
    finally:
        await end_tasks(sending, receiving, expected=GONE)


async def _close(socket: WebSocket, task: "asyncio.Task[None]", code: int | None) -> None:
    """Close the socket after a task. `code` is for a task without an error; None: the client has closed the socket."""
    error = task.exception()
    if isinstance(error, GONE) or (error is None and code is None):
        return
    if error is None:
        close, reason = CLOSED, "closed"
    elif isinstance(error, TooSlow):
        close, reason = TOO_SLOW, error.code
    else:  # logged when the tasks are ended
        close, reason = INTERNAL, error.code if isinstance(error, PorticoError) else "internal error"
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # already closed
        await socket.close(close, reason)

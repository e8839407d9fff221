"""A WebSocket of which one task sends and another receives: the end of either closes it, with a code for the reason.

An error that is not ours is a bug. It is logged, and the client gets 1011 (internal error) instead of a connection that
breaks without a close frame.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from portico.errors import PorticoError, TooSlow
from portico.tasks import end_tasks

CLOSED, INTERNAL, TOO_SLOW = 1000, 1011, 1013
"""TOO_SLOW: the reader fell behind and may reconnect with its cursor."""
GONE = (WebSocketDisconnect, TimeoutError)
"""The client has left, or accepts nothing: it may reconnect."""


async def exchange(socket: WebSocket, send: Coroutine[Any, Any, None], receive: Coroutine[Any, Any, None]) -> None:
    """Until `receive` returns because the client has left, or `send` returns because there is nothing more to send."""
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
    """`code`: for a task that ended well; None: the client has closed it."""
    error = task.exception()
    if isinstance(error, GONE) or (error is None and code is None):
        return
    if error is None:
        close, reason = CLOSED, "closed"
    elif isinstance(error, TooSlow):
        close, reason = TOO_SLOW, error.code
    else:  # logged when the tasks are ended
        close, reason = INTERNAL, error.code if isinstance(error, PorticoError) else "internal error"
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it is closed already
        await socket.close(close, reason)

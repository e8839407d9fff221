"""uvicorn in our own loop, on sockets that are open already."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Generator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from portico import limits
from portico.doors.protocol import BoundedHttp


class SocketServer:
    """Serves from `await started()` until `await close()`, which is due also when the start fails."""

    def __init__(self, app: ASGIApp, sockets: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        config = uvicorn.Config(
            app,
            http=BoundedHttp,
            ws=_websocket,  # type: ignore[arg-type]  # it is only called
            lifespan="off",
            log_config=None,
            log_level="warning",  # below it, uvicorn writes down addresses with the tokens in them
            access_log=False,
            proxy_headers=False,  # or any local program could choose its address in the audit record
            server_header=False,
            ws_max_size=limits.FRAME_BYTES,
            ws_per_message_deflate=False,
            timeout_keep_alive=limits.KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=2,
            backlog=2048,
        )
        config.load()
        config.ssl = tls
        self._server = _Uvicorn(config)
        self._serving = asyncio.get_running_loop().create_task(self._server.serve(sockets), name="serve")

    async def started(self) -> None:
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
            await asyncio.sleep(0.001)

    def refuse(self) -> None:
        """No new connection is taken; `close` waits for the end of the others."""
        self._server.should_exit = True

    async def close(self) -> None:
        self.refuse()
        await self._serving


def _websocket(*args: Any, **kwargs: Any) -> asyncio.Protocol:
    from portico.doors.websocket import WsProtocol  # late: a thirtieth of the start

    return WsProtocol(*args, **kwargs)


class _Uvicorn(uvicorn.Server):
    """Signals are the command line's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

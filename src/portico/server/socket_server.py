"""Runs uvicorn in our event loop, on sockets that are already open."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Generator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from portico import limits
from portico.server.protocol import BoundedHttp


class SocketServer:
    """Serves from `await started()` until `await close()`, which must also be called if the start fails."""

    def __init__(self, app: ASGIApp, sockets: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        config = uvicorn.Config(
            app,
            http=BoundedHttp,
            ws=_websocket,  # type: ignore[arg-type]  # it is only called
            lifespan="off",
            log_config=None,
            log_level="warning",  # at lower levels, uvicorn logs URLs with tokens
            access_log=False,
            proxy_headers=False,  # otherwise any local program could forge its address in the audit record
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
        """Refuse new connections. `close` waits for the end of the existing ones."""
        self._server.should_exit = True

    async def close(self) -> None:
        self.refuse()
        await self._serving


def _websocket(*args: Any, **kwargs: Any) -> asyncio.Protocol:
    from portico.server.websocket import WsProtocol  # late import: it takes a thirtieth of the start

    return WsProtocol(*args, **kwargs)


class _Uvicorn(uvicorn.Server):
    """A uvicorn server without signal handlers: the command line handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

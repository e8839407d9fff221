"""The server of the doors: HTTP and WebSocket with our bounds, on sockets that are already open."""

import asyncio
import socket
import ssl
from typing import Any

from starlette.types import ASGIApp

from portico import limits
from portico.server.embedded import EmbeddedServer
from portico.server.protocol import BoundedHttp


class SocketServer(EmbeddedServer):
    def __init__(self, app: ASGIApp, sockets: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        super().__init__(
            app,
            sockets,
            "serve",
            tls=tls,
            http=BoundedHttp,
            ws=_websocket,
            ws_max_size=limits.FRAME_BYTES,
            ws_per_message_deflate=False,
            timeout_keep_alive=limits.KEEP_ALIVE_SECONDS,
            backlog=2048,
        )


def _websocket(*args: Any, **kwargs: Any) -> asyncio.Protocol:
    from portico.server.websocket import WsProtocol  # late import: it takes a thirtieth of the start

    return WsProtocol(*args, **kwargs)

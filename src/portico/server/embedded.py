"""Runs uvicorn as a task of our event loop, on sockets that are already open: the server of the doors, the tools of
sessions, the link between hosts and the scripted model. Signals, logging and lifespan events belong to the process."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Generator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from portico.tasks import settle

_DEFAULTS: dict[str, Any] = {
    "interface": "asgi3",
    "lifespan": "off",
    "log_config": None,
    "log_level": "warning",  # at lower levels, uvicorn logs URLs with tokens
    "access_log": False,
    "proxy_headers": False,  # otherwise any local program could forge its address in the audit record
    "server_header": False,
    "ws": "none",
    "timeout_graceful_shutdown": 2,
}


class EmbeddedServer:
    """Serves from `await started()` until `await close()`, which must also be called if the start fails. `options` are
    those of `uvicorn.Config`."""

    def __init__(
        self,
        app: ASGIApp,
        sockets: list[socket.socket],
        name: str,
        *,
        tls: ssl.SSLContext | None = None,
        **options: Any,
    ) -> None:
        config = uvicorn.Config(app, **{**_DEFAULTS, **options})
        config.load()
        config.ssl = tls
        self._server = _Server(config)
        self._serving = asyncio.get_running_loop().create_task(self._server.serve(sockets), name=name)

    async def started(self) -> None:
        waiting = asyncio.ensure_future(self._server.listens.wait())
        await asyncio.wait({waiting, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            self._serving.result()

    def refuse(self) -> None:
        """Refuse new connections. `close` waits for the end of the existing ones."""
        self._server.should_exit = True
        self._server.ends.set()

    async def close(self) -> None:
        self.refuse()
        await settle(self._serving)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens, self.ends = asyncio.Event(), asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Install no signal handlers: the command line handles signals."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()

    async def main_loop(self) -> None:
        """Update the Date header once a second. uvicorn would also check ten times a second whether it should end."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self.ends.wait()

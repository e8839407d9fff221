"""A tiny proxy for trying a cluster: each connection goes to the next host that takes it. No TLS, no health checks."""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Sequence

from portico.tasks import settle

_BYTES = 64 * 1024


class RoundRobin:
    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._ports: Sequence[int] = ()
        self._next = itertools.count()
        self._server: asyncio.Server | None = None

    async def start(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._server = await asyncio.start_server(self._serve, sock=self._listening)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await self._connect()
        if there is None:
            writer.close()
            return
        pipes = [asyncio.ensure_future(_pipe(reader, there[1])), asyncio.ensure_future(_pipe(there[0], writer))]
        await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, there[1]):
            end.close()
        await settle(*pipes, expected=(OSError,))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self._ports:
            port = self._ports[next(self._next) % len(self._ports)]
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        return None

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_BYTES):
            writer.write(data)
            await writer.drain()

"""A real receiver of webhooks on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any


class Receiver:
    def __init__(self) -> None:
        self.status = 200
        self.head = ""
        """Further header lines."""
        self.hang = False
        self.got: list[dict[str, Any]] = []
        """What was accepted."""
        self.paths: list[str] = []
        self.requests = 0
        self.url = ""
        self._changed = asyncio.Condition()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            body = await reader.readexactly(int(headers["content-length"]))
            await self._note(lines[0].split()[1], headers, body)
            if self.hang:
                await reader.read()
            writer.write(f"HTTP/1.1 {self.status} X\r\n{self.head}Content-Length: 0\r\n\r\n".encode())
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _note(self, path: str, headers: dict[str, str], body: bytes) -> None:
        async with self._changed:
            self.requests += 1
            self.paths.append(path)
            if self.status == 200 and not self.hang:
                self.got.append({**json.loads(body), "headers": headers, "body": body})
            self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(condition)


@asynccontextmanager
async def receiver(found: Receiver | None = None) -> AsyncIterator[Receiver]:
    found = found or Receiver()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"
    try:
        yield found
    finally:
        server.close()

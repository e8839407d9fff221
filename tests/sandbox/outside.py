"""What a sandbox reaches in tests: servers on loopback, names from a table, and a gate that notes everything."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from portico.addresses import Lookup
from portico.sandbox.egress import Egress
from portico.sandbox.network import Destination, EgressGate, Network, Verdict


class NotingGate:
    """Answers from a table; without an answer a host is denied by `ada`."""

    def __init__(self, answers: dict[str, Verdict] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[str] = []
        self.opens: list[tuple[str, str]] = []
        self.refusals: list[tuple[str, str]] = []
        self.sent = self.received = 0
        self.was_asked = asyncio.Event()
        self.answer = asyncio.Event()
        self.answer.set()

    async def decide(self, target: Destination) -> Verdict:
        self.asked.append(str(target))
        self.was_asked.set()
        await self.answer.wait()
        return self.answers.get(str(target), Verdict(False, "ada", f"ada denied {target}."))

    def opened(self, target: Destination, by: str) -> None:
        self.opens.append((str(target), by))

    def moved(self, target: Destination, sent: int, received: int) -> None:
        self.sent += sent
        self.received += received

    def refused(self, target: Destination, by: str) -> None:
        self.refusals.append((str(target), by))


class Names:
    """A resolver: each lookup of a name takes the next of its lists of addresses; the last one stays."""

    def __init__(self, table: dict[str, list[list[str]]]) -> None:
        self.table = table
        self.looked_up: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.looked_up.append(host)
        if host not in self.table:
            raise OSError("Name or service not known")
        lists = self.table[host]
        return lists.pop(0) if len(lists) > 1 else lists[0]


class Site:
    """A server on loopback that stores what it receives and answers with `reply`, or echoes if that is None."""

    def __init__(self, reply: bytes | None) -> None:
        self.reply = reply
        self.got = b""
        self.port = 0
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while data := await reader.read(65536):
            self.got += data
            if self.reply is None:
                writer.write(data)
            elif b"\r\n\r\n" in self.got:
                writer.write(self.reply)
                self.reply = b""
            await writer.drain()


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    """A server on loopback, and its port. All its connections end with it."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(OSError):
            await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def site(reply: bytes | None = None) -> AsyncIterator[Site]:
    made = Site(reply)
    async with serving(made.serve) as made.port:
        yield made


@asynccontextmanager
async def listener(
    folder: Path, network: Network, gate: EgressGate | None = None, names: Lookup | None = None
) -> AsyncIterator[Egress]:
    egress = Egress(folder / "e.sock", network, gate or NotingGate(), names or Names({}))
    await egress.start()
    try:
        yield egress
    finally:
        await egress.close()


async def speak(folder: Path, *pieces: bytes, end: bool = True) -> bytes:
    """Send pieces to the listener, end, and return everything that it answers."""
    reader, writer = await asyncio.open_unix_connection(str(folder / "e.sock"))
    for piece in pieces:
        writer.write(piece)
        with suppress(OSError):
            await writer.drain()
    if end:
        with suppress(OSError):
            writer.write_eof()
    try:
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()

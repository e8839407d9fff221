"""What do the calls of the Portal door cost, and how late are its streams?

The host is a process of its own with the scripted agent; the client is a plain socket that waits for every answer.
Baseline: a bare asyncio server in a process of its own that answers every request with the same bytes.
"""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvloop

from bench.row import Row, ms, p50, verdict
from portico.doors.portal.live import WINDOW_SECONDS
from portico.features.jobs import entry, task, to_json

QUESTION = "the Portal door: calls, streams and many jobs"

CALLS = 20_000
CONNECTIONS = 8
JOBS = 200
DELTAS = 20_000
_STAMP = re.compile(r"t=(\d+);")
_TICKS = os.sysconf("SC_CLK_TCK")

_BARE = """
import asyncio, uvloop
HEAD = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: 27\\r\\n\\r\\n"
ANSWER = HEAD + b'{"message":"Hello, world!"}'
class Bare(asyncio.Protocol):
    def connection_made(self, transport): self.transport = transport
    def data_received(self, data): self.transport.write(ANSWER)
async def main():
    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", 0)
    print(f"READY:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()
uvloop.run(main())
"""


class Server:
    """A server in a process of its own, and how much CPU it has taken."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


class Caller:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, server: Server) -> "Caller":
        return cls(*await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 26))

    async def __call__(self, path: str, body: str = "") -> Any:
        data = body.encode()
        head = f"POST /api/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n\r\n"
        self._writer.write(head.encode() + data)
        headers = await self._reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", headers, re.IGNORECASE)
        assert found is not None
        return json.loads(await self._reader.readexactly(int(found[1])))

    async def until(self, path: str, last: str) -> list[Any]:
        found: list[Any] = []
        while not any(each.get("callback") == last for each in found):
            found += (await self(path)).get("responses", [])
        return found


def measure() -> list[Row]:
    return uvloop.run(_measure())


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one = task("one", "[[deltas:1]] [[reasoning:0]]", model="driving")
        plan = entry(models={"driving": "gpt-5-mini"}, jobs={"one": one})
        (folder / "entry.json").write_bytes(to_json(plan))
        serve = ["-m", "portico", "serve", "--port", "0", "--print-ready", "--without-token", "--agent", "scripted"]
        serve += ["--entry", str(folder / "entry.json"), "--home", str(folder / "home")]
        async with running(["-c", _BARE]) as bare, running(serve) as host:
            return [
                await _calls(bare, host),
                await _starts(host, folder),
                await _delay(host, folder),
                await _stream(host, folder),
                await _jobs(host, folder),
            ]


@contextlib.asynccontextmanager
async def running(arguments: list[str]) -> AsyncIterator[Server]:
    process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs yet
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield Server(process, int((await asyncio.to_thread(process.stdout.readline)).strip().removeprefix("READY:")))
    finally:
        process.terminate()
        process.wait()


async def _rate(server: Server) -> float:
    """Requests per second of the server's own CPU: what one core of it can do."""

    async def calls() -> None:
        caller = await Caller.to(server)
        for _ in range(CALLS // CONNECTIONS):
            await caller("test")

    await (await Caller.to(server))("test")
    began = server.cpu
    await asyncio.gather(*(calls() for _ in range(CONNECTIONS)))
    return CALLS / (server.cpu - began)


async def _calls(bare: Server, host: Server) -> Row:
    baseline, rate = await _rate(bare), await _rate(host)
    return Row(
        "api/test, requests per second of one core",
        f"{rate:,.0f}/s",
        f"bare asyncio server {baseline:,.0f}/s",
        f"{rate / baseline:.2f}x",
        verdict("5,000/s", rate >= 5_000),
    )


async def _starts(host: Server, folder: Path) -> Row:
    caller = await Caller.to(host)
    times, echoes = [], []
    for _ in range(200):
        began = time.perf_counter()
        await caller("copilot/session/start/gpt-5.2", str(folder))
        middle = time.perf_counter()
        await caller("test")
        times.append(middle - began)
        echoes.append(time.perf_counter() - middle)
    return Row(
        "session start",
        f"p50 {ms(p50(times))}",
        f"api/test {ms(p50(echoes))}",
        f"{p50(times) / p50(echoes):.1f}x",
        verdict("p50 5 ms", p50(times) < 0.005),
    )


async def _delay(host: Server, folder: Path) -> Row:
    """From the moment a delta is made until a client that waits has it; stamps are whole milliseconds."""
    caller = await Caller.to(host)
    session = (await caller("copilot/session/start/gpt-5.2", str(folder)))["sessionId"]
    await caller(f"copilot/session/{session}/query", "[[deltas:400]] [[gap:5]] [[stamp]] [[reasoning:0]]")
    delays: list[float] = []
    while True:
        elements = (await caller(f"copilot/session/{session}/live/k")).get("responses", [])
        now = time.time()
        for element in elements:
            if element.get("callback") == "onMessage":
                delays += [now - int(stamp) / 1000 for stamp in _STAMP.findall(element["delta"])]
        if any(element.get("callback") == "onIdle" for element in elements):
            break
    p95 = sorted(delays)[int(len(delays) * 0.95)]
    return Row(
        "delta to a client that waits",
        f"p50 {ms(p50(delays))}, p95 {ms(p95)}",
        f"the window, {ms(WINDOW_SECONDS)}",
        f"{p95 / WINDOW_SECONDS:.1f}x",
        verdict("p95 25 ms", p95 < 0.025),
    )


async def _stream(host: Server, folder: Path) -> Row:
    caller = await Caller.to(host)
    session = (await caller("copilot/session/start/gpt-5.2", str(folder)))["sessionId"]
    began = host.cpu
    await caller(f"copilot/session/{session}/query", f"[[deltas:{DELTAS}]] [[reasoning:0]]")
    await caller.until(f"copilot/session/{session}/live/k", "onIdle")
    each = (host.cpu - began) / DELTAS
    return Row(
        f"CPU per delta of {DELTAS:,}, agent, log and one reader",
        f"{each * 1e6:.0f} µs",
        "",
        "",
        verdict("50 µs", each <= 50e-6),
    )


async def _jobs(host: Server, folder: Path) -> Row:
    callers = [await Caller.to(host) for _ in range(20)]
    began = time.perf_counter()

    async def some(caller: Caller) -> None:
        idents = [(await caller("copilot/job/start/one", str(folder)))["jobId"] for _ in range(JOBS // len(callers))]
        for ident in idents:
            await caller.until(f"copilot/job/{ident}/live/k", "jobSucceeded")

    await asyncio.gather(*(some(caller) for caller in callers))
    took = time.perf_counter() - began
    return Row(
        f"{JOBS} jobs of one task at once, each watched to its end",
        f"{took:.2f} s",
        "",
        "",
        verdict("1.5 s", took < 1.5),
    )

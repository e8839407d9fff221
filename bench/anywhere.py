"""What does the way from a model to a client of the Anywhere door cost?

The model is the scripted one in a process of its own; the host is in this process, with its log on disk; the clients
are plain sockets. Baseline: a bare HTTP client that reads the same answer of the same model.
"""

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import uvloop

from bench.row import Row, ms, p50, p99, verdict
from portico.agents.agent import AgentContext
from portico.agents.loop import LoopAgent
from portico.kernel.events import Message
from portico.server.home import Home
from portico.server.serve_options import ServeOptions
from portico.server.server import Server

QUESTION = "from a model's delta to the clients of the Anywhere door"

DELTAS = 10_000
CLIENTS = 100
PROMPTS = 50


def measure() -> list[Row]:
    return uvloop.run(_measure())


async def _measure() -> list[Row]:
    async with _a_model() as model, _a_server(model) as (server, project):
        return [
            await _first(server, model),
            await _fast(server, project, model),
            await _many(server),
            await _cancel(server, project),
        ]


@contextlib.asynccontextmanager
async def _a_model() -> AsyncIterator[str]:
    program = str(Path(sys.executable).parent / "portico")
    process = await asyncio.create_subprocess_exec(program, "model-server", "--port", "0", stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def _a_server(model: str) -> AsyncIterator[tuple[Server, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder, "home"), Path(folder, "project")
        os.mkdir(project)
        options = ServeOptions(Home(home), {"server.port": 0, "workspaces": [str(project)]}, agents=("demo",))
        async with Server(options) as server:
            agent = LoopAgent(AgentContext(home, {}), {"OPENAI_BASE_URL": f"{model}/v1"})
            server.host.agents = {"loop": agent}
            yield server, project


class _Client:
    """A socket on `/events` that keeps what it has seen."""

    def __init__(self, server: Server, cursor: str = "") -> None:
        self._server = server
        self.cursor = cursor
        self._buffer = b""

    async def open(self) -> "_Client":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        lines = [
            "GET /events HTTP/1.1",
            f"Host: 127.0.0.1:{self._server.port}",
            f"Authorization: Bearer {self._server.home.token()}",
            *([f"Last-Event-ID: {self.cursor}"] if self.cursor else []),
        ]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await self._reader.readuntil(b"retry: 1000\n\n")
        return self

    def close(self) -> None:
        self._writer.close()
        self._buffer = b""

    async def frames(self) -> list[dict[str, str]]:
        """The whole frames of one read; the chunked encoding's own lines are passed over."""
        data = await self._reader.read(1 << 20)
        if not data:
            raise ConnectionError("the stream ended")
        *frames, self._buffer = (self._buffer + data).split(b"\n\n")
        found = []
        for frame in frames:
            start = frame.find(b"id: ")
            if start >= 0:
                fields = dict(line.split(": ", 1) for line in frame[start:].decode().replace("\r", "").split("\n"))
                self.cursor = fields["id"]
                found.append(fields)
        return found


async def _send(server: Server, text: str) -> None:
    """By a plain socket: making an HTTP client takes 20 ms of this process, which the host would be charged for."""
    body = json.dumps({"text": text}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = [
        "POST /message HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        f"Authorization: Bearer {server.home.token()}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    writer.write(("\r\n".join(head) + "\r\n\r\n").encode() + body)
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 202"), answer
    writer.close()


async def _first(server: Server, model: str) -> Row:
    """Each delta carries the time at which the model wrote it."""
    prompt = json.dumps([{"say": "t={{now}};", "repeat": 5, "gap": 30}])
    bare: list[float] = []
    async with httpx.AsyncClient(trust_env=False) as http:
        for _ in range(PROMPTS):
            bare += await _bare_delays(http, model, prompt)
    delays = []
    client = await _Client(server).open()
    for _ in range(PROMPTS):
        await _send(server, prompt)
        ended = False
        while not ended:
            for frame in await client.frames():
                if frame["event"] == "fragment":
                    stamp = json.loads(frame["data"])["fragment"].split("=")[1].split(";")[0]
                    delays.append(max(0.0, time.time() - int(stamp) / 1000))
                ended = ended or frame["event"] == "done"
    client.close()
    return Row(
        "model's byte to a client's fragment",
        f"p50 {ms(p50(delays))}, p99 {ms(p99(delays))}",
        f"bare HTTP client p50 {ms(p50(bare))}, p99 {ms(p99(bare))}",
        f"{p50(delays) / max(p50(bare), 1e-4):.1f}x",
        verdict("10 ms", p99(delays) <= 0.01),
    )


async def _bare_delays(client: httpx.AsyncClient, model: str, prompt: str) -> list[float]:
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": prompt}]}
    found: list[float] = []
    async with client.stream("POST", f"{model}/v1/chat/completions", json=body) as answer:
        async for data in answer.aiter_bytes():
            for piece in data.split(b"t=")[1:]:
                found.append(max(0.0, time.time() - int(piece.split(b";")[0]) / 1000))
    return found


async def _fast(server: Server, project: Path, model: str) -> Row:
    prompt = json.dumps([{"say": ["word "], "repeat": DELTAS}])
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": prompt}]}
    started, cpu = time.perf_counter(), time.process_time()
    url = f"{model}/v1/chat/completions"
    async with httpx.AsyncClient(trust_env=False) as client, client.stream("POST", url, json=body) as answer:
        async for _ in answer.aiter_bytes():
            pass
    bare, bare_cpu = time.perf_counter() - started, time.process_time() - cpu
    session = await server.host.start(by="bench", agent="loop", cwd=str(project))
    started, cpu = time.perf_counter(), time.process_time()
    turn = await session.wait(await session.send(Message(prompt, meta={"mode": "chat"}), by="bench"))
    seconds, spent = time.perf_counter() - started, time.process_time() - cpu
    assert sum(len(getattr(part, "text", "")) for part in turn.parts) == 5 * DELTAS, turn.error
    return Row(
        f"a turn of {DELTAS:,} model deltas, durable",
        f"{DELTAS / seconds:,.0f} deltas/s, {spent:.2f} s CPU",
        f"bare HTTP client {DELTAS / bare:,.0f}/s, {bare_cpu:.2f} s CPU",
        f"{bare / seconds:.2f}x",
        verdict("20,000/s, 0.6 s CPU", DELTAS / seconds >= 20_000 and spent <= 0.6),
    )


async def _many(server: Server) -> Row:
    """Every client sees everything; each also leaves once, somewhere, and comes back with its cursor."""
    prompt = json.dumps([{"say": [f"{n} " for n in range(10)], "repeat": DELTAS // 10, "gap": 0.1}])
    expected = "".join(f"{n} " for n in range(10)) * (DELTAS // 10)
    clients = [await _Client(server).open() for _ in range(CLIENTS)]
    started, cpu = time.perf_counter(), time.process_time()
    watching = [asyncio.ensure_future(_whole(client)) for client in clients]
    await _send(server, prompt)
    texts = await asyncio.gather(*watching)
    seconds, spent = time.perf_counter() - started, time.process_time() - cpu
    lost = sum(text != expected for text in texts)
    for client in clients:
        client.close()
    return Row(
        f"{DELTAS:,} fragments to {CLIENTS} SSE clients, each dropped once",
        f"{DELTAS * CLIENTS / seconds:,.0f} deliveries/s, {spent:.2f} s CPU, {lost} incomplete",
        "",
        "",
        verdict("nothing lost", lost == 0),
    )


async def _whole(client: _Client) -> str:
    texts: list[str] = []
    leave_at = random.randrange(1, DELTAS * 2)
    size = 0
    while True:
        for frame in await client.frames():
            if frame["event"] == "done":
                return "".join(texts)
            if frame["event"] == "fragment":
                texts.append(json.loads(frame["data"])["fragment"])
                size += len(texts[-1])
        if 0 <= leave_at <= size:
            leave_at = -1
            client.close()
            await client.open()


async def _cancel(server: Server, project: Path) -> Row:
    """A command that forks into a session of its own is gone with everything it started."""
    mark = project / "pid"
    line = f"(setsid sh -c 'echo $$ > {mark}; sleep 60' &); sleep 60"
    action = {"actions": [{"tool": "runCommand", "command": line}], "commentary": "", "done": False}
    (server.home.path / "settings.toml").write_text('[agent]\nrequire_approval = "none"\n')
    session = await server.host.start(by="bench", agent="loop", cwd=str(project))
    script = json.dumps([{"say": [json.dumps(action)]}])
    await session.send(Message(script, meta={"mode": "agent"}), by="bench")
    while not mark.exists() or not mark.read_text().strip():  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.01)
    pid = int(mark.read_text())
    started = time.perf_counter()
    await session.cancel(by="bench")
    while _lives(pid) and time.perf_counter() - started < 5:  # noqa: ASYNC110 - not a child of ours: nothing tells
        await asyncio.sleep(0.005)
    seconds = time.perf_counter() - started
    return Row(
        "a cancelled command's process tree", f"gone after {ms(seconds)}", "", "", verdict("1 s", seconds <= 1.0)
    )


def _lives(pid: int) -> bool:
    """A zombie that nobody has collected yet is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False

"""What does the AHP door cost, beside a bare WebSocket echo on the same server software?

The server runs in this process, with its log on disk. Floods come from a process of their own with a client that costs
next to nothing (`flood.py`), so they measure the server; beside each stands what the server spent of its processor per
message, which says more than the clock on a machine that does other things too. The latencies are those of the
`websockets` library in this process, for us as for the echo.
"""

import asyncio
import contextlib
import json
import os
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import uvicorn
import uvloop
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect

from bench.flood import Flood, frame
from bench.fresh_host import a_host
from bench.row import Row, ms, p50, verdict
from portico.doors.ahp import AhpDoor
from portico.doors.ahp.connection.replay_buffer import ReplayBuffer
from portico.doors.ahp.wire.uri import ROOT, default_chat
from portico.doors.ops import resident
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.runner import Wanted
from portico.kernel.turn import Turn
from portico.server.app import App
from portico.server.gate import Gate
from portico.server.home import Home
from portico.server.identity import Tokens
from portico.server.route import Socket
from portico.server.server import allow_files
from portico.server.settings_load import load
from portico.server.websocket import WsProtocol

QUESTION = "what the AHP door adds to a bare WebSocket"

PINGS = 2_000
PIPELINED = 30_000
ECHOES = 30_000
SESSIONS = 200
DELTAS = 40_000
WATCHERS = 50
MISSED = 800
PRINTED = 20_000_000
IDLE = 5_000


def measure() -> list[Row]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:  # a heap that nobody has used before
        idle = fresh.submit(_measure_idle).result()
    return [*uvloop.run(_measure()), idle]


def _measure_idle() -> Row:
    return uvloop.run(_idle())


async def _idle() -> Row:
    allow_files(IDLE + 1_000)
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        async with a_host() as (host, folder), _a_server(host, folder) as url:
            await loop.run_in_executor(pool, hold, url, "warm", 100)  # what is made once is made
            before = resident()
            await loop.run_in_executor(pool, hold, url, "idle", IDLE)
            await host.log.flush()
            each = (resident() - before) / IDLE
            still = await loop.run_in_executor(pool, count_held)
    measured = f"{each / 1024:.1f} KB, {still:,} held"
    return Row("ahp idle client", measured, "", "", verdict("20 KB, 5,000 held", each <= 20 * 1024 and still >= IDLE))


_held: list[Flood] = []


def hold(url: str, name: str, count: int) -> None:
    allow_files(IDLE + 1_000)
    for index in range(count):
        flood = Flood(url.replace("PLACE", "ahp"))
        flood.hello(f"{name}-{index}", ROOT)
        _held.append(flood)
        if index % 500 == 499:
            for each in _held:
                each.tend()


def count_held() -> int:
    """Those who are still answered."""
    for flood in _held:
        flood.ask("ping")
    return len(_held) - 100


async def _measure() -> list[Row]:
    os.environ |= {"HOME": tempfile.mkdtemp(), "SHELL": "/bin/bash"}  # a shell without anybody's start-up files
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        async with a_host() as (host, folder), _a_server(host, folder) as url:
            flood = partial(_flooded, pool, url)
            bare = await _echo(url)
            rate = await flood(bare_echoes)
            return [
                await _ping(url, bare),
                _rated("ahp pipelined requests", await flood(requests), rate, 10_000),
                _rated("ahp action echoes, durable", await flood(echoes), rate, 15_000),
                await _sessions(url),
                await _streaming(pool, host, url, 1),
                await _streaming(pool, host, url, WATCHERS),
                await _replay(host, url),
                await _replay(host, url, kept=False),
                await _terminal(pool, url),
                await _keys(url, bare),
                await _keys(url, bare, pause=0),
            ]


class Flooded(NamedTuple):
    rate: float
    cpu: float
    """Seconds of the server's processor per message."""


async def _flooded(pool: Executor, url: str, client: Callable[[str], tuple[int, float]]) -> Flooded:
    """`client` runs in the other process and says how many messages came back, and in how many seconds."""
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(pool, time.monotonic)  # it is there
    before = time.process_time()
    count, seconds = await loop.run_in_executor(pool, client, url)
    return Flooded(count / seconds, (time.process_time() - before) / count)


def _rated(what: str, flooded: Flooded, bare: Flooded, bar: int) -> Row:
    measured = f"{flooded.rate:,.0f}/s ({flooded.cpu * 1e6:.0f} us cpu)"
    baseline = f"echo {bare.rate:,.0f}/s ({bare.cpu * 1e6:.0f} us cpu)"
    held = verdict(f"{bar:,}/s", flooded.rate >= bar)
    return Row(what, measured, baseline, f"{flooded.cpu / bare.cpu:.1f}x cpu", held)


def bare_echoes(url: str) -> tuple[int, float]:
    flood = Flood(url.replace("PLACE", "echo"))
    return _timed(flood, [frame('{"jsonrpc":"2.0","method":"dispatchAction","params":{}}' * 4)] * ECHOES)


def requests(url: str) -> tuple[int, float]:
    flood = Flood(url.replace("PLACE", "ahp")).hello("pipeline")
    asked = {"jsonrpc": "2.0", "id": 1, "method": "listSessions", "params": {"channel": ROOT}}
    return _timed(flood, [frame(json.dumps(asked))] * PIPELINED)


def echoes(url: str) -> tuple[int, float]:
    flood = Flood(url.replace("PLACE", "ahp")).hello("echoes")
    flood.ask("createSession", channel="scripted:/echoes")
    chat = default_chat("scripted:/echoes")
    flood.ask("subscribe", channel=chat)
    frames = []
    for index in range(ECHOES):
        action = {"type": "chat/draftChanged", "draft": {"text": f"draft {index}", "origin": {"kind": "user"}}}
        params = {"channel": chat, "clientSeq": index + 1, "action": action}
        frames.append(frame(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})))
    return _timed(flood, frames)


def _timed(flood: Flood, frames: list[bytes]) -> tuple[int, float]:
    start = time.perf_counter()
    sending = flood.send(frames)
    flood.skip(len(frames))
    took = time.perf_counter() - start
    sending.join()
    flood.close()
    return len(frames), took


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def _echoing(socket: WebSocket) -> None:
    await socket.accept()
    with contextlib.suppress(WebSocketDisconnect):
        while True:
            await socket.send_text(await socket.receive_text())


@contextlib.asynccontextmanager
async def _a_server(host: Host, folder: Path) -> AsyncIterator[str]:
    home = Home(folder / "home")
    home.make()
    gate = Gate(Tokens(home), hosts=frozenset({"127.0.0.1"}))
    host.workspaces = [Path(tempfile.gettempdir())]
    app = App(host, home, load(home.settings_path, environ={}), lambda: None)
    gate.add([*AhpDoor(app).routes, Socket("/echo", _echoing, "drive")])
    config = uvicorn.Config(gate, port=0, ws=WsProtocol, lifespan="off", log_config=None, ws_per_message_deflate=False)
    server = _Uvicorn(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  (uvicorn tells nobody)
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"ws://127.0.0.1:{port}/PLACE?tkn={home.token()}"
    finally:
        server.should_exit = True
        gate.close_all()
        await serving


class _Client:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seq = 0

    @classmethod
    async def open(cls, url: str, name: str) -> "_Client":
        made = cls(await connect(url.replace("PLACE", "ahp"), max_size=None, compression=None, ping_interval=None))
        hello = {"channel": ROOT, "protocolVersions": ["0.9.0"], "clientId": name}
        await made.ask("initialize", **hello)
        return made

    async def ask(self, method: str, **params: Any) -> Any:
        self.seq += 1
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "id": self.seq, "method": method, "params": params}))
        while True:
            message = json.loads(await self.socket.recv())
            if message.get("id") == self.seq:
                assert "error" not in message, message
                return message["result"]

    async def close(self) -> None:
        await self.socket.close()


async def _echo(url: str) -> float:
    async with connect(url.replace("PLACE", "echo"), compression=None) as socket:
        times = []
        for _ in range(PINGS):
            start = time.perf_counter()
            await socket.send('{"jsonrpc":"2.0","id":1,"method":"ping"}')
            await socket.recv()
            times.append(time.perf_counter() - start)
    return p50(times)


async def _ping(url: str, bare: float) -> Row:
    client = await _Client.open(url, "ping")
    times = []
    for _ in range(PINGS):
        start = time.perf_counter()
        await client.socket.send('{"jsonrpc":"2.0","id":1,"method":"ping"}')
        await client.socket.recv()
        times.append(time.perf_counter() - start)
    await client.close()
    took = p50(times)
    return Row("ahp ping p50", ms(took), ms(bare), f"{took / bare:.2f}x", verdict("1.5x", took / bare <= 1.5))


async def _sessions(url: str) -> Row:
    client = await _Client.open(url, "sessions")
    times = []
    for index in range(SESSIONS):
        start = time.perf_counter()
        await client.ask("createSession", channel=f"scripted:/made-{index}")
        times.append(time.perf_counter() - start)
    await client.close()
    took = p50(times)
    return Row("ahp createSession p50", ms(took), "", "", verdict("5 ms", took <= 0.005))


async def _streaming(pool: Executor, host: Host, url: str, watchers: int) -> Row:
    """An agent that says one token after the other, as fast as the loop lets it; all must have seen the end."""
    name = f"scripted:/stream-{watchers}"
    client = await _Client.open(url, f"stream-{watchers}")
    await client.ask("createSession", channel=name)
    await client.close()
    session = await host.get(name)

    async def talk(message: Message, turn: Turn) -> None:
        for index in range(DELTAS):
            turn.text("word ")
            if index % 50 == 49:
                await asyncio.sleep(0)

    agent = host.agents["scripted"]
    conversation = await agent.open(_opening(session.id))
    conversation.send = talk  # type: ignore[method-assign]
    session.runner._conversation = conversation
    asks = f"watch-{watchers}-0"
    session.runner._opened_with = Wanted(session.state.agent, session.state.model, session.runner._tools, asks, {})
    start = time.process_time()
    took = await asyncio.get_running_loop().run_in_executor(pool, watch, url, name, watchers)
    cpu, rate = time.process_time() - start, DELTAS / took
    what = f"ahp deltas to {watchers} subscriber{'s' if watchers > 1 else ''}"
    measured = f"{rate:,.0f}/s ({cpu / DELTAS * 1e6:.0f} us cpu)"
    return Row(what, measured, "", "", verdict("20,000/s", rate >= 20_000))


def watch(url: str, name: str, watchers: int) -> float:
    """Seconds from the question until everybody has the last word."""
    chat = default_chat(name)
    floods = [Flood(url.replace("PLACE", "ahp")).hello(f"watch-{watchers}-{index}") for index in range(watchers)]
    for flood in floods:
        flood.ask("subscribe", channel=chat)
    message = {"text": "go", "origin": {"kind": "user"}}
    action = {"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-01-01T00:00:00.000Z", "message": message}
    params = {"channel": chat, "clientSeq": 1, "action": action}
    start = time.perf_counter()
    floods[0].send([frame(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))]).join()
    threads = [threading.Thread(target=flood.until, args=(b'"chat/turnComplete"',)) for flood in floods]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def _opening(session: str) -> Any:
    from portico.kernel.agent import Opening

    return Opening(session=session, cwd="/", model="", config={}, tools=[], known_as=lambda _: None)


async def _replay(host: Host, url: str, kept: bool = True) -> Row:
    """The client is away while the actions happen. Soon afterwards they are still at hand; later the log has them."""
    client = await _Client.open(url, "back")
    name = f"scripted:/replay-{kept}"
    await client.ask("createSession", channel=name)
    chat = default_chat(name)
    snapshot = (await client.ask("subscribe", channel=chat))["snapshot"]
    await client.close()
    session = await host.get(name)
    for index in range(MISSED):
        await session.keep("draft", {"text": str(index), "origin": {"kind": "user"}}, by="bench")
    params = {"clientId": "back", "lastSeenServerSeq": snapshot["fromSeq"], "subscriptions": [chat]}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "reconnect", "params": params})
    times = []
    with contextlib.nullcontext() if kept else mock.patch.object(ReplayBuffer, "reaches", return_value=False):
        for _ in range(20):
            async with connect(url.replace("PLACE", "ahp"), max_size=None, compression=None) as socket:
                start = time.perf_counter()
                await socket.send(asked)
                answer = await socket.recv()
                times.append(time.perf_counter() - start)
            assert len(json.loads(answer)["result"]["actions"]) == MISSED
    took = p50(times)
    what = f"ahp replay of {MISSED} missed actions" + ("" if kept else ", from the log")
    return Row(what, ms(took), "", "", verdict("5 ms", took <= 0.005))


async def _terminal(pool: Executor, url: str) -> Row:
    before = time.process_time()
    size, took = await asyncio.get_running_loop().run_in_executor(pool, print_much, url)
    cpu = (time.process_time() - before) / size
    measured = f"{size / took / 1e6:.1f} MB/s ({cpu * 1e9:.0f} ms cpu per MB)"
    return Row("ahp terminal output", measured, "", "", verdict("5 MB/s", size / took >= 5e6))


def print_much(url: str) -> tuple[int, float]:
    """Characters that a real program printed in a real terminal, and the seconds until they were all here."""
    flood = Flood(url.replace("PLACE", "ahp")).hello("printer")
    name = "bench-terminal:/printer"
    flood.ask("createTerminal", channel=name, claim={"kind": "client", "clientId": "printer"})
    flood.ask("subscribe", channel=name)
    line = f"yes 'a line such as builds print them: 0123456789' | head -c {PRINTED}; echo do''ne\n"
    params = {"channel": name, "clientSeq": 1, "action": {"type": "terminal/input", "data": line}}
    start = time.perf_counter()
    flood.send([frame(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))]).join()
    size, shown = 0, ""
    while "done" not in shown:
        message = flood.take()
        if b'"terminal/data"' in message:
            data = json.loads(message)["params"]["action"]["data"]
            size, shown = size + len(data), shown[-8:] + data
    took = time.perf_counter() - start
    flood.ask("disposeTerminal", channel=name)
    flood.close()
    return size, took


async def _keys(url: str, bare: float, *, pause: float = 0.02) -> Row:
    """A key goes in, the shell shows it, and that comes back from the log. Without a pause, the next key follows the
    echo of the one before."""
    client = await _Client.open(url, "keys")
    name = "bench-terminal:/1"
    claim = {"kind": "client", "clientId": "keys"}
    await client.ask("createTerminal", channel=name, claim=claim)
    await client.ask("subscribe", channel=name)
    await asyncio.sleep(1)
    times = []
    for index in range(100):
        action = {"type": "terminal/input", "data": "a" if index % 20 else "\x15"}
        params = {"channel": name, "clientSeq": index, "action": action}
        with contextlib.suppress(TimeoutError):
            while pause:  # what is still on its way from before
                await asyncio.wait_for(client.socket.recv(), pause)
        start = time.perf_counter()
        await client.socket.send(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))
        while '"terminal/data"' not in str(await client.socket.recv()):
            pass
        times.append(time.perf_counter() - start)
    await client.ask("disposeTerminal", channel=name)
    await client.close()
    took = p50(times)
    name, target = ("ahp key echo p50", 0.003) if pause else ("ahp key echo p50, back to back", 0.0008)
    return Row(name, ms(took), ms(bare), f"{took / bare:.1f}x", verdict(ms(target), took <= target))

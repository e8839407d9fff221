"""What does the AHP door cost, beside a bare WebSocket echo on the same server software?

The server runs in this process, with its log on disk; the clients are the `websockets` library in the same process, so
both sides of every frame are paid for here, for us as for the echo.
"""

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect

from bench.place import a_host
from bench.row import Row, ms, p50, verdict
from portico.doors.ahp.door import ahp
from portico.doors.ahp.uri import ROOT, default_chat
from portico.doors.gate import Gate
from portico.doors.house import House
from portico.doors.identity import Tokens
from portico.doors.route import Socket
from portico.doors.websocket import Line
from portico.events import Message
from portico.home import Home
from portico.host.host import Host
from portico.host.turn import Turn
from portico.settings import load

QUESTION = "what the AHP door adds to a bare WebSocket"

PINGS = 2_000
PIPELINED = 10_000
ECHOES = 10_000
SESSIONS = 200
DELTAS = 40_000
WATCHERS = 50
MISSED = 800


def measure() -> list[Row]:
    return uvloop.run(_measure())


async def _measure() -> list[Row]:
    async with a_host() as (host, folder), _a_server(host, folder) as url:
        bare = await _echo(url)
        return [
            await _ping(url, bare),
            await _pipelined(url),
            await _echoes(url),
            await _sessions(url),
            await _streaming(host, url, 1),
            await _streaming(host, url, WATCHERS),
            await _replay(host, url),
            await _keys(url, bare),
        ]


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
    house = House(host, home, load(home.settings_path, environ={}), lambda: None, [Path(tempfile.gettempdir())])
    gate.add([*ahp(house), Socket("/echo", _echoing, "drive")])
    config = uvicorn.Config(gate, port=0, ws=Line, lifespan="off", log_config=None, ws_per_message_deflate=False)
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


async def _pipelined(url: str) -> Row:
    client = await _Client.open(url, "pipeline")
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "listSessions", "params": {"channel": ROOT}})
    start = time.perf_counter()
    sending = asyncio.create_task(_send(client, [frame] * PIPELINED))
    for _ in range(PIPELINED):
        await client.socket.recv()
    await sending
    rate = PIPELINED / (time.perf_counter() - start)
    await client.close()
    return Row("ahp pipelined requests", f"{rate:,.0f}/s", "", "", verdict("10,000/s", rate >= 10_000))


async def _send(client: _Client, frames: list[str]) -> None:
    for frame in frames:
        await client.socket.send(frame)


async def _echoes(url: str) -> Row:
    client = await _Client.open(url, "echoes")
    await client.ask("createSession", channel="scripted:/echoes")
    chat = default_chat("scripted:/echoes")
    await client.ask("subscribe", channel=chat)
    frames = []
    for index in range(ECHOES):
        action = {"type": "chat/draftChanged", "draft": {"text": f"draft {index}", "origin": {"kind": "user"}}}
        params = {"channel": chat, "clientSeq": index + 1, "action": action}
        frames.append(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))
    start = time.perf_counter()
    sending = asyncio.create_task(_send(client, frames))
    for _ in range(ECHOES):
        await client.socket.recv()
    await sending
    rate = ECHOES / (time.perf_counter() - start)
    await client.close()
    return Row("ahp action echoes, durable", f"{rate:,.0f}/s", "", "", verdict("15,000/s", rate >= 15_000))


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


async def _streaming(host: Host, url: str, watchers: int) -> Row:
    """An agent that says one token after the other, as fast as the loop lets it; all must have seen the end."""
    name = f"scripted:/stream-{watchers}"
    clients = [await _Client.open(url, f"watch-{watchers}-{index}") for index in range(watchers)]
    await clients[0].ask("createSession", channel=name)
    chat = default_chat(name)
    for client in clients:
        await client.ask("subscribe", channel=chat)
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
    session.runner._opened_with = (session.state.agent, session.state.model, session.runner._tools)
    start = time.perf_counter()
    reading = [asyncio.create_task(_until_complete(client)) for client in clients]
    await session.send(Message("go"), by="bench")
    await asyncio.gather(*reading)
    rate = DELTAS / (time.perf_counter() - start)
    for client in clients:
        await client.close()
    what = f"ahp deltas to {watchers} subscriber{'s' if watchers > 1 else ''}"
    return Row(what, f"{rate:,.0f}/s", "", "", verdict("20,000/s", rate >= 20_000))


def _opening(session: str) -> Any:
    from portico.host.agent import Opening

    return Opening(session=session, cwd="/", model="", config={}, tools=[], known_as=lambda _: None)


async def _until_complete(client: _Client) -> None:
    while "chat/turnComplete" not in str(await client.socket.recv()):
        pass


async def _replay(host: Host, url: str) -> Row:
    client = await _Client.open(url, "back")
    name = "scripted:/replay"
    await client.ask("createSession", channel=name)
    chat = default_chat(name)
    snapshot = (await client.ask("subscribe", channel=chat))["snapshot"]
    session = await host.get(name)
    for index in range(MISSED):
        await session.keep("draft", {"text": str(index), "origin": {"kind": "user"}}, by="bench")
    times = []
    for _ in range(20):
        await client.close()
        client = _Client(await connect(url.replace("PLACE", "ahp"), max_size=None, compression=None))
        start = time.perf_counter()
        result = await client.ask(
            "reconnect", clientId="back", lastSeenServerSeq=snapshot["fromSeq"], subscriptions=[chat]
        )
        times.append(time.perf_counter() - start)
        assert len(result["actions"]) == MISSED
    await client.close()
    took = p50(times)
    return Row(f"ahp replay of {MISSED} missed actions", ms(took), "", "", verdict("5 ms", took <= 0.005))


async def _keys(url: str, bare: float) -> Row:
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
            while True:  # what is still on its way from before
                await asyncio.wait_for(client.socket.recv(), 0.02)
        start = time.perf_counter()
        await client.socket.send(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))
        while '"terminal/data"' not in str(await client.socket.recv()):
            pass
        times.append(time.perf_counter() - start)
    await client.ask("disposeTerminal", channel=name)
    await client.close()
    took = p50(times)
    return Row("ahp key echo p50", ms(took), ms(bare), f"{took / bare:.1f}x", verdict("3 ms", took <= 0.003))

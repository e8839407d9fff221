"""What does Portico cost beside the agent's own server, on one long answer?

goose: `goose serve` with a client on its WebSocket, against `portico serve` with goose behind it and a client on its
event stream; and `goose acp`, which is what Portico runs, with a client that only counts. Codex: its ACP adapter with
such a client, against Portico with it. Copilot: the bare SDK that counts its events, against Portico with the SDK. The
same 10,000 deltas of the scripted model server, in turns; processor time is that of everything but the model and the
client. With the real programs only (tests/live/install.sh).
"""

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import uvloop
from tests.live.programs import COPILOT, LIVE, MODEL, copilot_cache
from websockets.asyncio.client import ClientConnection, connect

from bench.fresh_host import serve
from bench.row import Row, verdict
from portico.agents.supervisor import LINE_BYTES
from portico.client import Client
from portico.kernel.events import PartDelta, PartEnded
from portico.server.settings_edit import add_table
from portico.testing.postgres import free_port

QUESTION = "what Portico costs beside the agent's own server (goose), its adapter (Codex) and the bare SDK (Copilot)"

DELTAS = 10_000
SCRIPT = json.dumps([{"say": "word ", "repeat": DELTAS}])
WARM = json.dumps([{"say": "Hello."}])


class Cost(NamedTuple):
    seconds: float
    cpu: float
    host: float = 0.0
    """Of the processor time, what Portico's own process took."""


def measure() -> list[Row]:
    return uvloop.run(_measure()) if COPILOT.exists() else []


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        async with _model(folder) as model, _portico(folder, model) as ours:
            async with _goose(folder, model) as own:
                goose = await _alternate(own, lambda: ours("acp:goose"), 5)
            async with _adapter("goose", folder, model) as adapter:
                goose_acp = await _alternate(adapter, lambda: ours("acp:goose"), 5)
            async with _adapter("codex", folder, model) as adapter:
                codex = await _alternate(adapter, lambda: ours("acp:codex"), 5)
            async with _sdk(folder, model) as bare:
                copilot = await _alternate(bare, lambda: ours("copilot"), 3)
    return [
        _row("goose", "goose serve", goose, 1.4, 0.85),
        _row("goose (ACP)", "goose acp alone", goose_acp, 1.4, 0.85),
        _row("Codex", "its adapter alone", codex, 1.4, 0.85),
        _row("Copilot", "SDK alone", copilot, 1.3, None),
    ]


Play = Callable[[], Awaitable[Cost]]


async def _alternate(own: Play, ours: Play, rounds: int) -> tuple[list[Cost], list[Cost]]:
    pairs = [(await own(), await ours()) for _ in range(rounds)]
    return [each[0] for each in pairs], [each[1] for each in pairs]


def _row(name: str, baseline: str, costs: tuple[list[Cost], list[Cost]], most: float, least: float | None) -> Row:
    own, ours = (Cost(*(statistics.median(column) for column in zip(*each, strict=True))) for each in costs)
    cpu, rate = ours.cpu / own.cpu, own.seconds / ours.seconds
    held = cpu <= most and (least is None or rate >= least)
    bar = f"CPU {most:g}x" + (f", rate {least:g}x" if least is not None else "")
    return Row(
        f"{DELTAS:,} deltas of {name}",
        f"{ours.cpu:.2f} s CPU (host {ours.host:.2f}), {DELTAS / ours.seconds:,.0f}/s",
        f"{baseline}: {own.cpu:.2f} s CPU, {DELTAS / own.seconds:,.0f}/s",
        f"CPU {cpu:.2f}x, rate {rate:.2f}x",
        verdict(bar, held),
    )


# -- processes -------------------------------------------------------------------------------------------------


def cpu_of(leaders: Sequence[int], *, alone: bool = False) -> float:
    """Seconds of these processes, with all that they started (as far as it lives) unless `alone`."""
    ticks, parents = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = int(fields[11]) + int(fields[12])

    def ours(pid: int) -> bool:
        return pid in leaders or (not alone and pid in parents and ours(parents[pid]))

    return sum(spent for pid, spent in ticks.items() if ours(pid)) / os.sysconf("SC_CLK_TCK")


def _spawned(command: list[str], env: dict[str, str], **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}, **more)


@asynccontextmanager
async def _running(command: list[str], **env: str) -> AsyncIterator[subprocess.Popen[str]]:
    """A process that says something when it is ready."""
    with _spawned(command, env, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            said = await asyncio.to_thread(process.stdout.readline)
            assert said, f"{command} has ended"
            yield process
        finally:
            os.killpg(process.pid, signal.SIGTERM)


@asynccontextmanager
async def _model(folder: Path) -> AsyncIterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "portico", "model-server", "--port", str(port)]
    async with _running(command):
        yield f"http://127.0.0.1:{port}"


def _live(name: str, folder: Path, model: str) -> dict[str, Any]:
    return next(each for each in LIVE if each.name == name).table(folder / f"vendor-{name}", model)


# -- ours ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _portico(folder: Path, model: str) -> AsyncIterator[Callable[[str], Awaitable[Cost]]]:
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    vendor = folder / "vendor-sdk"
    copilot = {
        "program": str(COPILOT),
        "home": str(vendor),
        "env": {"HOME": str(vendor), "XDG_CACHE_HOME": str(copilot_cache())},
        "models": [MODEL],
        "provider": {"base_url": f"{model}/v1"},
    }
    for name in ("goose", "codex"):
        add_table(home / "settings.toml", ("agents", "acp", name), _live(name, folder / "ours", model))
    add_table(home / "settings.toml", ("agents", "copilot"), copilot)
    async with _running(serve(str(home))) as process, Client.local(home) as client:
        used = partial(cpu_of, [process.pid])

        async def play(agent: str) -> Cost:
            session = await client.start(agent=agent, cwd=str(work))
            async for _ in session.send(WARM):
                pass
            before, host, began, deltas, text = used(), used(alone=True), time.perf_counter(), 0, ""
            async for record in session.send(SCRIPT):
                if isinstance(record.event, PartDelta):
                    deltas += len(record.event.text)
                elif isinstance(record.event, PartEnded):
                    text = record.event.text or text
            assert max(deltas, len(text)) >= len("word ") * DELTAS - 1, f"{agent} said {deltas} characters"
            return Cost(time.perf_counter() - began, used() - before, used(alone=True) - host)

        yield play


# -- the others ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _goose(folder: Path, model: str) -> AsyncIterator[Play]:
    table, port = _live("goose", folder / "own", model), free_port()
    command = [table["command"][0], "serve", "--dangerously-unauthenticated", "--port", str(port)]
    env = {**table["env"], "GOOSE_MODE": "approve"}
    with _spawned([*command, "--with-builtin", "developer"], env, start_new_session=True) as process:
        try:
            async with connect(await _open_port(port), max_size=None) as socket:
                yield await _client(_socket_wire(socket), process.pid, str(folder / "work"))
        finally:
            os.killpg(process.pid, signal.SIGTERM)


async def _open_port(port: int) -> str:
    """It does not say when it is ready."""
    async with asyncio.timeout(120):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return f"ws://127.0.0.1:{port}/acp"


@asynccontextmanager
async def _adapter(name: str, folder: Path, model: str) -> AsyncIterator[Play]:
    """The program that Portico runs, with nothing but a client on its pipe."""
    table, pipe = _live(name, folder / "own", model), asyncio.subprocess.PIPE
    env = {**os.environ, **table["env"], "GOOSE_MODE": "approve"}
    process = await asyncio.create_subprocess_exec(
        *table["command"], stdin=pipe, stdout=pipe, env=env, limit=LINE_BYTES
    )
    try:
        yield await _client(_pipe_wire(process), process.pid, str(folder / "work"))
    finally:
        process.terminate()
        await process.wait()


class Wire(NamedTuple):
    send: Callable[[str], Awaitable[None]]
    receive: Callable[[], Awaitable[str | bytes]]


def _socket_wire(socket: ClientConnection) -> Wire:
    return Wire(socket.send, socket.recv)


def _pipe_wire(process: asyncio.subprocess.Process) -> Wire:
    assert process.stdin is not None
    assert process.stdout is not None
    lines, answers = process.stdin, process.stdout

    async def send(text: str) -> None:
        lines.write(f"{text}\n".encode())
        await lines.drain()

    return Wire(send, answers.readline)


async def _client(wire: Wire, pid: int, work: str) -> Play:
    numbers = iter(range(1, 1000))

    async def ask(method: str, **params: Any) -> tuple[Any, int]:
        ident, size = next(numbers), 0
        await wire.send(json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}))
        while True:
            message = msgspec.json.decode(await wire.receive())
            if message.get("id") == ident and "method" not in message:
                return message["result"], size
            content = message.get("params", {}).get("update", {}).get("content") or {}
            size += len(content.get("text", "")) if isinstance(content, dict) else 0

    await ask("initialize", protocolVersion=1, clientCapabilities={})

    async def play() -> Cost:
        made, _ = await ask("session/new", cwd=work, mcpServers=[])
        await ask("session/prompt", sessionId=made["sessionId"], prompt=[{"type": "text", "text": WARM}])
        before, began = cpu_of([pid]), time.perf_counter()
        prompt = [{"type": "text", "text": SCRIPT}]
        _, size = await ask("session/prompt", sessionId=made["sessionId"], prompt=prompt)
        assert size >= len("word ") * DELTAS - 1, f"it said {size} characters"
        return Cost(time.perf_counter() - began, cpu_of([pid]) - before)

    return play


@asynccontextmanager
async def _sdk(folder: Path, model: str) -> AsyncIterator[Play]:
    """In a process of its own, which plays a turn for each line that it gets."""
    vendor = folder / "vendor-bare"
    vendor.mkdir()
    env = {"HOME": str(vendor), "XDG_CACHE_HOME": str(copilot_cache())}
    command = [sys.executable, "-m", "bench.bare_sdk", str(COPILOT), str(vendor), str(folder / "work"), model]
    with _spawned(command, env, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines, answers = process.stdin, process.stdout

        def turn(script: str) -> None:
            lines.write(f"{script}\n")
            lines.flush()
            answer = answers.readline()
            assert answer.startswith("done"), answer

        async def play() -> Cost:
            await asyncio.to_thread(turn, WARM)
            before, began = cpu_of([process.pid]), time.perf_counter()
            await asyncio.to_thread(turn, SCRIPT)
            return Cost(time.perf_counter() - began, cpu_of([process.pid]) - before)

        try:
            yield play
        finally:
            lines.close()

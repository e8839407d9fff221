"""How long until a stored session of 10,000 events is live, and until a fresh process answers?"""

import asyncio
import compileall
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import uvloop

import portico
from bench.fresh_host import serve
from bench.row import Row, ms, p50, verdict
from portico.agents import script
from portico.agents.scripted import ScriptedAgent
from portico.kernel.clock import Clock
from portico.kernel.events import Message, PartEnded, PartStarted
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.server.compose import build_host

QUESTION = "opening a session of 10,000 events; start-up"

EVENTS = 10_000
RUNS = 5


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        uvloop.run(_fill(path))
        raw = p50([_raw_read(path) for _ in range(RUNS)])
        opening = p50([uvloop.run(_open(path)) for _ in range(RUNS)])
    # As an installation does it; not every shell lets Python write its bytecode by itself.
    compileall.compile_dir(Path(portico.__file__).parent, quiet=1)
    start = p50([_start_host() for _ in range(RUNS)])
    bare = p50([_start_bare() for _ in range(RUNS)])
    return [
        Row(
            f"opening a session of {EVENTS:,} events to live",
            ms(opening),
            f"raw SQLite read {ms(raw)}",
            f"{opening / raw:.1f}x",
            verdict("100 ms", opening <= 0.1),
        ),
        Row(
            "start to first answered request",
            ms(start),
            f"bare Python asyncio server {ms(bare)}",
            f"{start / bare:.1f}x",
            verdict("250 ms", start <= 0.25),
        ),
    ]


async def _fill(path: Path) -> None:
    """One turn with thousands of parts, no snapshot: the hardest way to get there."""
    log = await SqliteLog.open(path)
    host = await build_host(log, [ScriptedAgent(script.Provider("scripted", "Scripted"))])
    session = await host.start(by="bench", cwd=str(path.parent))
    await session.wait(await session.send(Message("[[say:hi]]"), by="bench"))
    turn = await session.send(Message("[[hang]]"), by="bench")
    for number in range(EVENTS // 2):
        part = f"x{number}"
        log.post(session.channel, PartStarted(turn=turn, part=part, kind="text"))
        log.post(session.channel, PartEnded(turn=turn, part=part, text="some words of an answer " * 4))
    await log.flush()
    await log.close()


async def _open(path: Path) -> float:
    log = await SqliteLog.open(path)
    host = Host(log, [], Clock())
    await host.catalogue.read()
    started = time.perf_counter()
    session = await host.get("session-1")
    follower = log.follow(session.channel, after=session.state.pos)
    waiting = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    seconds = time.perf_counter() - started
    assert session.state.pos > EVENTS
    waiting.cancel()
    await log.close()
    return seconds


def _raw_read(path: Path) -> float:
    started = time.perf_counter()
    db = sqlite3.connect(path)
    rows = db.execute("SELECT seq, pos, time, data FROM events ORDER BY seq").fetchall()
    db.close()
    assert len(rows) > EVENTS
    return time.perf_counter() - started


def _start_host() -> float:
    with tempfile.TemporaryDirectory() as home:
        return _start(serve(home))


def _start_bare() -> float:
    program = (
        "import asyncio\n"
        "async def main():\n"
        "    async def serve(r, w):\n"
        "        await r.readuntil(b'\\r\\n\\r\\n'); w.write(b'HTTP/1.0 200 OK\\r\\n\\r\\n'); w.close()\n"
        "    s = await asyncio.start_server(serve, '127.0.0.1', 0)\n"
        "    print(f'READY:{s.sockets[0].getsockname()[1]}', flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    return _start([sys.executable, "-c", program])


def _start(command: list[str]) -> float:
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip().partition(":")[2]
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).read()
        seconds = time.perf_counter() - started
        process.terminate()
    return seconds

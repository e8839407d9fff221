"""How long does a small request wait while others read half a million events?

Wall time says little on a busy machine. What a request waits for is the work that the event loop does between two looks
at its sockets, so that is measured, in CPU time of the loop's thread: the longest such piece while curl reads.
"""

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path

import uvloop

from bench.row import Row, ms, verdict
from portico.kernel import events as e
from portico.kernel.events import Message
from portico.kernel.log.sqlite import SqliteLog
from portico.server import memory
from portico.server.home import Home
from portico.server.serve_options import ServeOptions
from portico.server.server import Server

QUESTION = "the event loop while others read 500,000 events"

EVENTS = 500_000
TURN = 2_000
READS = {
    "stream of a session": ("/v1/sessions/session-1/events", "text/event-stream"),
    "stream of everything": ("/v1/events", "text/event-stream"),
    "a session's state": ("/v1/sessions/session-1", "application/json"),
    "10,000 events": ("/v1/sessions/session-1/events?limit=10000", "application/json"),
    "export as Markdown": ("/v1/sessions/session-1/export?format=markdown", "text/markdown"),
}


def measure() -> list[Row]:
    return uvloop.run(_measure())


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        await _fill(home)
        async with Server(ServeOptions(home=Home(home), flags={"server.port": 0}, agents=("scripted",))) as server:
            memory.settle()  # as `portico serve` does
            return [await _row(server, what, *READS[what]) for what in READS]


async def _row(server: Server, what: str, path: str, kind: str) -> Row:
    pieces: list[float] = []
    ticking = asyncio.ensure_future(_tick(pieces))
    size, seconds = await _read(server, path, kind)
    ticking.cancel()
    longest = max(pieces)
    return Row(
        f"longest piece of work: {what}",
        ms(longest),
        f"{size / 1e6:.0f} MB in {seconds:.1f} s of CPU",
        "-",
        verdict("100 ms", longest <= 0.1),
    )


async def _tick(pieces: list[float]) -> None:
    while True:
        began = time.thread_time()
        await asyncio.sleep(0)
        pieces.append(time.thread_time() - began)


async def _read(server: Server, path: str, kind: str) -> tuple[int, float]:
    began = time.process_time()
    token = server.home.token()
    command = ["curl", "-sS", "-N", "-m", "120", "-H", f"Accept: {kind}", "-H", f"Authorization: Bearer {token}"]
    curl = await asyncio.create_subprocess_exec(
        *command, f"http://127.0.0.1:{server.port}{path}", stdout=subprocess.PIPE
    )
    assert curl.stdout is not None
    size, end = 0, b""
    while data := await curl.stdout.read(1 << 16):
        size += len(data)
        end = end[-64:] + data
        if kind == "text/event-stream" and f'"pos":{EVENTS}'.encode() in end:
            break
    if curl.returncode is None:
        curl.kill()
    await curl.wait()
    return size, time.process_time() - began


async def _fill(home: Path) -> None:
    os.makedirs(home, exist_ok=True)
    log = await SqliteLog.open(home / "log.db")
    channel, made = "session/session-1", 0

    async def put(*events: e.Event) -> None:
        nonlocal made
        made += len(events)
        await log.append(channel, *events)

    await put(e.SessionStarted(session="session-1", agent="scripted", model="", cwd="/", by="bench", title="long"))
    while made < EVENTS:
        turn, part = f"t{made}", f"p{made}"
        begun = e.TurnStarted(turn=turn, message=Message("go"), by="bench")
        said = [e.PartDelta(turn=turn, part=part, text=f"{number} words of a text, ") for number in range(TURN - 4)]
        ended = e.PartEnded(turn=turn, part=part, text="".join(each.text for each in said))
        over = e.TurnEnded(turn=turn, outcome="completed", by="agent")
        await put(begun, e.PartStarted(turn=turn, part=part, kind="text"), *said, ended, over)
    await log.close()

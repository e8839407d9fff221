"""What does an idle host, session and follower cost?"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import uvloop

from bench.fresh_host import a_host, serve
from bench.row import Row, verdict
from portico.doors.ops import resident
from portico.kernel.events import Message

QUESTION = "memory of an idle host, session and follower"

SESSIONS = 1_000
FOLLOWERS = 2_000


def measure() -> list[Row]:
    bare = _process_memory(
        [sys.executable, "-c", "import asyncio; print('READY', flush=True); asyncio.run(asyncio.sleep(60))"]
    )
    with tempfile.TemporaryDirectory() as home:
        host = _process_memory(serve(home))
    row = Row(
        "idle host, resident",
        f"{host / 1e6:.0f} MB",
        f"bare asyncio process {bare / 1e6:.0f} MB",
        f"{host / bare:.1f}x",
        verdict("60 MB", host <= 60e6),
    )
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:  # a heap that nobody has used before
        return [row, *fresh.submit(_measure_inside).result()]


def _measure_inside() -> list[Row]:
    return uvloop.run(_inside())


def _process_memory(command: list[str]) -> int:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        process.send_signal(signal.SIGTERM)
    return pages * os.sysconf("SC_PAGE_SIZE")


async def _inside() -> list[Row]:
    async with a_host() as (host, folder):
        before = resident()
        for _ in range(SESSIONS):
            session = await host.start(by="bench", cwd=str(folder))
            await session.wait(await session.send(Message("[[say:hello]]"), by="bench"))
        each_session = (resident() - before) / SESSIONS
        before = resident()

        async def follow(number: int) -> None:
            async for _ in host.log.follow(f"session/session-{number % SESSIONS + 1}", after=10**6):
                pass

        tasks = [asyncio.ensure_future(follow(number)) for number in range(FOLLOWERS)]
        await asyncio.sleep(0.1)
        each_follower = (resident() - before) / FOLLOWERS
        for task in tasks:
            task.cancel()
        bare = await _bare_task()
    return [
        Row(
            "idle session with one turn, loaded",
            f"{each_session / 1024:.1f} KB",
            "-",
            "-",
            verdict("50 KB", each_session <= 50 * 1024),
        ),
        Row(
            "idle follower",
            f"{each_follower / 1024:.1f} KB",
            f"bare waiting task {bare / 1024:.1f} KB",
            f"{each_follower / max(bare, 1):.1f}x",
            verdict("20 KB", each_follower <= 20 * 1024),
        ),
    ]


async def _bare_task() -> float:
    before = resident()
    tasks = [asyncio.ensure_future(asyncio.sleep(60)) for _ in range(FOLLOWERS)]
    await asyncio.sleep(0.1)
    cost = (resident() - before) / FOLLOWERS
    for task in tasks:
        task.cancel()
    return cost

"""What does the log in PostgreSQL cost beside SQLite, with one host and with several on one log?

Each host that writes is a process of its own and hears of the others' commits, on the same cores as the server: ratios
hold, absolute figures are of this machine.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import uvloop

from bench.fresh_host import a_log
from bench.row import Row, ms, p50, verdict
from portico.events import QueueHeld
from portico.log.log import Log
from portico.log.postgres.log import PostgresLog
from portico.log.postgres.opening import PostgresOpening
from portico.testing.postgres import PostgresServer

QUESTION = "the log in PostgreSQL beside SQLite: events/s of 1, 3 and 8 hosts, append to visible here and elsewhere"
EVENT = QueueHeld(held=True, by="bench")
EVENTS = 8_000
PRODUCERS = 200
TRIES = 300


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer(Path(folder) / "server").start()
        try:
            return uvloop.run(_measure(server, Path(folder)))
        finally:
            server.stop()


async def _measure(server: PostgresServer, folder: Path) -> list[Row]:
    async with a_log() as (log, _):
        base, single = await _rate(log), p50(await _visible(log, log))
    rows = []
    for count in (1, 3, 8):
        rate = await _rate_of(server, folder, count)
        verdict_ = verdict("20,000 events/s with one host", rate >= 20_000) if count == 1 else ""
        rows.append(_row(f"durable events/s, {count} hosts", f"{rate:,.0f}", f"{base:,.0f}", rate / base, verdict_))
    async with _hosts(server, folder, 2) as (a, b):
        for name, reader, bar in (("the same host", a, 0.005), ("another host", b, 0.015)):
            found = p50(await _visible(a, reader))
            judged = verdict(f"p50 {ms(bar)}", found < bar)
            rows.append(_row(f"append to visible on {name}", f"p50 {ms(found)}", ms(single), found / single, judged))
    return rows


def _row(what: str, found: str, base: str, ratio: float, judged: str) -> Row:
    return Row(what, found, f"SQLite {base}", f"{ratio:.2f}x", judged)


@contextlib.asynccontextmanager
async def _hosts(server: PostgresServer, folder: Path, count: int) -> AsyncIterator[list[PostgresLog]]:
    logs = []
    for index in range(count):
        place = folder / str(index)
        place.mkdir(exist_ok=True)
        logs.append(await PostgresLog.open(PostgresOpening(server.url(), place, host=str(index))))
    yield logs
    for log in logs:
        await log.close()


async def _rate(log: Log, name: str = "", share: int = 1) -> float:
    """Of so many hosts' share of the events."""

    async def produce(channel: str) -> None:
        for _ in range(EVENTS // PRODUCERS):
            await log.append(channel, EVENT)

    started = time.perf_counter()
    await asyncio.gather(*(produce(f"session/{name}-{number}") for number in range(PRODUCERS // share)))
    return EVENTS / share / (time.perf_counter() - started)


async def _rate_of(server: PostgresServer, folder: Path, count: int) -> float:
    """All of them together, from the moment when the last is ready until the last is done."""
    command = [sys.executable, "-m", "bench.cluster", server.url(), str(folder), str(count)]
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    writers = [
        await asyncio.create_subprocess_exec(*command, f"of-{count}-{index}", **pipes)  # type: ignore[arg-type]
        for index in range(count)
    ]
    await asyncio.gather(*(_line(writer) for writer in writers))
    started = time.perf_counter()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
    await asyncio.gather(*(_line(writer) for writer in writers))
    spent = time.perf_counter() - started
    for writer in writers:
        assert await writer.wait() == 0
    return EVENTS // count * count / spent


async def _line(writer: asyncio.subprocess.Process) -> bytes:
    assert writer.stdout is not None
    return await writer.stdout.readline()


async def _write(url: str, folder: str, share: str, name: str) -> None:
    """One host's side: it writes its share when it is told to."""
    place = Path(folder) / name
    place.mkdir()
    log = await PostgresLog.open(PostgresOpening(url, place, host=name))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print(await _rate(log, name, int(share)), flush=True)
    await log.close()


async def _visible(writer: Log, reader: Log) -> list[float]:
    """From just before the append until a follower holds the record."""
    seen: asyncio.Queue[float] = asyncio.Queue()
    channel = f"session/{id(reader)}"

    async def follow() -> None:
        async for records in reader.follow(channel):
            for _ in records:
                seen.put_nowait(time.perf_counter())

    task = asyncio.ensure_future(follow())
    await asyncio.sleep(0.1)
    found = []
    for _ in range(TRIES):
        started = time.perf_counter()
        await writer.append(channel, EVENT)
        found.append(await seen.get() - started)
        await asyncio.sleep(0.001)
    task.cancel()
    return found


if __name__ == "__main__":
    uvloop.run(_write(*sys.argv[1:]))

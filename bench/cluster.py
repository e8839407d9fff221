"""What does the log in PostgreSQL cost compared with SQLite, with one host and with several on one log?

Each host that writes is a separate process and reads the commits of the others, on the same cores as the server: ratios
hold, absolute figures are of this machine. Every host has 200 producers, each of which awaits its append.
"""

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal, NamedTuple

import uvloop

from bench.fresh_host import a_log
from bench.row import Row, ms, p50, verdict
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import PostgresOpening
from portico.kernel.events import Event, PartDelta, QueueHeld
from portico.kernel.log.log import Log
from portico.testing.postgres import PostgresServer

QUESTION = "the log in PostgreSQL: events/s and CPU of 1, 3 and 8 hosts, append to visible on this and another host"
EVENT = QueueHeld(held=True, by="bench")
DELTA = PartDelta(turn="turn1", part="part1", text="Twelve words of an answer, as a model sends them in one piece. ")
EVENTS = 96_000
"""In one measurement, divided among the hosts."""
PRODUCERS = 200
"""On each host."""
TRIES = 300
WHOLE_OF = 20
"""Of a stream, one event in twenty is whole; the others are deltas."""

Mix = Literal["whole", "stream"]
MIXES: tuple[Mix, ...] = ("whole", "stream")
TICK = os.sysconf("SC_CLK_TCK")


class Rate(NamedTuple):
    events: float
    """Per second."""
    cpu: float
    """Seconds per event: all hosts and the server."""


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
        base, single = await _rate(log, "whole", EVENTS), p50(await _visible(log, log))
    rows = [Row("durable events/s, SQLite", f"{base:,.0f}", "", "", "")]
    for mix in MIXES:
        one = Rate(1, 1)
        for count in (1, 3, 8):
            found = await _rate_of(server, folder, count, mix)
            one = found if count == 1 else one
            held = found.events >= one.events and found.cpu <= 1.3 * one.cpu
            rows.append(
                Row(
                    f"durable events/s, {mix}, {count} hosts",
                    f"{found.events:,.0f}, {found.cpu * 1e6:.0f} µs CPU each",
                    f"1 host {one.events:,.0f}, {one.cpu * 1e6:.0f} µs",
                    f"{found.events / one.events:.2f}x, CPU {found.cpu / one.cpu:.2f}x",
                    verdict("as many, 1.3x CPU", held) if count > 1 else verdict("20,000", found.events >= 20_000),
                )
            )
    async with _hosts(server, folder, 2) as (a, b):
        for name, reader, bar in (("the same host", a, 0.005), ("another host", b, 0.015)):
            found_ = p50(await _visible(a, reader))
            judged = verdict(f"p50 {ms(bar)}", found_ < bar)
            what = f"append to visible on {name}"
            rows.append(Row(what, f"p50 {ms(found_)}", f"SQLite {ms(single)}", f"{found_ / single:.2f}x", judged))
    return rows


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


def _events(mix: Mix, count: int) -> list[Event]:
    return [EVENT if mix == "whole" or number % WHOLE_OF == 0 else DELTA for number in range(count)]


async def _rate(log: Log, mix: Mix, events: int, name: str = "") -> float:
    async def produce(channel: str) -> None:
        for event in _events(mix, events // PRODUCERS):
            await log.append(channel, event)

    started = time.perf_counter()
    await asyncio.gather(*(produce(f"session/{name}-{number}") for number in range(PRODUCERS)))
    return events / (time.perf_counter() - started)


async def _rate_of(server: PostgresServer, folder: Path, count: int, mix: Mix) -> Rate:
    """All hosts together, from the moment when the last is ready until the last is done."""
    command = [sys.executable, "-m", "bench.cluster", server.url(), str(folder), mix, str(EVENTS // count)]
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    writers = [
        await asyncio.create_subprocess_exec(*command, f"{mix}-{count}-{index}", **pipes)  # type: ignore[arg-type]
        for index in range(count)
    ]
    await asyncio.gather(*(_line(writer) for writer in writers))
    before, started = _cpu_of(server), time.perf_counter()
    await asyncio.gather(*(_send(writer) for writer in writers))
    cpu = sum(float(each) for each in await asyncio.gather(*(_line(writer) for writer in writers)))
    spent, cpu = time.perf_counter() - started, cpu + _cpu_of(server) - before
    await asyncio.gather(*(_send(writer) for writer in writers))
    for writer in writers:
        assert await writer.wait() == 0
    return Rate(EVENTS / spent, cpu / EVENTS)


def _cpu_of(server: PostgresServer) -> float:
    """CPU seconds of the server and its connections so far."""
    assert server._process is not None
    parent, total = str(server._process.pid), 0.0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            if entry.parent.name == parent:
                total += sum(map(int, fields[11:15])) / TICK  # with those that have ended
            elif fields[1] == parent:
                total += sum(map(int, fields[11:13])) / TICK
    return total


async def _line(writer: asyncio.subprocess.Process) -> bytes:
    assert writer.stdout is not None
    return await writer.stdout.readline()


async def _send(writer: asyncio.subprocess.Process) -> None:
    assert writer.stdin is not None
    writer.stdin.write(b"next\n")


async def _write(url: str, folder: str, mix: Mix, events: str, name: str) -> None:
    """One host: it writes its share when it gets a line, and ends after the next one."""
    place = Path(folder) / name
    place.mkdir()
    log = await PostgresLog.open(PostgresOpening(url, place, host=name))
    log.wanted = lambda: ()  # no client follows a session of another host
    await _rate(log, mix, PRODUCERS, name)  # the channels exist
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    before = time.process_time()
    await _rate(log, mix, int(events), name)
    print(time.process_time() - before, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await log.close()


async def _visible(writer: Log, reader: Log) -> list[float]:
    """From just before the append until a follower has the record."""
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
    uvloop.run(_write(*sys.argv[1:]))  # type: ignore[arg-type]

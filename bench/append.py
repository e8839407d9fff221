"""How long from append to visible, and how many a second?"""

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path

import uvloop

from bench.fresh_host import a_log
from bench.row import Row, ms, p50, p99, verdict
from portico.kernel.events import QueueHeld, encode

QUESTION = "append to visible: latency and throughput"

EVENT = QueueHeld(held=True, by="bench")
EVENTS = 40_000
PRODUCERS = 200


def measure() -> list[Row]:
    batch_rate = _raw_sqlite(100)
    commit = _raw_sqlite_commit()
    return uvloop.run(_measure(batch_rate, commit))


async def _measure(batch_rate: float, commit: float) -> list[Row]:
    echo = await _echo()
    latencies = await _latencies()
    rate, waits = await _throughput()
    return [
        Row(
            "append to visible, one at a time",
            f"p50 {ms(p50(latencies))}, p99 {ms(p99(latencies))}",
            f"echo {ms(echo)}, one SQLite commit {ms(commit)}",
            f"{p50(latencies) / (echo + commit):.1f}x",
            verdict("p50 5 ms, p99 50 ms", p50(latencies) < 0.005 and p99(latencies) < 0.05),
        ),
        Row(
            f"append, {PRODUCERS} producers, every one awaited",
            f"{rate:,.0f} events/s, p50 {ms(p50(waits))}",
            f"raw SQLite, batches of 100: {batch_rate:,.0f}/s",
            f"{rate / batch_rate:.2f}x",
            verdict("20,000 events/s", rate >= 20_000),
        ),
    ]


async def _latencies() -> list[float]:
    """From just before the append until a follower holds the record."""
    async with a_log() as (log, _):
        seen: asyncio.Queue[float] = asyncio.Queue()

        async def follow() -> None:
            async for records in log.follow("session/a"):
                for _ in records:
                    seen.put_nowait(time.perf_counter())

        task = asyncio.ensure_future(follow())
        await asyncio.sleep(0)
        results = []
        for _ in range(2_000):
            started = time.perf_counter()
            await log.append("session/a", EVENT)
            results.append(await seen.get() - started)
        task.cancel()
        return results


async def _throughput() -> tuple[float, list[float]]:
    async with a_log() as (log, _):
        waits: list[float] = []

        async def produce(number: int) -> None:
            for _ in range(EVENTS // PRODUCERS):
                started = time.perf_counter()
                await log.append(f"session/{number}", EVENT)
                waits.append(time.perf_counter() - started)

        started = time.perf_counter()
        await asyncio.gather(*(produce(number) for number in range(PRODUCERS)))
        return EVENTS / (time.perf_counter() - started), waits


async def _echo() -> float:
    """A bare asyncio round trip over loopback."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(64):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    times = []
    for _ in range(2_000):
        started = time.perf_counter()
        writer.write(b"x")
        await reader.read(64)
        times.append(time.perf_counter() - started)
    writer.close()
    server.close()
    return p50(times)


def _raw_sqlite(batch: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        db = _database(Path(folder))
        data = encode(EVENT)
        started = time.perf_counter()
        for start in range(0, EVENTS, batch):
            db.execute("BEGIN")
            db.executemany("INSERT INTO events VALUES (?, ?)", [(start + i, data) for i in range(batch)])
            db.execute("COMMIT")
        rate = EVENTS / (time.perf_counter() - started)
        db.close()
        return rate


def _raw_sqlite_commit() -> float:
    with tempfile.TemporaryDirectory() as folder:
        db = _database(Path(folder))
        times = []
        for number in range(1_000):
            started = time.perf_counter()
            db.execute("INSERT INTO events VALUES (?, ?)", (number, b"x" * 80))
            times.append(time.perf_counter() - started)
        db.close()
        return p50(times)


def _database(folder: Path) -> sqlite3.Connection:
    db = sqlite3.connect(folder / "raw.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, data BLOB)")
    return db

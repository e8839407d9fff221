"""How long does a search take in a log of many sessions, with the index and by reading the log?"""

import asyncio
import tempfile
import time
from pathlib import Path

import uvloop

from bench.row import Row, ms, p50, verdict
from portico.agents import script
from portico.agents.scripted import ScriptedAgent
from portico.features.search.search import Search
from portico.kernel.events import Message as Sent
from portico.kernel.events import PartEnded, SessionStarted, TurnEnded, TurnStarted
from portico.kernel.log.sqlite import SqliteLog
from portico.server.compose import build_host
from portico.server.home import Home

QUESTION = "search in 200 sessions of 100 turns"

SESSIONS = 200
TURNS = 100
RUNS = 5
TEXT = "the host appends an event to the numbered log and a door translates it for everybody who reads "


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return uvloop.run(_measure(Path(folder)))


async def _measure(folder: Path) -> list[Row]:
    log = await SqliteLog.open(folder / "log.db")
    await _fill(log, str(folder))
    host = await build_host(log, [ScriptedAgent(script.Provider("scripted", "Scripted"))])
    indexed, reading = Search(host, Home(folder)), Search(host)
    started = time.process_time()
    await indexed.catch_up()
    building = time.process_time() - started
    wanted = f"N{SESSIONS // 3}x{TURNS // 2}x"  # once, somewhere in the middle
    found, scanned = await _time(indexed, wanted), await _time(reading, wanted)
    await indexed.close()
    await host.close()
    await log.close()
    return [
        Row(
            f"search in {SESSIONS * TURNS:,} turns",
            ms(found),
            f"reading the log {ms(scanned)}",
            f"{found / scanned:.2f}x",
            verdict("20 ms", found <= 0.02),
        ),
        Row(
            "building the index, CPU per text",
            f"{building / SESSIONS / TURNS / 2 * 1e6:.0f} µs",
            "none: without it nothing is written",
            "",
            verdict("200 µs", building / SESSIONS / TURNS / 2 <= 200e-6),
        ),
    ]


async def _fill(log: SqliteLog, folder: str) -> None:
    """Before there is a host: it would begin each of the turns."""
    for number in range(SESSIONS):
        ident = f"session-{number}"
        started = SessionStarted(session=ident, agent="scripted", model="m", cwd=folder, by="bench", title="bench")
        log.post(f"session/{ident}", started)
        for turn in range(TURNS):
            text = f"{(TEXT * 4)[number % 90 :]} n{number}x{turn}x"
            log.post(f"session/{ident}", TurnStarted(turn=f"x{turn}", message=Sent(text[:100]), by="bench"))
            log.post(f"session/{ident}", PartEnded(turn=f"x{turn}", part="p", text=text))
            log.post(f"session/{ident}", TurnEnded(turn=f"x{turn}", outcome="completed"))
        await log.flush()


async def _time(search: Search, wanted: str) -> float:
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        hits, complete = await search.find(wanted, 50, seconds=60)
        times.append(time.perf_counter() - started)
        assert (len(hits), complete) == (1, True)
        await asyncio.sleep(0)
    return p50(times)

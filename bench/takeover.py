"""How long does a takeover take, and a command at another host?

A thousand sessions of a host whose lease has ended, and commands about a session of another host, all in one process.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import uvloop
from tests.features import feature

from bench.row import Row, ms, p50, verdict
from portico.agents import script
from portico.agents.scripted import ScriptedAgent
from portico.cluster.cluster import Cluster
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import OWNED, PostgresOpening
from portico.kernel import commands as c
from portico.kernel.host import Host
from portico.server.compose import build_host
from portico.server.settings import ClusterSettings
from portico.testing.postgres import PostgresServer

QUESTION = "several hosts: a command at another host, and the takeover of 1,000 sessions"
SESSIONS = 1_000
TRIES = 200
ADA = c.Caller("", "bench", frozenset(c.SCOPES), label="bench")


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer(Path(folder) / "server").start()
        try:
            return uvloop.run(_measure(server, Path(folder)))
        finally:
            server.stop()


@contextlib.asynccontextmanager
async def _host(server: PostgresServer, folder: Path, name: str) -> AsyncIterator[Host]:
    place = folder / name
    place.mkdir()
    log = await PostgresLog.open(PostgresOpening(server.url(), place, name, "bench", 60.0, owned=OWNED))
    agents = [ScriptedAgent(script.Provider("scripted", "Scripted"))]
    host = await build_host(log, agents, before=[Cluster.room(log, ClusterSettings(host=name, place="bench"))])
    host.workspaces = [folder]
    yield host
    await host.close()
    await log.close()


async def _measure(server: PostgresServer, folder: Path) -> list[Row]:
    async with _host(server, folder, "a") as a, _host(server, folder, "b") as b:
        made = await asyncio.gather(*(a.start(by="bench", agent="scripted") for _ in range(SESSIONS)))
        while len(b.catalogue) < SESSIONS:  # noqa: ASYNC110 - a benchmark
            await asyncio.sleep(0.05)
        home, away = [p50(await _renames(host, made[0].id)) for host in (a, b)]
        spent = await _takeover(a, b)
    return [
        Row(
            "a command about a session of another host",
            f"p50 {ms(away)}",
            f"at home {ms(home)}",
            f"{away / home:.1f}x",
            verdict("p50 10 ms more", away - home < 0.010),
        ),
        Row(
            f"takeover of {SESSIONS:,} sessions after the lease's end",
            f"{spent:.2f} s",
            "",
            "",
            verdict("3 s", spent < 3),
        ),
    ]


async def _renames(host: Host, session: str) -> list[float]:
    found = []
    for number in range(TRIES):
        started = time.perf_counter()
        await host.do(c.RenameSession(session=session, title=str(number)), ADA)
        found.append(time.perf_counter() - started)
    return found


async def _takeover(a: Host, b: Host) -> float:
    """From the end of the lease to the last session's owner: `a` is as good as dead."""
    one, other = feature(a, Cluster), feature(b, Cluster)
    for task in one.log._tasks:
        task.cancel()
    await one.log.run(lambda db: db.execute("UPDATE hosts SET expires = clock_timestamp() WHERE name = 'a'"))
    started = time.perf_counter()
    while sum(other.owns(f"session/{each.id}") for each in b.summaries()) < SESSIONS:
        await other.look()
    return time.perf_counter() - started

"""What does a work of a job cost on each engine, and how fast does it restart, stop and wait?

Hosts are separate processes (`portico serve`). CPU is that of the hosts and of all servers. The queue in PostgreSQL is
only the dispatch (claim with `FOR UPDATE SKIP LOCKED`, finish) without a work, to compare what dispatch costs.
"""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import httpx
import uvloop

from bench.fresh_host import serve
from bench.row import Row, verdict
from portico.testing.postgres import PostgresServer
from portico.testing.temporal import TemporalServer

QUESTION = "works of jobs: CPU of a work on each engine, restart after a kill, cancel, and 40 questions that wait"
JOBS, WORKS, QUESTIONS, QUEUED = 20, 10, 40, 2_000
WATCHED = 10.0
"""Seconds during which the questions wait."""
TICK = os.sysconf("SC_CLK_TCK")
FINISHED = ("succeeded", "failed", "canceled")


class Client(NamedTuple):
    http: httpx.AsyncClient
    process: asyncio.subprocess.Process


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        server = PostgresServer(folder / "server").start()
        stack.callback(server.stop)
        temporal = TemporalServer(folder / "temporal").start()
        stack.callback(temporal.stop)
        engine = {"PORTICO_JOBS_ENGINE": "temporal", "PORTICO_JOBS_ADDRESS": temporal.address}
        shared = {"PORTICO_LOG_URL": server.url(), **engine}
        return uvloop.run(_measure(folder, server, shared))


async def _measure(folder: Path, server: PostgresServer, shared: dict[str, str]) -> list[Row]:
    async with _hosts(folder / "alone", 1, {}) as clients:
        local = await _cpu_of_works(clients, folder)
    async with _hosts(folder / "several", 3, shared) as clients:
        spread = await _cpu_of_works(clients, folder)
        waiting = await _waiting(clients, folder)
        canceled = await _canceled(clients, folder)
        restarted = await _restarted(clients, folder, server)
    queue = await _queue(server)
    ratio = spread / local
    alone = f"local engine {local * 1000:.1f} ms"
    return [
        Row(
            "CPU of a work, 3 hosts on Temporal",
            f"{spread * 1000:.1f} ms",
            alone,
            f"{ratio:.1f}x",
            verdict("3x", ratio <= 3),
        ),
        Row("CPU of dispatch in a queue in PostgreSQL", f"{queue * 1000:.2f} ms", alone, f"+{queue / local:.2f}x", ""),
        Row("a work restarts after kill -9 of its host", f"{restarted:.1f} s", "", "", verdict("5 s", restarted <= 5)),
        Row("a stop ends a running work", f"{canceled:.2f} s", "", "", verdict("2 s", canceled <= 2)),
        Row(f"{QUESTIONS} questions wait", f"{waiting:.1%} of a core", "", "", verdict("5 %", waiting <= 0.05)),
    ]


@contextlib.asynccontextmanager
async def _hosts(folder: Path, count: int, environ: dict[str, str]) -> AsyncIterator[list[Client]]:
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for number in range(count):
            home = folder / f"host-{number}"
            home.mkdir(mode=0o700, parents=True)
            process = await asyncio.create_subprocess_exec(
                *(*serve(str(home)), "--agent", "scripted", "--workspace", str(folder)),
                env={**os.environ, **environ, "PORTICO_CLUSTER_HOST": home.name, "PORTICO_CLUSTER_PLACE": "bench"},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            stack.push_async_callback(_end, process)
            assert process.stdout is not None
            port = (await process.stdout.readline()).decode().removeprefix("READY:").strip()
            headers = {"Authorization": f"Bearer {(home / 'token').read_text('ascii').strip()}"}
            url = f"http://127.0.0.1:{port}"
            http = httpx.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False)
            clients.append(Client(await stack.enter_async_context(http), process))
        yield clients


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    await process.wait()


def _cpu() -> float:
    """CPU seconds of this process's descendants so far, with those that have ended."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            pid = int(entry.parent.name)
            parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15])) / TICK
    mine, total = {os.getpid()}, 0.0
    for pid in sorted(parents):  # a child is younger than its parent
        if parents[pid] in mine:
            mine.add(pid)
            total += used[pid]
    return total


def _entry(work: dict[str, Any], prompt: str) -> dict[str, Any]:
    task = {"model": {"category": "coding"}, "requireUserInput": False, "prompt": [prompt]}
    return {
        "models": {"driving": "gpt-5-mini", "coding": "gpt-5.2"},
        "drivingSessionRetries": [{"modelId": "gpt-5-mini", "retries": 2}],
        "promptVariables": {},
        "grid": [],
        "tasks": {"step": task},
        "jobs": {"main": {"work": work}},
    }


REF = {"kind": "Ref", "taskId": "step"}


async def _start(client: Client, folder: Path, work: dict[str, Any], prompt: str = "[[say:done]]") -> str:
    body = {"job": "main", "cwd": str(folder), "entry": _entry(work, prompt)}
    while (answer := await client.http.post("/v1/jobs", json=body)).status_code == 429:  # noqa: ASYNC110
        await asyncio.sleep(float(answer.headers["Retry-After"]))
    assert answer.status_code < 400, answer.text
    return str(answer.json()["job"])


async def _until(client: Client, job: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    async with asyncio.timeout(120):
        while True:
            answer = await client.http.get(f"/v1/jobs/{job}")
            if answer.status_code == 200 and holds(answer.json()):
                found: dict[str, Any] = answer.json()
                return found
            await asyncio.sleep(0.05)


def _is_done(job: dict[str, Any]) -> bool:
    return job["status"] in FINISHED


async def _cpu_of_works(clients: list[Client], folder: Path) -> float:
    work = {"kind": "Seq", "works": [REF] * WORKS}
    await _until(clients[0], await _start(clients[0], folder, work), _is_done)  # imports, caches
    before = _cpu()
    jobs = [await _start(clients[number % len(clients)], folder, work) for number in range(JOBS)]
    for job in jobs:
        await _until(clients[0], job, _is_done)
    return (_cpu() - before) / (JOBS * WORKS)


async def _waiting(clients: list[Client], folder: Path) -> float:
    work = {"kind": "Par", "works": [{"kind": "Ask", "question": ["Continue?"]}] * QUESTIONS}
    idle = await _share()
    job = await _start(clients[0], folder, work)
    await _until(clients[0], job, lambda found: _started(found) >= QUESTIONS)
    await asyncio.sleep(2)
    busy = await _share()
    await clients[0].http.post(f"/v1/jobs/{job}/stop")
    await _until(clients[0], job, _is_done)
    return busy - idle


async def _share() -> float:
    before = _cpu()
    await asyncio.sleep(WATCHED)
    return (_cpu() - before) / WATCHED


def _started(job: dict[str, Any]) -> int:
    return sum("ended" not in each for each in job.get("works", ()))


async def _canceled(clients: list[Client], folder: Path) -> float:
    job = await _start(clients[0], folder, REF, "[[delay:60000]]")
    await _until(clients[1], job, lambda found: _started(found) == 1)
    began = time.perf_counter()
    await clients[1].http.post(f"/v1/jobs/{job}/stop")
    await _until(clients[1], job, _is_done)
    return time.perf_counter() - began


async def _restarted(clients: list[Client], folder: Path, server: PostgresServer) -> float:
    """Until another host has started a second attempt."""
    job = await _start(clients[0], folder, REF, "[[delay:60000]]")
    found = await _until(clients[0], job, lambda found: _started(found) == 1)
    task = found["works"][0]["task"]
    database = await asyncpg.connect(server.url())
    sql = "SELECT h.name FROM portico.owners o JOIN portico.hosts h ON h.id = o.host WHERE o.channel = $1"
    victim = int((await database.fetchval(sql, f"task/{task}")).rpartition("-")[2])
    await database.close()
    clients[victim].process.kill()
    began = time.perf_counter()
    watcher = clients[(victim + 1) % len(clients)]
    await _until(watcher, job, lambda found: _started(found) == 1 and found["works"][-1]["task"] != task)
    return time.perf_counter() - began


async def _queue(server: PostgresServer) -> float:
    """CPU of one claim and one finish, with three workers."""
    first = await asyncpg.connect(server.url())
    await first.execute("CREATE TABLE queue (id int PRIMARY KEY, host int, beat timestamptz, outcome text)")
    await first.execute(f"INSERT INTO queue SELECT n FROM generate_series(1, {QUEUED}) n")
    await first.execute("CREATE INDEX ON queue (id) WHERE host IS NULL")
    claim = "UPDATE queue SET host = $1, beat = now() WHERE id = (SELECT id FROM queue WHERE host IS NULL ORDER BY id"
    claim += " LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"

    async def serve_queue(number: int) -> None:
        worker = await asyncpg.connect(server.url())
        while (ident := await worker.fetchval(claim, number)) is not None:
            await worker.execute("UPDATE queue SET outcome = 'succeeded' WHERE id = $1 AND host = $2", ident, number)
        await worker.close()

    before = _cpu() + time.process_time()
    await asyncio.gather(*(serve_queue(number) for number in range(3)))
    spent = _cpu() + time.process_time() - before
    await first.close()
    return spent / QUEUED

"""What do several whole hosts carry, beside one host alone?

Every host is a process of its own (`portico serve`), and so is every client's side here. 10,000 stored sessions are
listed, 1,000 sessions stream at once, 200 jobs of 10 works run: on one host with a file, and on three with a database
and Temporal, on the same cores.
"""

import asyncio
import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import uvloop

from bench.fresh_host import serve
from bench.row import Row, ms, p50
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import PostgresOpening
from portico.kernel.events import SessionStarted
from portico.kernel.log.log import Log
from portico.kernel.log.sqlite import SqliteLog
from portico.testing.postgres import PostgresServer
from portico.testing.temporal import TemporalServer

QUESTION = "whole hosts: 10,000 sessions listed, 1,000 streaming at once, 200 jobs of 10 works on Temporal"
COUNT = 3
STORED, STREAMING, JOBS, WORKS = 10_000, 1_000, 200, 10
TEXT = "[[reasoning:0]] [[deltas:20]] [[gap:50]] [[say:x]]"
AT_ONCE = 50
"""Requests on their way, in all."""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        place = Path(folder)
        place.chmod(0o755)
        server = PostgresServer(place / "server").start()
        stack.callback(server.stop)
        temporal = TemporalServer(place / "temporal").start()
        stack.callback(temporal.stop)
        alone = uvloop.run(_measure(place / "alone", 1, {}))
        engine = {"PORTICO_JOBS_ENGINE": "temporal", "PORTICO_JOBS_ADDRESS": temporal.address}
        several = uvloop.run(_measure(place / "several", COUNT, {"PORTICO_LOG_URL": server.url(), **engine}))
    words = (
        f"{STORED:,} sessions listed, the first 100",
        f"{STREAMING:,} sessions stream 20 deltas each, all at once, to the end",
        "a request meanwhile",
        f"{JOBS} jobs of {WORKS} works",
    )
    return [
        Row(what, f"{COUNT} hosts: {_shown(there)}", f"one host: {_shown(here)}", f"{there / here:.2f}x", "")
        for what, there, here in zip(words, several, alone, strict=True)
    ]


def _shown(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"p50 {ms(seconds)}"


async def _measure(folder: Path, count: int, environ: dict[str, str]) -> tuple[float, float, float, float]:
    await _fill(folder, environ.get("PORTICO_LOG_URL", ""))
    async with _hosts(folder, count, environ) as clients:
        listed = [await _timed(_get(http, "/v1/sessions?limit=100")) for http in clients * 20]
        streamed, meanwhile = await _stream(clients)
        jobs = await _run_jobs(clients, folder)
    return p50(listed), streamed, p50(meanwhile), jobs


async def _fill(folder: Path, url: str) -> None:
    home = folder / "host-0"
    home.mkdir(mode=0o700, parents=True)
    log: Log = await (
        PostgresLog.open(PostgresOpening(url, home, "host-0")) if url else SqliteLog.open(home / "log.db")
    )
    for first in range(1, STORED + 1, 500):
        await log.append_all(*map(_started, range(first, first + 500), itertools.repeat(str(folder))))
    await log.close()


def _started(number: int, cwd: str) -> tuple[str, SessionStarted]:
    ident = f"session-{number}"
    return f"session/{ident}", SessionStarted(session=ident, agent="scripted", model="gpt-5-mini", cwd=cwd, by="bench")


@contextlib.asynccontextmanager
async def _hosts(folder: Path, count: int, environ: dict[str, str]) -> AsyncIterator[list[httpx.AsyncClient]]:
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for number in range(count):
            home = folder / f"host-{number}"
            process = await asyncio.create_subprocess_exec(
                *serve(str(home)),
                *("--agent", "scripted", "--workspace", str(folder)),
                env={**os.environ, **environ, "PORTICO_CLUSTER_HOST": home.name, "PORTICO_CLUSTER_PLACE": "bench"},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            stack.push_async_callback(_end, process)
            assert process.stdout is not None
            port = (await process.stdout.readline()).decode().removeprefix("READY:").strip()
            token = (home / "token").read_text("ascii").strip()
            http = httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}",
                headers={"Authorization": f"Bearer {token}"},
                timeout=120,
                trust_env=False,
            )
            clients.append(await stack.enter_async_context(http))
        yield clients


async def _end(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    await process.wait()


async def _stream(clients: list[httpx.AsyncClient]) -> tuple[float, list[float]]:
    """All of them begin and stream; how long until the last has ended, and how long requests took meanwhile."""
    hosts = itertools.cycle(clients)
    made = await _each(STREAMING, lambda _: _post(next(hosts), "/v1/sessions", {"agent": "scripted"}))
    began = time.perf_counter()
    sending = asyncio.ensure_future(
        _each(STREAMING, lambda n: _post(next(hosts), f"/v1/sessions/{made[n]['id']}/messages", {"text": TEXT}))
    )
    meanwhile = []
    while not sending.done() or (await _get(clients[0], "/v1"))["running"]:
        meanwhile.append(await _timed(_get(next(hosts), f"/v1/sessions/{made[0]['id']}")))
        await asyncio.sleep(0.05)
    return time.perf_counter() - began, meanwhile


async def _run_jobs(clients: list[httpx.AsyncClient], folder: Path) -> float:
    hosts = itertools.cycle(clients)
    task = {"model": {"category": "coding"}, "requireUserInput": False, "prompt": ["[[say:done]]"]}
    work = {"kind": "Seq", "works": [{"kind": "Ref", "taskId": "step"}] * WORKS}
    entry = {
        "models": {"driving": "gpt-5-mini", "coding": "gpt-5.2"},
        "drivingSessionRetries": [{"modelId": "gpt-5-mini", "retries": 2}],
        "promptVariables": {},
        "grid": [],
        "tasks": {"step": task},
        "jobs": {"main": {"work": work}},
    }
    body = {"job": "main", "cwd": str(folder), "entry": entry}
    began = time.perf_counter()
    await _each(JOBS, lambda _: _post(next(hosts), "/v1/jobs", body))
    while any(each["status"] == "running" for each in (await _get(clients[0], "/v1/jobs"))["jobs"]):  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    ended = [each["status"] for each in (await _get(clients[0], "/v1/jobs"))["jobs"]]
    assert ended == ["succeeded"] * JOBS, ended[:5]
    return time.perf_counter() - began


# -- requests --------------------------------------------------------------------------------------------------


async def _each(count: int, ask: Callable[[int], Awaitable[Any]]) -> list[Any]:
    free = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> Any:
        async with free:
            return await ask(number)

    return await asyncio.gather(*map(one, range(count)))


async def _post(http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> Any:
    while True:
        answer = await http.post(path, json=body)
        if answer.status_code != 429:
            assert answer.status_code < 400, answer.text
            return answer.json()
        await asyncio.sleep(float(answer.headers["Retry-After"]))


async def _get(http: httpx.AsyncClient, path: str) -> Any:
    answer = await http.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _timed(asking: Awaitable[Any]) -> float:
    began = time.perf_counter()
    await asking
    return time.perf_counter() - began

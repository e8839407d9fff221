"""What would works of jobs cost in a queue in PostgreSQL (`FOR UPDATE SKIP LOCKED`), in each row that matters?

A prototype of the dispatch, not an engine: every worker is a process with the real log, claims works, commits the start
and the end of a work and of its task to the log, and does nothing in between. The walk of a job is here: it inserts the
next work when the previous one ends. A worker without a connection is dead, and its works are free again. Works that
wait for a person are rows that no worker claims. `bench works` has the same rows of the engines.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from bench.row import Row, ms, p50, verdict
from bench.works import JOBS, QUESTIONS, WATCHED, WORKS, _cpu
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import PostgresOpening
from portico.kernel.events import QueueHeld
from portico.testing.postgres import PostgresServer

QUESTION = "a prototype of a queue for works in PostgreSQL, with 3, 8 and 20 workers: all rows of `works`"
COUNTS = (3, 8, 20)
EVENT = QueueHeld(held=True, by="bench")
LOOK_SECONDS = 1.0
"""Between two looks of a worker for works of dead workers, and for works whose notification was lost."""
AT_ONCE = 10
"""Works that one worker claims in one statement."""

TABLE = """
CREATE TABLE works (id bigserial PRIMARY KEY, job int NOT NULL, seconds float8 NOT NULL, worker text,
  attempt int NOT NULL DEFAULT 0, outcome text, waits bool NOT NULL DEFAULT false);
CREATE INDEX open_works ON works (id) WHERE worker IS NULL AND outcome IS NULL AND NOT waits;
CREATE INDEX claimed_works ON works (worker) WHERE outcome IS NULL AND worker IS NOT NULL;
"""
CLAIM = f"""
UPDATE works SET worker = $1, attempt = attempt + 1 WHERE id IN (SELECT id FROM works WHERE worker IS NULL
  AND outcome IS NULL AND NOT waits ORDER BY id LIMIT {AT_ONCE} FOR UPDATE SKIP LOCKED)
  RETURNING id, job, seconds, attempt
"""
DEAD = """
UPDATE works SET worker = NULL WHERE worker IS NOT NULL AND outcome IS NULL
  AND NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = worker) RETURNING id
"""
END = "UPDATE works SET outcome = $4 WHERE id = $1 AND worker = $2 AND attempt = $3 AND outcome IS NULL RETURNING id"


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        server = PostgresServer(folder / "server").start()
        stack.callback(server.stop)
        return [row for count in COUNTS for row in uvloop.run(_measure(server, folder, count))]


async def _measure(server: PostgresServer, folder: Path, count: int) -> list[Row]:
    database = await asyncpg.connect(server.url())
    await database.execute(f"DROP TABLE IF EXISTS works; {TABLE}")
    async with _workers(server, folder, count) as workers:
        queue = Queue(database)
        await queue.open()
        await queue.walk(1)
        before = _cpu() + time.process_time()
        began = time.perf_counter()
        await asyncio.gather(*(queue.walk(WORKS) for _ in range(JOBS)))
        each = (_cpu() + time.process_time() - before) / (JOBS * WORKS)
        rate = JOBS * WORKS / (time.perf_counter() - began)
        visible = p50([await queue.started() for _ in range(50)])
        waiting = await queue.waiting()
        canceled = p50([await queue.canceled() for _ in range(5)])
        restarted = await queue.restarted(workers)
    await database.close()
    of = f"queue, {count} workers: "
    return [
        Row(f"{of}CPU of a work (dispatch and log)", ms(each), f"{rate:.0f} works/s", "", ""),
        Row(f"{of}insert to start at a worker", f"p50 {ms(visible)}", "", "", ""),
        Row(f"{of}a work restarts after kill -9", f"{restarted:.1f} s", "", "", verdict("5 s", restarted <= 5)),
        Row(f"{of}a stop ends a running work", f"{canceled:.2f} s", "", "", verdict("2 s", canceled <= 2)),
        Row(f"{of}{QUESTIONS} questions wait", f"{waiting:.1%} of a core", "", "", verdict("5 %", waiting <= 0.05)),
    ]


class Queue:
    """The side of the host that walks the jobs."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self._jobs = 0
        self._one = asyncio.Lock()
        self._waiters: dict[tuple[str, int], asyncio.Future[str]] = {}

    async def open(self) -> None:
        await self._database.add_listener("work_events", self._heard)

    def _heard(self, *heard: Any) -> None:
        kind, work, value = heard[-1].split(":")
        if (waiter := self._waiters.pop((kind, int(work)), None)) is not None:
            waiter.set_result(value)

    def until(self, kind: str, work: int) -> "asyncio.Future[str]":
        return self._waiters.setdefault((kind, work), asyncio.get_running_loop().create_future())

    async def insert(self, seconds: float = 0.0, *, waits: bool = False) -> int:
        """In one commit with the notification: nothing is read between a claim and the wait for its end."""
        sql = "INSERT INTO works (job, seconds, waits) VALUES ($1, $2, $3) RETURNING id"
        async with self._one:
            work: int = await self._database.fetchval(sql, self._jobs, seconds, waits)
        return work

    async def ring(self) -> None:
        async with self._one:
            await self._database.execute("NOTIFY works")

    async def walk(self, works: int) -> None:
        self._jobs += 1
        for _ in range(works):
            work = await self.insert()
            ended = self.until("ended", work)
            await self.ring()
            assert await ended == "succeeded"

    async def started(self) -> float:
        began = time.perf_counter()
        work = await self.insert()
        started, ended = self.until("started", work), self.until("ended", work)
        await self.ring()
        await started
        found = time.perf_counter() - began
        await ended
        return found

    async def waiting(self) -> float:
        """The share of a core that questions need in addition to workers without any work."""
        idle = await _share()
        works = [await self.insert(waits=True) for _ in range(QUESTIONS)]
        busy = await _share()
        await self._database.execute("UPDATE works SET outcome = 'succeeded' WHERE id = ANY($1)", works)
        return busy - idle

    async def canceled(self) -> float:
        work = await self.insert(60.0)
        started, ended = self.until("started", work), self.until("ended", work)
        await self.ring()
        await started
        began = time.perf_counter()
        await self._database.execute("SELECT pg_notify('works', $1)", f"stop:{work}")
        assert await ended == "stopped"
        return time.perf_counter() - began

    async def restarted(self, workers: list[asyncio.subprocess.Process]) -> float:
        work = await self.insert(60.0)
        started = self.until("started", work)
        await self.ring()
        number = int(await started)
        again = self.until("started", work)
        workers[number].kill()
        began = time.perf_counter()
        assert int(await again) != number
        return time.perf_counter() - began


async def _share() -> float:
    before = _cpu()
    await asyncio.sleep(WATCHED)
    return (_cpu() - before) / WATCHED


@contextlib.asynccontextmanager
async def _workers(server: PostgresServer, folder: Path, count: int) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    workers = []
    for number in range(count):
        home = folder / f"{count}-{number}"
        home.mkdir()
        command = [sys.executable, "-m", "bench.work_queue", server.url(), str(home), str(number)]
        workers.append(await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE))
    for worker in workers:
        assert worker.stdout is not None
        await worker.stdout.readline()
    yield workers
    for worker in workers:
        if worker.returncode is None:
            worker.kill()
        await worker.wait()


# -- a worker ------------------------------------------------------------------------------------------------------


class Worker:
    def __init__(self, number: int, log: PostgresLog, database: Any) -> None:
        self._number, self._log, self._database = number, log, database
        self.name = f"worker-{number}"
        self._one = asyncio.Lock()
        self._new = asyncio.Event()
        self._running: dict[int, asyncio.Task[None]] = {}

    def heard(self, *heard: Any) -> None:
        kind, _, work = heard[-1].partition(":")
        if kind != "stop":
            self._new.set()
        elif (running := self._running.get(int(work))) is not None:
            running.cancel()

    async def _ask(self, sql: str, *arguments: Any) -> Any:
        async with self._one:
            return await self._database.fetch(sql, *arguments)

    async def run(self) -> None:
        looked = 0.0
        while True:
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                await self._ask(DEAD)
            while works := await self._ask(CLAIM, self.name):
                for work, _, seconds, attempt in works:
                    self._running[work] = asyncio.create_task(self._work(work, seconds, attempt))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._new.wait()
            self._new.clear()

    async def _work(self, work: int, seconds: float, attempt: int) -> None:
        channels = (f"task/{self._number}-{work}-{attempt}", f"job/{self._number}-{work}")
        outcome = "succeeded"
        await self._log.append_all(*((channel, EVENT) for channel in channels))
        await self._tell("started", work, str(self._number))
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            outcome = "stopped"
        await self._log.append_all(*((channel, EVENT) for channel in channels))
        if await self._ask(END, work, self.name, attempt, outcome):
            await self._tell("ended", work, outcome)
        del self._running[work]

    async def _tell(self, kind: str, work: int, value: str) -> None:
        await self._ask("SELECT pg_notify('work_events', $1)", f"{kind}:{work}:{value}")


async def _serve(url: str, folder: str, number: str) -> None:
    log = await PostgresLog.open(PostgresOpening(url, Path(folder), host=f"queue-{Path(folder).name}"))
    log.wanted = lambda: ()
    database = await asyncpg.connect(url, server_settings={"application_name": f"worker-{number}"})
    worker = Worker(int(number), log, database)
    await database.add_listener("works", worker.heard)
    print("ready", flush=True)
    await worker.run()


if __name__ == "__main__":
    uvloop.run(_serve(*sys.argv[1:]))

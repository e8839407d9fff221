"""Three real hosts on a real database, clients that change hosts at random, and everything that can happen to them.

`python -m tests.cluster.chaos --seconds 300 --seed 7 --temporal` is the long run; the suite has a short one. What must
hold then: nothing acknowledged is missing or there twice, positions have no gap, every turn has one end, nobody but its
owner wrote to a session, a reader has seen a prefix of its channel without a gap or a repeat, whichever hosts it read
from: by pages of events, as a stream, by a page's long poll and as an editor (`readers.py`). With Temporal jobs run
meanwhile, and it is restarted, too: they all end, and no work that had ended ran again.

It reports its progress on standard error every ten seconds, and what it waits for. A fault that takes longer than
`FAULT_SECONDS` fails the run.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec

from portico.cluster.postgres.connect import connect
from portico.features.jobs.events import JobEnded, WorkEnded, WorkStarted
from portico.kernel.events import QueueAdded, SessionStarted, TurnEnded, TurnStarted, decode
from portico.testing.postgres import PostgresServer
from portico.testing.temporal import TemporalServer
from tests.cluster.readers import READERS, Reader
from tests.jobs.playing import make, task
from tests.jobs.samples import par, ref, seq
from tests.process import environment

LEASE = 3.0
FAULT_SECONDS = 600.0
"""The longest a fault may take: most of it is the start of a host on a loaded machine."""
REPORT_SECONDS = 10.0
_TWICE: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "session": lambda key: ("/v1/sessions", {"agent": "scripted", "title": key}),
    "message": lambda key: ("/message", {"text": key, "agent": "scripted"}),
}
"""Commands whose key two hosts get concurrently, each marked with its key."""
WRITERS = """
CREATE TABLE wrote (host int, last bigint PRIMARY KEY);
CREATE TABLE owned (channel text, host int, after bigint, at bigserial);
CREATE FUNCTION note_writer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO wrote VALUES (NEW.host, NEW.seq) ON CONFLICT DO NOTHING; RETURN NEW; END $$;
CREATE FUNCTION note_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO owned (channel, host, after) SELECT NEW.channel, NEW.host,
  CASE WHEN TG_OP = 'INSERT' THEN 0 ELSE last_value END FROM seq; RETURN NEW; END $$;
CREATE TRIGGER note_writer BEFORE INSERT ON batches FOR EACH ROW WHEN (NEW.seq > 0) EXECUTE FUNCTION note_writer();
CREATE TRIGGER note_owner AFTER INSERT OR UPDATE ON owners FOR EACH ROW EXECUTE FUNCTION note_owner();
"""
STRANGERS = """
SELECT c.name, e.seq, w.host, o.host AS owner
  FROM events e JOIN channels c ON c.id = e.channel AND c.name LIKE 'session/%'
  CROSS JOIN LATERAL (SELECT host FROM wrote WHERE last >= e.seq ORDER BY last LIMIT 1) w
  CROSS JOIN LATERAL (SELECT host FROM owned WHERE channel = c.name AND after < e.seq ORDER BY at DESC LIMIT 1) o
  WHERE w.host != o.host LIMIT 5
"""
CLIENTS = 3


class Process:
    def __init__(
        self,
        folder: Path,
        url: str,
        number: int,
        more: dict[str, str],
        lease: float = LEASE,
        place: str = "chaos",
    ) -> None:
        self._more = {"PORTICO_CLUSTER_PLACE": place, "PORTICO_CLUSTER_LEASE_SECONDS": str(lease), **more}
        self.name = f"host-{number}"
        self.home = folder / self.name
        self._log = folder / f"{self.name}.log"
        self._url = url
        self.process: asyncio.subprocess.Process | None = None
        self.address = ""

    async def start(self, tries: int = 3) -> None:
        command = [sys.executable, "-m", "portico", "serve", "--port", "0", "--print-ready", "--home", str(self.home)]
        more = ["--log", self._url, "--agent", "scripted", "--workspace", str(self.home.parent)]
        with self._log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command,
                *more,
                env=environment(PORTICO_CLUSTER_HOST=self.name, **self._more),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        line = (await asyncio.wait_for(self.process.stdout.readline(), 120)).decode()
        if not line and tries > 1:  # taken for dead before it was ready: a supervisor starts it again
            return await self.start(tries - 1)
        assert line.startswith("READY:"), self._log.read_text("utf-8")[-3000:]
        self.address = f"http://127.0.0.1:{line.removeprefix('READY:').strip()}"
        return None

    def tell(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)

    async def end(self, number: signal.Signals) -> None:
        self.tell(number)
        if self.process is not None:
            await self.process.wait()


class Chaos:
    def __init__(self, folder: Path, seed: int, temporal: bool = False) -> None:
        self.random = random.Random(seed)
        self.temporal = TemporalServer(folder / "temporal").start() if temporal else None
        engine = (
            {"PORTICO_JOBS_ENGINE": "temporal", "PORTICO_JOBS_ADDRESS": self.temporal.address} if self.temporal else {}
        )
        self.folder, self.jobs = folder, list[str]()
        self.server = PostgresServer(folder / "postgres", settings={"fsync": "off"}).start()
        self.hosts = [Process(folder, self.server.url(), number, engine) for number in range(1, 4)]
        self.acknowledged: dict[str, str] = {}
        """What was said, and to which session."""
        self.seen: dict[str, list[int]] = {}
        self.twice: dict[str, set[str]] = {}
        """What was answered to a key that two hosts got concurrently."""
        self.refused = Counter[int]()
        self.readers: list[Reader] = []
        self.done = asyncio.Event()
        self.happened: Counter[str] = Counter()
        self.stage = "starting"
        """What it does now, or waits for."""

    async def run(self, seconds: float) -> dict[str, Any]:
        reporting = asyncio.create_task(self._report())
        try:
            return await self._run(seconds)
        except TimeoutError as error:
            raise AssertionError(f"it took too long: {self.stage}") from error
        finally:
            reporting.cancel()

    async def _report(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            done = f"{sum(self.happened.values())} faults, {len(self.acknowledged)} messages, {len(self.jobs)} jobs"
            print(f"{loop.time() - began:.0f} s: {done}; now: {self.stage}", file=sys.stderr, flush=True)

    async def _run(self, seconds: float) -> dict[str, Any]:
        try:
            await self.hosts[0].start()  # makes the tables and the token
            await self._watch_writers()
            await asyncio.gather(*(host.start() for host in self.hosts[1:]))
            token = (self.hosts[0].home / "token").read_text("ascii").strip()
            headers = {"authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(headers=headers, timeout=10, trust_env=False) as http:
                sessions = [await self._begin(http) for _ in range(CLIENTS)]
                self.readers = [kind(http, each, self._any, self.random) for each in sessions for kind in READERS]
                async with asyncio.TaskGroup() as tasks:
                    for number, session in enumerate(sessions):
                        tasks.create_task(self._talk(http, session, number))
                        tasks.create_task(self._read(http, session))
                    for reader in self.readers:
                        tasks.create_task(reader.read(self.done), name=f"{reader.name} {reader.session}")
                    for command in _TWICE:
                        tasks.create_task(self._do_twice(http, command))
                    if self.temporal is not None:
                        tasks.create_task(self._run_jobs(http))
                    await self._disturb(seconds)
                    self.done.set()
                    self.stage = "the last requests of the clients"
                await self._settle(http, sessions)
                self.stage = "checking"
                return await self._check(sessions)
        finally:
            for host in self.hosts:
                host.tell(signal.SIGCONT)
                await host.end(signal.SIGKILL)
            self.server.stop(at_once=True)
            if self.temporal is not None:
                self.temporal.stop(at_once=True)

    def _any(self) -> str:
        return self.random.choice(self.hosts).address

    async def _begin(self, http: httpx.AsyncClient) -> str:
        answer = await http.post(f"{self._any()}/v1/sessions", json={"agent": "scripted"})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def _talk(self, http: httpx.AsyncClient, session: str, client: int) -> None:
        number = 0
        while not self.done.is_set():
            text = f"[[deltas:5]] [[gap:5]] message-{client}-{number}."
            if await self._say(http, session, text):
                self.acknowledged[text] = session
            number += 1
            await asyncio.sleep(self.random.uniform(0, 0.2))

    async def _say(self, http: httpx.AsyncClient, session: str, text: str) -> bool:
        """Until it is acknowledged, wherever: the same id is done once."""
        while True:
            with contextlib.suppress(httpx.HTTPError):
                answer = await http.post(
                    f"{self._any()}/v1/sessions/{session}/messages",
                    json={"text": text},
                    headers={"Idempotency-Key": text},
                )
                if answer.status_code < 400:
                    return True
                if answer.status_code == 429:
                    return False  # the queue is full, since it waits for a person after an interruption
            if self.done.is_set():
                return False
            await asyncio.sleep(0.05)

    async def _read(self, http: httpx.AsyncClient, session: str) -> None:
        """Goes on at another host with the cursor of the one before."""
        seen = self.seen.setdefault(session, [])
        while not self.done.is_set():
            with contextlib.suppress(httpx.HTTPError):
                after = seen[-1] if seen else 0
                answer = await http.get(f"{self._any()}/v1/sessions/{session}/events", params={"after": after})
                if answer.status_code == 200:
                    seen += [event["pos"] for event in answer.json()["events"]]
            await asyncio.sleep(self.random.uniform(0, 0.1))

    async def _do_twice(self, http: httpx.AsyncClient, command: str) -> None:
        """One key at two hosts concurrently, until one of them accepts it; then both answers are of one run."""
        number = 0
        while not self.done.is_set():
            key = f"{command} {number}"
            path, body = _TWICE[command](key)

            async def post(host: str, path: str = path, body: Any = body, key: str = key) -> str | None:
                with contextlib.suppress(httpx.HTTPError):
                    answer = await http.post(f"{host}{path}", json=body, headers={"Idempotency-Key": key})
                    if answer.status_code < 400:
                        return str(answer.json()["id"])
                    self.refused[answer.status_code] += 1
                return None

            while not self.done.is_set():
                hosts = self.random.sample([host.address for host in self.hosts], 2)
                found = {each for each in await asyncio.gather(*map(post, hosts)) if each is not None}
                self.twice.setdefault(key, set()).update(found)
                if found:
                    break
                await asyncio.sleep(0.1)
            number += 1
            await asyncio.sleep(self.random.uniform(0, 0.5))

    async def _run_jobs(self, http: httpx.AsyncClient) -> None:
        entry = msgspec.to_builtins(
            make({"step": task("[[delay:300]] [[say:done]]")}, seq(par(*[ref("step")] * 3), ref("step")))
        )
        body = {"job": "main", "cwd": str(self.folder), "entry": entry}
        while not self.done.is_set():
            key = f"job-{len(self.jobs)}"
            while not self.done.is_set():

                async def post(host: Process, key: str = key) -> str | None:
                    with contextlib.suppress(httpx.HTTPError):
                        answer = await http.post(f"{host.address}/v1/jobs", json=body, headers={"Idempotency-Key": key})
                        return str(answer.json()["job"]) if answer.status_code < 400 else None
                    return None

                answers = await asyncio.gather(*map(post, self.random.sample(self.hosts, 2)))
                found = {each for each in answers if each is not None}
                assert len(found) <= 1, f"one key started {found}"
                if found:
                    self.jobs += found
                    break
                await asyncio.sleep(0.1)
            await asyncio.sleep(self.random.uniform(0.5, 3))

    # -- what happens ------------------------------------------------------------------------------------------

    async def _disturb(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        kinds = [self._kill, self._stop, self._pause, self._restart_database, self._cut]
        if self.temporal is not None:
            kinds.append(self._restart_temporal)
        self.random.shuffle(kinds)
        turn = 0
        while asyncio.get_running_loop().time() < until or turn < len(kinds):
            await asyncio.sleep(self.random.uniform(0.2, 1.0))
            kind = kinds[turn % len(kinds)]
            self.happened[kind.__name__.strip("_")] += 1
            self.stage = kind.__name__.strip("_").replace("_", " ")
            async with asyncio.timeout(FAULT_SECONDS):
                await kind()
            turn += 1

    async def _kill(self) -> None:
        host = self.random.choice(self.hosts)
        await host.end(signal.SIGKILL)
        await asyncio.sleep(self.random.uniform(0, 2 * LEASE))
        await host.start()

    async def _stop(self) -> None:
        """As a rolling upgrade does."""
        host = self.random.choice(self.hosts)
        await host.end(signal.SIGTERM)
        await host.start()

    async def _pause(self) -> None:
        """For longer than its lease."""
        host = self.random.choice(self.hosts)
        host.tell(signal.SIGSTOP)
        await asyncio.sleep(LEASE * 1.5)
        host.tell(signal.SIGCONT)

    async def _restart_database(self) -> None:
        await asyncio.to_thread(self.server.stop, at_once=self.random.random() < 0.5)
        await asyncio.sleep(self.random.uniform(0, 1))
        await asyncio.to_thread(self.server.start)

    async def _restart_temporal(self) -> None:
        assert self.temporal is not None
        await asyncio.to_thread(self.temporal.stop, at_once=self.random.random() < 0.5)
        await asyncio.sleep(self.random.uniform(0, 2))
        await asyncio.to_thread(self.temporal.start)

    async def _watch_writers(self) -> None:
        """Who writes, and who is the owner, as the database itself sees it."""
        db = await connect(self.server.url(), "chaos")
        await db.execute(WRITERS)
        await db.close()

    async def _cut(self) -> None:
        for _ in range(5):
            with contextlib.suppress(Exception):
                other = await connect(self.server.url(), "chaos")
                who = "application_name LIKE 'portico %' AND pid != pg_backend_pid()"
                await other.fetch(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {who}")
                await other.close()
            await asyncio.sleep(self.random.uniform(0, 0.2))

    # -- what must hold ----------------------------------------------------------------------------------------

    async def _settle(self, http: httpx.AsyncClient, sessions: list[str]) -> None:
        """Everybody is there again, knows the same, and no turn runs or is about to. Two looks: what was asked by a
        client that gave up waiting may still be on its way."""
        before: object = None
        async with asyncio.timeout(240):
            while not await self._jobs_done(http):  # noqa: ASYNC110
                await asyncio.sleep(1)
            while True:
                now = await self._at_rest(http, sessions)
                if now is not None and now == before:
                    return
                before = now
                await asyncio.sleep(1)

    async def _jobs_done(self, http: httpx.AsyncClient) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            answer = await http.get(f"{self._any()}/v1/jobs")
            listed = {each["id"]: each["status"] for each in answer.json().get("jobs", [])}
            open_jobs = [job for job in self.jobs if listed.get(job) in (None, "running")]
            self.stage = f"waiting for jobs: {open_jobs}"
            return not open_jobs
        return False

    async def _at_rest(self, http: httpx.AsyncClient, sessions: list[str]) -> list[int] | None:
        """How far every session is; None while something runs, or hosts differ."""
        found: list[list[int]] = []
        for host in self.hosts:
            found.append([])
            for session in sessions:
                try:
                    answer = await http.get(f"{host.address}/v1/sessions/{session}")
                except httpx.HTTPError as error:
                    self.stage = f"waiting for {host.name}: {error!r}"
                    return None
                state = answer.json() if answer.status_code == 200 else {}
                runs = not state or any(not turn.get("outcome") for turn in state.get("turns", []))
                if runs or (state.get("queue") and not state.get("held")):
                    self.stage = f"waiting for {session} at {host.name}: {answer.status_code}"
                    return None
                found[-1].append(state["pos"])
        self.stage = f"waiting until all hosts have the same positions: {found}"
        return found[0] if all(each == found[0] for each in found) else None

    async def _check(self, sessions: list[str]) -> dict[str, Any]:
        db = await connect(self.server.url(), "check")
        counts = Counter[str]()
        for session in sessions:
            rows = await db.fetch(
                "SELECT e.pos, data, seq FROM events e JOIN channels c ON c.id = channel WHERE name = $1 ORDER BY 1",
                f"session/{session}",
            )
            positions = [pos for pos, _, _ in rows]
            assert positions == [*range(1, len(rows) + 1)], "positions have no gap and no repeat"
            events = [decode(data) for _, data, _ in rows]
            begun = [event.turn for event in events if isinstance(event, TurnStarted)]
            ended = Counter(event.turn for event in events if isinstance(event, TurnEnded))
            assert len(begun) == len(set(begun)), "no turn begins twice"
            assert ended == Counter(begun), "every beginning has one end"
            said = Counter(event.message.text for event in events if isinstance(event, QueueAdded))
            said += Counter(e.message.text for e in events if isinstance(e, TurnStarted) and e.pending is None)
            for text in (text for text, where in self.acknowledged.items() if where == session):
                told = [(pos, event) for (pos, _, _), event in zip(rows, events, strict=True) if text in str(event)]
                assert said[text] == 1, f"{text} was acknowledged and is there {said[text]} times: {told}"
            seen = self.seen[session]
            assert seen == positions[: len(seen)], "a reader has seen a prefix"
            counts.update(events=len(rows), turns=len(begun), seen=len(seen))
            for reader in (each for each in self.readers if each.session == session):
                counts[f"seen ({reader.name})"] += await reader.check({seq: pos for pos, _, seq in rows})
                counts["hops"] += reader.hops
        strangers = await db.fetch(STRANGERS)
        assert not strangers, f"somebody else than the owner wrote: {strangers}"
        counts.update(await self._check_twice(db))
        for job in self.jobs:
            counts.update(await self._check_job(db, job))
        await db.close()
        return {"acknowledged": len(self.acknowledged), **counts, "happened": dict(self.happened)}

    async def _check_twice(self, db: Any) -> dict[str, int]:
        rows = await db.fetch("SELECT data FROM events e JOIN channels c ON c.id = channel WHERE name LIKE 'session/%'")
        events = [decode(data) for (data,) in rows]
        begun = Counter(event.title for event in events if isinstance(event, SessionStarted))
        begun += Counter(event.message.text for event in events if isinstance(event, QueueAdded))
        begun += Counter(e.message.text for e in events if isinstance(e, TurnStarted) and e.pending is None)
        for key, answers in self.twice.items():
            assert len(answers) <= 1, f"the key {key!r} was answered with {answers}"
            assert begun[key] in ((1,) if answers else (0, 1)), f"the key {key!r} was run {begun[key]} times"
        assert not self.refused.keys() - {429, 503}, f"unexpected answers: {self.refused}"
        return {"keys used twice": sum(map(len, self.twice.values()))}

    async def _check_job(self, db: Any, job: str) -> dict[str, int]:
        sql = "SELECT data FROM events e JOIN channels c ON c.id = e.channel WHERE c.name = $1 ORDER BY e.pos"
        events = [decode(data) for (data,) in await db.fetch(sql, f"job/{job}")]
        ends = [event for event in events if isinstance(event, JobEnded)]
        assert [end.outcome for end in ends] == ["succeeded"], (job, ends)
        done = Counter(each.path for each in events if isinstance(each, WorkEnded) and each.outcome == "succeeded")
        assert list(done.values()) == [1] * 4, (job, done)
        attempts = Counter((each.path, each.attempt) for each in events if isinstance(each, WorkStarted))
        return {"jobs": 1, "works": len(done), "attempts": len(attempts)}


async def chaos(seconds: float, seed: int, temporal: bool = False, keep: Path | None = None) -> dict[str, Any]:
    if keep is not None:
        os.mkdir(keep, 0o755)
        return await Chaos(keep, seed, temporal).run(seconds)
    with tempfile.TemporaryDirectory(prefix="portico-chaos-") as folder:
        os.chmod(folder, 0o755)
        return await Chaos(Path(folder), seed, temporal).run(seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--temporal", action="store_true", help="run jobs on Temporal meanwhile")
    parser.add_argument("--keep", type=Path, help="a new folder, in which database and logs stay")
    given = parser.parse_args()
    print(json.dumps(asyncio.run(chaos(given.seconds, given.seed, given.temporal, given.keep)), indent=2))

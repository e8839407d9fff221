"""Three real hosts on a real database, clients that change hosts at random, and everything that can happen to them.

`python -m tests.cluster.chaos --seconds 300 --seed 7` is the long run; the suite has a short one. What must hold then:
nothing acknowledged is missing or there twice, positions have no gap, every turn has one end, a reader has seen a
prefix of its channel without a gap or a repeat, whichever hosts it read from.
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
from pathlib import Path
from typing import Any

import httpx

from portico.events import QueueAdded, TurnEnded, TurnStarted, decode
from portico.log.postgres.connect import connect
from portico.testing.postgres import PostgresServer
from tests.process import environment

LEASE = 3.0
CLIENTS = 3


class Process:
    def __init__(self, folder: Path, url: str, number: int) -> None:
        self.name = f"host-{number}"
        self.home = folder / self.name
        self._log = folder / f"{self.name}.log"
        self._url = url
        self.process: asyncio.subprocess.Process | None = None
        self.address = ""

    async def start(self, tries: int = 3) -> None:
        command = [sys.executable, "-m", "portico", "serve", "--port", "0", "--print-ready", "--home", str(self.home)]
        more = ["--log", self._url, "--agent", "scripted", "--workspace", str(self.home.parent)]
        about = {"PORTICO_CLUSTER_HOST": self.name, "PORTICO_CLUSTER_PLACE": "chaos"}
        with self._log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command,
                *more,
                env=environment(**about, PORTICO_CLUSTER_LEASE_SECONDS=str(LEASE)),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        line = (await asyncio.wait_for(self.process.stdout.readline(), 60)).decode()
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
    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.server = PostgresServer(folder / "postgres", settings={"fsync": "off"}).start()
        self.hosts = [Process(folder, self.server.url(), number) for number in range(1, 4)]
        self.acknowledged: dict[str, str] = {}
        """What was said, and to which session."""
        self.seen: dict[str, list[int]] = {}
        self.done = asyncio.Event()
        self.happened: Counter[str] = Counter()

    async def run(self, seconds: float) -> dict[str, Any]:
        try:
            await self.hosts[0].start()  # makes the tables and the token
            await asyncio.gather(*(host.start() for host in self.hosts[1:]))
            token = (self.hosts[0].home / "token").read_text("ascii").strip()
            headers = {"authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(headers=headers, timeout=10, trust_env=False) as http:
                sessions = [await self._begin(http) for _ in range(CLIENTS)]
                async with asyncio.TaskGroup() as tasks:
                    for number, session in enumerate(sessions):
                        tasks.create_task(self._talk(http, session, number))
                        tasks.create_task(self._read(http, session))
                    await self._disturb(seconds)
                    self.done.set()
                await self._settle(http, sessions)
            return await self._check(sessions)
        finally:
            for host in self.hosts:
                host.tell(signal.SIGCONT)
                await host.end(signal.SIGKILL)
            self.server.stop(at_once=True)

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

    # -- what happens ------------------------------------------------------------------------------------------

    async def _disturb(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        kinds = [self._kill, self._pause, self._restart_database, self._cut]
        self.random.shuffle(kinds)
        turn = 0
        while asyncio.get_running_loop().time() < until or turn < len(kinds):
            await asyncio.sleep(self.random.uniform(0.2, 1.0))
            kind = kinds[turn % len(kinds)]
            self.happened[kind.__name__.strip("_")] += 1
            await kind()
            turn += 1

    async def _kill(self) -> None:
        host = self.random.choice(self.hosts)
        await host.end(signal.SIGKILL)
        await asyncio.sleep(self.random.uniform(0, 2 * LEASE))
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
        async with asyncio.timeout(120):
            while True:
                now = await self._at_rest(http, sessions)
                if now is not None and now == before:
                    return
                before = now
                await asyncio.sleep(1)

    async def _at_rest(self, http: httpx.AsyncClient, sessions: list[str]) -> list[int] | None:
        """How far every session is; None while something runs, or hosts differ."""
        found: list[list[int]] = []
        for host in self.hosts:
            found.append([])
            for session in sessions:
                try:
                    answer = await http.get(f"{host.address}/v1/sessions/{session}")
                except httpx.HTTPError:
                    return None
                state = answer.json() if answer.status_code == 200 else {}
                runs = not state or any(not turn.get("outcome") for turn in state.get("turns", []))
                if runs or (state.get("queue") and not state.get("held")):
                    return None
                found[-1].append(state["pos"])
        return found[0] if all(each == found[0] for each in found) else None

    async def _check(self, sessions: list[str]) -> dict[str, Any]:
        db = await connect(self.server.url(), "check")
        counts = Counter[str]()
        for session in sessions:
            rows = await db.fetch(
                "SELECT e.pos, data FROM events e JOIN channels c ON c.id = e.channel WHERE c.name = $1 ORDER BY 1",
                f"session/{session}",
            )
            positions = [pos for pos, _ in rows]
            assert positions == [*range(1, len(rows) + 1)], "positions have no gap and no repeat"
            events = [decode(data) for _, data in rows]
            begun = [event.turn for event in events if isinstance(event, TurnStarted)]
            ended = Counter(event.turn for event in events if isinstance(event, TurnEnded))
            assert len(begun) == len(set(begun)), "no turn begins twice"
            assert ended == Counter(begun), "every beginning has one end"
            said = Counter(event.message.text for event in events if isinstance(event, QueueAdded))
            said += Counter(e.message.text for e in events if isinstance(e, TurnStarted) and e.pending is None)
            for text in (text for text, where in self.acknowledged.items() if where == session):
                assert said[text] == 1, f"{text} was acknowledged and is there {said[text]} times"
            seen = self.seen[session]
            assert seen == positions[: len(seen)], "a reader has seen a prefix"
            counts.update(events=len(rows), turns=len(begun), seen=len(seen))
        await db.close()
        return {"acknowledged": len(self.acknowledged), **counts, "happened": dict(self.happened)}


async def chaos(seconds: float, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="portico-chaos-") as folder:
        os.chmod(folder, 0o755)
        return await Chaos(Path(folder), seed).run(seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(chaos(given.seconds, given.seed)), indent=2))

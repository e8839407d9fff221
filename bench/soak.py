"""`python -m bench.soak --hours 1`: a real host under a steady mixed load, and what it costs over time.

Sessions begin, talk, run tools and are deleted; readers follow, disconnect and reconnect with their cursors; pages
poll; terminals print; jobs with items, outputs and person checks ask and are answered; a person with a browser that
gets notices spends a budget and raises it. Every few seconds memory, descriptors, disk and latency are written down.
The report is a CSV file, a picture (SVG) and one line per measure: the median of the first and of the last tenth, so
that a leak shows as a ratio.
"""

import argparse
import asyncio
import csv
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
from tests.crash.outside_people import BUDGET, WORKFLOW, browser

from portico.client import Client
from portico.features.people.people import add_person
from portico.server.home import Home
from portico.server.identity import new_token

TALKERS, READERS, POLLERS = 4, 6, 2
PROMPTS = (
    "[[say:Hello.]] [[deltas:50]]",
    "[[reasoning:20]] [[deltas:200]] [[stamp]]",
    "[[tool:look|it]] [[say:Done.]]",
    f"[[say:{'long ' * 2000}]]",
)
KEPT = 20
"""Sessions at a time; the oldest is deleted for the next."""


class Soak:
    def __init__(self, url: str, token: str, pid: int, home: Path, pause: float) -> None:
        self.pid, self.home, self.pause = pid, home, pause
        scopes = ["read", "drive", "approve"]
        add_person(Home(home), "ann", scopes)
        ann = new_token(Home(home), "anns", scopes, person="ann")
        self.ann = httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {ann}"}, timeout=30, trust_env=False
        )
        self.jobs = self.raises = 0
        jobs = home.parent / ".portico/jobs"
        jobs.mkdir(parents=True)
        (jobs / "kept.yaml").write_text(dedent(WORKFLOW))
        self.client = Client(url, token, reconnect_timeout=5)
        self.http = httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30, trust_env=False
        )
        self.sessions: list[str] = []
        self.turns = self.events = self.errors = 0
        self.turn_seconds: list[float] = []
        self.rows: list[dict[str, float]] = []
        self.started = time.monotonic()

    async def run(self, seconds: float, every: float) -> None:
        jobs: list[Callable[[], Coroutine[Any, Any, None]]] = [
            *[self.talk] * TALKERS,
            *[self.read] * READERS,
            *[self.poll] * POLLERS,
            self.print_in_terminals,
            self.run_job,
            self.spend,
        ]
        tasks = [asyncio.create_task(self.again(job), name=f"soak {index}") for index, job in enumerate(jobs)]
        while time.monotonic() - self.started < seconds:
            await asyncio.sleep(every)
            self.rows.append(await self.sample())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.http.aclose()
        await self.ann.aclose()

    async def again(self, job: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A refusal or a session that was deleted meanwhile is part of the load; it is counted."""
        while True:
            await asyncio.sleep(self.pause * random.uniform(0.5, 1.5))
            try:
                await job()
            except Exception:  # noqa: BLE001
                self.errors += 1
                await asyncio.sleep(0.2)

    # -- the load ----------------------------------------------------------------------------------------------

    async def talk(self) -> None:
        made = await self.http.post("/v1/sessions", json={"agent": "scripted"})
        session: str = made.raise_for_status().json()["id"]
        self.sessions.append(session)
        for _ in range(random.randrange(1, 6)):
            began = time.monotonic()
            async for _record in self.client.session(session).send(random.choice(PROMPTS)):
                pass
            self.turn_seconds.append(time.monotonic() - began)
            self.turns += 1
        if len(self.sessions) > KEPT:
            await self.http.delete(f"/v1/sessions/{self.sessions.pop(0)}")

    async def read(self) -> None:
        """Follows for a while, hangs up, and comes back with its cursor."""
        if not self.sessions:
            return await asyncio.sleep(0.1)
        session, after = random.choice(self.sessions), 0
        for _ in range(3):
            try:
                async with asyncio.timeout(random.uniform(0.2, 3)):
                    async for record in self.client.session(session).follow(after):
                        after = record.pos
                        self.events += 1
            except TimeoutError:
                continue
        return None

    async def poll(self) -> None:
        if not self.sessions:
            return await asyncio.sleep(0.1)
        token = f"page-{random.randrange(10**9)}"
        path = f"/api/copilot/session/{random.choice(self.sessions)}/live/{token}"
        for _ in range(3):
            await self.http.get(path)
        return None

    async def print_in_terminals(self) -> None:
        made = await self.http.post("/v1/terminals", json={})
        path = f"/v1/terminals/{made.raise_for_status().json()['id']}"
        await self.http.post(f"{path}/input", json={"data": "yes | head -c 3000000\n"})
        await asyncio.sleep(5)
        (await self.http.delete(path)).raise_for_status()

    async def run_job(self) -> None:
        """A job with items, outputs, a question and a person check, whose questions are answered."""
        body = {"job": "kept", "cwd": str(self.home.parent), "inputs": {"tag": f"soak-{self.jobs}"}}
        job = (await self.http.post("/v1/jobs", json=body)).raise_for_status().json()["job"]
        while not (await self.http.get(f"/v1/jobs/{job}")).json().get("ended"):
            for item in (await self.http.get("/v1/inbox")).json()["waiting"]:
                question = item.get("question") or {}
                if "soak-" in question.get("text", ""):
                    answer = "Left" if question["text"].startswith("Way") else "Yes"
                    await self.http.post(f"/v1/questions/{question['id']}", json={"text": answer})
            await asyncio.sleep(0.2)
        self.jobs += 1

    async def spend(self) -> None:
        """A person subscribes a browser, spends the budget of a session, raises it, and removes both."""
        push = (await self.ann.post("/v1/push", json=browser())).raise_for_status().json()["push"]
        body = {"agent": "scripted", "config": {"budget": {"turns": BUDGET}}}
        path = f"/v1/sessions/{(await self.ann.post('/v1/sessions', json=body)).raise_for_status().json()['id']}"
        for _ in range(2 * BUDGET):
            await self.ann.post(f"{path}/messages", json={"text": random.choice(PROMPTS)})
            while (state := (await self.ann.get(path)).json()).get("queue") or not state["turns"][-1].get("outcome"):
                inbox = (await self.ann.get("/v1/inbox")).json()
                for item in inbox["waiting"]:
                    self.raises += 1
                    await self.ann.post(f"/v1/questions/{item['question']['id']}", json={"text": "raise"})
                for each in inbox.get("budgets", []):
                    self.raises += 1
                    await self.ann.post("/v1/budgets/answer", json={"budget": each["budget"], "answer": "raise"})
                await asyncio.sleep(0.1)
        (await self.ann.delete(path)).raise_for_status()
        (await self.ann.delete(f"/v1/push/{push}")).raise_for_status()

    # -- what it costs -----------------------------------------------------------------------------------------

    def costs(self) -> dict[str, float]:
        return {
            "memory MB": int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * 4096 / 1e6,
            "descriptors": len(os.listdir(f"/proc/{self.pid}/fd")),
            "disk MB": sum(each.stat().st_size for each in self.home.rglob("*") if each.is_file()) / 1e6,
        }

    async def sample(self) -> dict[str, float]:
        small = []
        for _ in range(20):
            began = time.monotonic()
            await self.http.get("/healthz")
            small.append((time.monotonic() - began) * 1000)
        turns, self.turn_seconds = self.turn_seconds, []
        return {
            "minutes": (time.monotonic() - self.started) / 60,
            **self.costs(),
            "request ms (p50)": statistics.median(small),
            "request ms (max)": max(small),
            "turn ms (p50)": statistics.median(turns) * 1000 if turns else 0.0,
            "turns": self.turns,
            "jobs": self.jobs,
            "budgets raised": self.raises,
            "events read": self.events,
            "refused": self.errors,
        }


def summary(rows: list[dict[str, float]]) -> list[str]:
    tenth = max(1, len(rows) // 10)
    lines = ["| measure | first tenth | last tenth | ratio |", "|---|---|---|---|"]
    for name in list(rows[0])[1:]:
        first = statistics.median(row[name] for row in rows[:tenth])
        last = statistics.median(row[name] for row in rows[-tenth:])
        lines.append(f"| {name} | {first:.1f} | {last:.1f} | {f'{last / first:.2f}' if first else '-'} |")
    return lines


def picture(rows: list[dict[str, float]]) -> str:
    """One small graph below the other, all over the same time."""
    names = list(rows[0])[1:7]
    width, height, end = 720, 90, rows[-1]["minutes"] or 1
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 220}" height="{(height + 20) * len(names)}">']
    for index, name in enumerate(names):
        top, most = index * (height + 20) + 10, max(row[name] for row in rows) or 1
        points = " ".join(
            f"{row['minutes'] / end * width:.1f},{top + height - row[name] / most * height:.1f}" for row in rows
        )
        parts.append(f'<polyline fill="none" stroke="#06c" points="{points}"/>')
        parts.append(f'<text x="{width + 8}" y="{top + 14}" font-size="12">{name}, to {most:.0f}</text>')
    return "\n".join([*parts, "</svg>"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=1.0, help="how long [1]")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two samples [5]")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that each client rests between rounds [0]")
    parser.add_argument("--out", type=Path, default=Path("soak"), help="the folder for soak.csv and soak.svg [soak]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        command = [str(Path(sys.executable).parent / "portico"), "serve", "0", "--print-ready", "--agent", "scripted"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "PORTICO_HOME": str(home)}, cwd=folder
        ) as host:
            try:
                assert host.stdout is not None
                port = int(host.stdout.readline().decode().removeprefix("READY:"))
                place = f"http://127.0.0.1:{port}"
                rows = asyncio.run(_soak(place, home, host.pid, given.hours * 3600, given.every, given.pause))
            finally:
                host.terminate()
    given.out.mkdir(exist_ok=True)
    with (given.out / "soak.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (given.out / "soak.svg").write_text(picture(rows))
    print("\n".join(summary(rows)))


async def _soak(url: str, home: Path, pid: int, seconds: float, every: float, pause: float) -> list[dict[str, float]]:
    soak = Soak(url, (home / "token").read_text().strip(), pid, home, pause)
    async with soak.client:
        await soak.run(seconds, every)
    return soak.rows


if __name__ == "__main__":
    main()

"""`python -m bench.kills --seed 7 --kills 40`: a host is killed while clients outside drive it through its doors.

REST, Portal, Anywhere and AHP concurrently, with jobs that ask people and a person with a budget and a browser. The
host dies after a random number of sightings, at a named point of the log, or while it starts; the clients continue
with their cursors and repeat what was not answered. What must hold then: nothing acknowledged or seen is missing from
the log, nothing was seen twice or out of order, every turn has one end, a command with an id was done once, every job
has its result, every question keeps its id, and a budget holds.
"""

import argparse
import asyncio
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
from tests.crash.outside import GUARD, Ahp, Anywhere, Outside, Portal, Rest
from tests.crash.outside_people import JobRunner, Person
from tests.crash.story import check_ends, check_queue, check_turns
from tests.process import PORTICO, environment

from portico.kernel import events as e
from portico.kernel.events import Event, Record
from portico.kernel.fold import fold
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.state import SessionState

SIGHTINGS = 600
"""Up to so many in one life: some turns at every door."""
POINTS = {"before-append": 100, "after-append": 100, "before-commit": 80, "after-commit": 80}


class Kills:
    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder, self.home = folder, folder / "home"
        self.url, self.generation = "", 0
        self.done = asyncio.Event()
        self.counts: Counter[str] = Counter()
        self._process: asyncio.subprocess.Process | None = None
        self._until_kill = -1
        self._ready = asyncio.Event()

    # -- the host ----------------------------------------------------------------------------------------------

    async def start(self, point: str = "", seconds: float | None = None) -> None:
        """May be killed before it is ready."""
        with (self.folder / "stderr").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                PORTICO,
                *("serve", "0", "--print-ready", "--agent", "scripted"),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=self.folder,
                env=environment(PORTICO_HOME=str(self.home), PORTICO_KILL_AT=point),
            )
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, self._kill, self._process)
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        if line:
            self.url = f"http://127.0.0.1:{line.removeprefix('READY:').strip()}"
            self.generation += 1
            self._ready.set()
            self._ready = asyncio.Event()
        else:
            self.counts["killed before it was ready"] += 1

    @staticmethod
    def _kill(process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            process.kill()

    def saw(self, count: int = 1) -> None:
        self.counts["sightings"] += count
        if self._until_kill >= 0:
            self._until_kill -= count
            if self._until_kill < 0 and self._process is not None:
                self._kill(self._process)

    async def restarted(self, generation: int) -> None:
        """Until there is a host after that one."""
        while self.generation <= generation:
            await self._ready.wait()

    async def end(self, number: int | None = None) -> int:
        assert self._process is not None
        if number is not None and self._process.returncode is None:
            self._process.send_signal(number)
        code = await self._process.wait()
        self._until_kill = -1
        return code

    async def kill(self, number: int) -> None:
        """One life: every third one ends at a named point, every eighth while it starts."""
        point, seconds = "", None
        if number % 3 == 1:
            point = list(POINTS)[number // 3 % len(POINTS)]
            self.counts["killed at a named point"] += 1
            point = f"{point}:{self.rng.randint(1, POINTS[point])}"
        elif number % 8 == 5:
            seconds = self.rng.uniform(0.1, 0.8)
            self.counts["killed while it starts"] += 1
        else:
            self._until_kill = self.rng.randint(0, SIGHTINGS)
            self.counts["killed after some sightings"] += 1
        await self.start(point, seconds)
        code = await self.end()
        assert code == -signal.SIGKILL, f"it ended by itself ({code}): {self.log()}"
        self.counts["kills"] += 1

    def log(self) -> str:
        return (self.folder / "stderr").read_text("utf-8")[-3000:]

    # -- the run -----------------------------------------------------------------------------------------------

    async def run(self, kills: int) -> Counter[str]:
        doors = rest, portal, anywhere, ahp = Rest(self), Portal(self), Anywhere(self), Ahp(self)
        clients: list[Outside] = [*doors, jobs := JobRunner(self), person := Person(self)]
        try:
            async with asyncio.TaskGroup() as tasks:
                readers = [
                    tasks.create_task(self._when_ready(client.read()), name=f"read {client.name}") for client in clients
                ]
                talkers = [
                    tasks.create_task(self._when_ready(client.talk()), name=f"talk {client.name}") for client in clients
                ]
                for number in range(kills):
                    async with asyncio.timeout(GUARD):
                        await self.kill(number)
                async with asyncio.timeout(GUARD):
                    await self._finish(talkers, rest, ahp)
                for reader in readers:
                    reader.cancel()
        finally:
            await self.end(signal.SIGTERM)
            for client in clients:
                await client.close()
        assert ahp.client.wrong == []
        self.counts["seen (ahp)"] = len(ahp.client.envelopes)
        check = Check(self.home, self.counts)
        await check.run(rest, portal, anywhere, ahp)
        jobs.check()
        person.check(check.begun())
        self.counts |= {"jobs": len(jobs.results), "questions of jobs": len(jobs.questions), "raises": person.raises}
        return self.counts

    async def _when_ready(self, doing: Coroutine[Any, Any, None]) -> None:
        await self.restarted(0)
        await doing

    async def _finish(self, talkers: list[asyncio.Task[None]], rest: Rest, ahp: Ahp) -> None:
        await self.start()
        self.done.set()
        await asyncio.gather(*talkers)
        await rest.caught_up()
        await ahp.caught_up()


class Check:
    """What the clients know against what is in the log."""

    def __init__(self, home: Path, counts: Counter[str]) -> None:
        self.home, self.counts = home, counts
        self.records: list[Record] = []
        self.channels: dict[str, list[Record]] = {}

    async def run(self, rest: Rest, portal: Portal, anywhere: Anywhere, ahp: Ahp) -> None:
        log = await SqliteLog.open(self.home / "log.db")
        while more := await log.read_all(after=self.records[-1].seq if self.records else 0, limit=10_000):
            self.records += more
        await log.close()
        for record in self.records:
            self.channels.setdefault(record.channel, []).append(record)
        self.check_stories()
        self.check_commands(rest, portal, anywhere, ahp)
        self.check_rest(rest)
        self.check_portal(portal)
        self.check_anywhere(anywhere)

    def begun(self) -> Counter[str]:
        """How many turns each session began, without those that a kill ended before anything happened in them: a turn
        is recorded before its budget is checked."""
        found: Counter[str] = Counter()
        for channel, records in self.channels.items():
            events = [record.event for record in records]
            each = Counter(turn for event in events if (turn := getattr(event, "turn", None)))
            cut = {event.turn for event in events if isinstance(event, e.TurnEnded) and event.outcome == "interrupted"}
            begun = [event.turn for event in events if isinstance(event, e.TurnStarted)]
            found[channel.removeprefix("session/")] += sum(turn not in cut or each[turn] > 2 for turn in begun)
        return found

    def check_stories(self) -> None:
        for channel, records in self.channels.items():
            assert [record.pos for record in records] == [*range(1, len(records) + 1)], channel
            if channel.startswith("session/"):
                events = [record.event for record in records]
                check_turns(events, finished=True)
                check_ends(events, finished=True)
                state = SessionState(channel.removeprefix("session/"))
                for record in records:
                    fold(state, record)
                check_queue(events, [pending.id for pending in state.queue])
                self.counts["turns"] += len(state.turns)
                self.counts["turns interrupted"] += sum(turn.outcome == "interrupted" for turn in state.turns)

    def check_commands(self, rest: Rest, portal: Portal, anywhere: Anywhere, ahp: Ahp) -> None:
        events = [record.event for record in self.records]
        said = Counter(text for event in events for text in _said(event))
        clients: list[Outside] = [rest, portal, anywhere, ahp]
        for client in clients:
            assert client.once, f"{client.name} has not said anything"
            for text in client.once:
                assert said[text] == 1, f"{text!r} was acknowledged and is there {said[text]} times"
            for text in client.at_most_once:
                assert said[text] <= 1, f"{text!r} is there {said[text]} times"
        titles = Counter(event.title for event in events if isinstance(event, e.SessionRenamed))
        for title in rest.titles:
            assert titles[title] == 1, f"{title!r} was given {titles[title]} times"

    def check_rest(self, rest: Rest) -> None:
        """Everything, once, in order, as it is in the log."""
        there = [_shown(record) for record in self.records]
        assert rest.seen == there[: len(rest.seen)]
        self.counts["seen (rest)"] = len(rest.seen)

    def check_portal(self, portal: Portal) -> None:
        """In order and never again; what was in an answer on its way is in the history."""
        there = {record.seq for record in self.channels[f"session/{portal.session}"]}
        last = 0
        for answer in portal.answers:
            places = [element["seq"] for element in answer]
            assert places == sorted(places), f"out of order: {places}"
            assert places[0] > last, f"{places[0]} comes after {last}"
            assert set(places) <= there
            last = places[-1]
        self.counts["seen (portal)"] = sum(len(answer) for answer in portal.answers)

    def check_anywhere(self, anywhere: Anywhere) -> None:
        places = [place for place, _, _ in anywhere.seen]
        assert places == sorted(set(places)), "twice or out of order"
        assert set(places) <= {record.seq for record in self.records}
        ended = Counter(ident for _, kind, ident in anywhere.seen if kind == "done")
        begun = Counter(ident for _, kind, ident in anywhere.seen if kind == "inbound")
        sessions = {ident.partition(".")[0] for ident in begun}
        turns = [ident for session in sessions for ident in self._ended(session)]
        assert ended == begun == Counter(turns)
        self.counts["seen (anywhere)"] = len(places)

    def _ended(self, session: str) -> list[str]:
        """The ids of the messages whose turns have ended: of one that waited, the id that it had in the queue."""
        events = [record.event for record in self.channels[f"session/{session}"]]
        names = {each.turn: each.pending or each.turn for each in events if isinstance(each, e.TurnStarted)}
        return [f"{session}.{names[each.turn]}" for each in events if isinstance(each, e.TurnEnded)]


def _said(event: Event) -> list[str]:
    if isinstance(event, e.QueueAdded) or (isinstance(event, e.TurnStarted) and event.pending is None):
        return [event.message.text]
    return []


def _shown(record: Record) -> dict[str, Any]:
    event = msgspec.json.decode(record.data)
    return {"seq": record.seq, "channel": record.channel, "pos": record.pos, "time": record.time, "event": event}


async def kills(count: int, seed: int) -> Counter[str]:
    with tempfile.TemporaryDirectory(prefix="portico-kills-") as folder:
        return await Kills(Path(folder), seed).run(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40, help="how many [40]")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="does the same again [any]")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    began = time.monotonic()
    for name, count in sorted(asyncio.run(kills(given.kills, given.seed)).items()):
        print(f"  {count:8,}  {name}")
    print(f"  {time.monotonic() - began:8.1f}  seconds")


if __name__ == "__main__":
    main()

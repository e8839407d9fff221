"""The test's side of the crash tests: starts the driver, kills it, and compares what was seen with what is there."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.approval import Ruling
from portico.kernel.events import HOST, Event, Record, tag
from portico.kernel.fold import fold
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.state import SessionState
from portico.server.compose import build_host
from tests.crash.driver import agent, fingerprint
from tests.crash.story import check_ends, check_queue, check_turns

DRIVER = Path(__file__).parent / "driver.py"
DELTAS = {"part.delta", "tool.input", "tool.output"}


@dataclass
class Known:
    """An event that was once in the log or before a reader's eyes."""

    channel: str
    pos: int
    print: str
    tag: str


@dataclass
class App:
    """One home folder, over many kills."""

    folder: Path
    known: dict[int, Known] = field(default_factory=dict)
    acknowledged: list[tuple[str, str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    # -- killing -----------------------------------------------------------------------------------------------

    def kill(self, rng: random.Random, *prompts: str, point: str = "", starting: bool = False) -> None:
        """Runs the driver until it is killed: at a named point, while it starts, or some time later."""
        environment = {**os.environ, "PORTICO_KILL_AT": point, "PYTHONPATH": str(DRIVER.parents[2])}
        command = [sys.executable, str(DRIVER), str(self.folder), str(rng.randrange(1_000_000)), *prompts]
        root = str(DRIVER.parents[2])
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=root) as process:
            assert process.stdout is not None
            timer = None
            if starting:
                timer = self._kill_later(process, 0.2 + rng.random() * 0.3)
            for line in process.stdout:
                if line.startswith(b"READY") and not point and timer is None:
                    timer = self._kill_later(process, rng.random() * 0.6)
                self._hear(line)
            process.wait()
            if timer is not None:
                timer.cancel()
        assert process.returncode == -signal.SIGKILL, f"it ended by itself ({process.returncode}), not at {point!r}"
        self.counts["kills"] += 1
        place = "while starting" if starting else "at random"
        self.counts[f"killed {point.partition(':')[0] or place}"] += 1

    @staticmethod
    def _kill_later(process: "subprocess.Popen[bytes]", seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        return timer

    def _hear(self, line: bytes) -> None:
        """A line that the kill cut in two was not seen by anybody."""
        if not line.endswith(b"\n"):
            return
        kind, _, rest = line.decode().partition(" ")
        words = json.loads(rest)
        if kind == "S":
            self._saw(words[0], Known(*words[1:]))
            self.counts["events seen"] += 1
        elif kind == "A":
            self.acknowledged.append((words[0], words[1], words[2]))
            self.counts["commands acknowledged"] += 1

    def _saw(self, seq: int, event: Known) -> None:
        before = self.known.setdefault(seq, event)
        assert before == event, f"the number {seq} was given twice: {before} and {event}"

    # -- checking ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        started = time.monotonic()
        asyncio.run(asyncio.wait_for(self._check(), 30))
        self.counts["checks in ms"] += int((time.monotonic() - started) * 1000)

    async def _check(self) -> None:
        log = await SqliteLog.open(self.folder / "log.db")
        await self._check_kept(log)
        host = await build_host(log, [agent()])
        host.policies.insert(0, lambda session, request: Ruling(True, "the test says yes"))
        await self._check_stories(host)
        await self._check_acknowledged(host)
        await self._check_resume(host)
        await host.close()
        self._remember(await _whole(log))
        await log.close()

    async def _check_kept(self, log: SqliteLog) -> None:
        """Before any recovery: everything seen is there, in its place, and between there are no holes."""
        there = {record.seq: record for record in await _whole(log)}
        removed = {r.event.session for r in there.values() if isinstance(r.event, e.SessionRemoved)}
        removed |= {channel.removeprefix("session/") for channel in await log.list_kv("deleted")}
        for seq, known in self.known.items():
            record = there.get(seq)
            if record is None:
                deleted = known.channel.removeprefix("session/") in removed
                assert known.tag in DELTAS or deleted, f"lost: {seq} {known}"
            else:
                assert Known(record.channel, record.pos, fingerprint(record), tag(record.event)) == known
        assert log.seq >= max(self.known, default=0)
        self._remember(list(there.values()))
        numbers = Counter((known.channel, known.pos) for known in self.known.values())
        assert set(numbers.values()) <= {1}, "a position was given twice"
        assert set(self.known) == set(range(1, log.seq + 1)), "a number is missing"

    def _remember(self, records: list[Record]) -> None:
        for r in records:
            self._saw(r.seq, Known(r.channel, r.pos, fingerprint(r), tag(r.event)))

    async def _check_stories(self, host: Host) -> None:
        """After recovery: every beginning has one end, and the state is the fold of what is left in the log."""
        for summary in host.list():
            session = await host.get(summary.id)
            records = await _whole(host.log, session.channel)
            events = [record.event for record in records]
            check_turns(events, finished=True)
            check_ends(events, finished=True)
            check_queue(events, [pending.id for pending in session.state.queue])
            state = SessionState(session.id)
            for record in records:
                fold(state, record)
            assert state == session.state
            assert summary.status in ("idle", "failed")
            assert state.queue_held is bool(state.queue)
            self.counts["turns interrupted"] += sum(turn.outcome == "interrupted" for turn in state.turns)

    async def _check_acknowledged(self, host: Host) -> None:
        gone = {session for kind, session, _ in self.acknowledged if kind == "deleted"}
        assert not gone & {summary.id for summary in host.list()}
        removed = {r.event.session for r in await _whole(host.log, HOST) if isinstance(r.event, e.SessionRemoved)}
        revoked = {value for kind, _, value in self.acknowledged if kind == "revoked"}
        assert not revoked & set(host.grants)
        facts: dict[str, set[Any]] = {}
        for kind, session, value in self.acknowledged:
            if session in removed:
                continue
            if session not in facts:
                facts[session] = _facts([r.event for r in await _whole(host.log, f"session/{session}")])
            if kind in ("title", "archived", "unqueued", "sent"):
                assert (kind, value) in facts[session], f"forgotten: {kind} {session} {value}"
            elif kind == "answered":
                assert (kind, *value) in facts[session], f"forgotten: {kind} {session} {value}"
            elif kind == "started":
                assert host.has(session)
        granted = {r.event.grant.id for r in await _whole(host.log, HOST) if isinstance(r.event, e.GrantAdded)}
        assert {value for kind, _, value in self.acknowledged if kind == "granted"} <= granted
        taken = {r.event.grant for r in await _whole(host.log, HOST) if isinstance(r.event, e.GrantRevoked)}
        assert set(host.grants) == granted - taken

    async def _check_resume(self, host: Host) -> None:
        """The user can go on with what was interrupted."""
        for summary in host.list():
            session = await host.get(summary.id)
            last = session.state.turns[-1] if session.state.turns else None
            if last is not None and last.outcome == "interrupted" and last.message.text != "ask":
                await session.do(
                    c.ReopenSession(session=session.id), "test"
                )  # a kill in the middle of a deletion leaves it closed
                await session.resume(by="test")
                turn = await session.wait(last.id)
                assert turn.outcome in ("completed", "failed")
                assert turn.resumes >= 1
                self.counts["turns resumed"] += 1
                return

    def check_effects(self) -> None:
        """Nothing was silently repeated: each write happened at most once, and once if its call ended well."""
        path = self.folder / "effects.txt"
        lines = Counter(path.read_text().splitlines()) if path.exists() else Counter()
        assert set(lines.values()) <= {1}, f"repeated: {lines}"


def _facts(events: list[Event]) -> set[Any]:
    facts: set[Any] = set()
    for event in events:
        match event:
            case e.SessionRenamed():
                facts.add(("title", event.title))
            case e.SessionArchived():
                facts.add(("archived", event.archived))
            case e.QueueAdded():
                facts.add(("sent", event.pending))
            case e.TurnStarted():
                facts.add(("sent", event.turn))
            case e.QueueRemoved():
                facts.add(("unqueued", event.pending))
            case e.ApprovalAnswered():
                facts.add(("answered", event.approval, event.allowed))
            case _:
                pass
    return facts


async def _whole(log: Any, *channel: str) -> list[Record]:
    records: list[Record] = []
    while True:
        if channel:
            more = await log.read(channel[0], records[-1].pos if records else 0, 10_000)
        else:
            more = await log.read_all(after=records[-1].seq if records else 0, limit=10_000)
        if not more:
            return records
        records += more

"""A host under load, run by the crash tests as a process of its own and killed at any moment.

It prints a line for everything that a reader SAW (`S`) and for every command that was acknowledged (`A`), as it
happens, so that the test knows what must be there afterwards. Arguments: a folder, a seed, and prompts to send
instead of the usual mixture.
"""

import asyncio
import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path

from portico.agents import script
from portico.agents.scripted import ScriptedAgent
from portico.kernel.errors import PorticoError, TooSlow
from portico.kernel.events import Message, Record, tag
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.session import Session
from portico.kernel.state import CallPart, QuestionPart, SessionState
from portico.server.compose import build_host
from tests.grants import add_grant, revoke_grant
from tests.host.commands import reorder

RULES = """
rules:
  - match: ^write
    steps:
      - {do: write, path: effects.txt, text: "{prompt}\\n", append: true, ask: false}
      - {do: say, text: written}
  - match: ^approve
    steps:
      - {do: tool, name: shell, output: ran, partial: [a, b, c], permission: {kind: shell, command: make}}
      - {do: say, text: "a longer answer in many pieces", deltas: 30}
  - match: ^ask
    steps: [{do: ask, text: "Well?"}, {do: say, text: done}]
  - match: ^spawn
    steps:
      - {do: spawn, prompt: help, title: Helper, steps: [{do: say, text: "helping along", deltas: 10, gap: 1}]}
      - {do: usage, input: 5, output: 7}
"""
PROMPTS = [
    "[[deltas:300]]",
    "[[deltas:40]] [[gap:1]]",
    "[[tool:absent|x]] [[say:hi]]",
    "[[crash]]",
    "write {n}",
    "approve",
    "ask",
    "spawn",
]
SESSIONS = 4
SECONDS = 180.0


def agent() -> ScriptedAgent:
    return ScriptedAgent(script.Provider("scripted", "Scripted", steer=True), script.parse(RULES, "driver").rules)


def tell(kind: str, *words: object) -> None:
    os.write(1, f"{kind} {json.dumps(words)}\n".encode())


def acknowledge(kind: str, session: str, value: object = None) -> None:
    tell("A", kind, session, value)


def fingerprint(record: Record) -> str:
    return hashlib.sha1(record.data).hexdigest()[:12]


async def watch(log: SqliteLog, after: int) -> None:
    """A reader of everything that comes back with its cursor."""
    while True:
        try:
            async for batch in log.follow(after=after):
                for record in batch:
                    tell("S", record.seq, record.channel, record.pos, fingerprint(record), tag(record.event))
                    after = record.seq
        except TooSlow:
            continue


class Load:
    """Random commands on one session, for ever."""

    def __init__(self, host: Host, session: Session, rng: random.Random) -> None:
        self.host = host
        self.session = session
        self.rng = rng
        self.number = rng.randrange(1_000_000)

    async def run(self) -> None:
        verbs = [self.send] * 8 + [self.rename, self.flag, self.queue, self.edit_queue, self.grant]
        verbs += [self.cancel, self.resume, self.fork, self.delete]
        while True:
            try:
                await self.rng.choice(verbs)()
            except PorticoError:
                await asyncio.sleep(0)  # a refused command is no event
            await asyncio.sleep(self.rng.random() * 0.02)

    def fresh(self) -> str:
        self.number += 1
        return str(self.number)

    async def send(self) -> None:
        text = self.rng.choice(sys.argv[3:] or PROMPTS).replace("{n}", self.fresh())
        acknowledge("sent", self.session.id, await self.session.send(Message(text), by="driver"))

    async def rename(self) -> None:
        title = f"title {self.fresh()}"
        await self.session.rename(title, by="driver")
        acknowledge("title", self.session.id, title)

    async def flag(self) -> None:
        archived = self.rng.random() < 0.5
        await self.session.archive(archived, by="driver")
        acknowledge("archived", self.session.id, archived)

    async def queue(self) -> None:
        acknowledge("sent", self.session.id, await self.session.queue.add(Message("[[say:queued]]"), by="driver"))

    async def edit_queue(self) -> None:
        waiting = [pending.id for pending in self.session.state.queue]
        if waiting:
            self.rng.shuffle(waiting)
            await reorder(self.session, waiting, by="driver")
            await self.session.queue.remove(waiting[0], by="driver")
            acknowledge("unqueued", self.session.id, waiting[0])
            await self.session.queue.release(by="driver")

    async def grant(self) -> None:
        grant = await add_grant(
            self.host, agent="scripted", tool=self.fresh(), allow=True, by="driver", project="/none"
        )
        acknowledge("granted", self.session.id, grant.id)
        if self.rng.random() < 0.8:
            await revoke_grant(self.host, grant.id, by="driver")
            acknowledge("revoked", self.session.id, grant.id)

    async def cancel(self) -> None:
        await self.session.cancel(by="driver")

    async def resume(self) -> None:
        await self.session.resume(by="driver")

    async def fork(self) -> None:
        if len(self.host.list()) < 2 * SESSIONS:
            acknowledge("started", (await self.host.fork(self.session.id, by="driver")).id)

    async def delete(self) -> None:
        children = self.host.list(parent=self.session.id)
        if len(self.host.list()) > SESSIONS and children:
            ident = children[0].id
            await self.host.delete(ident, by="driver")
            acknowledge("deleted", ident)


async def answer(session: Session, rng: random.Random) -> None:
    """The person: answers whatever waits, mostly with yes."""
    while True:
        state = await session.wait_until(lambda state: state.status == "waiting")
        try:
            await _answer_one(session, state, rng)
        except PorticoError:
            await asyncio.sleep(0)


async def _answer_one(session: Session, state: SessionState, rng: random.Random) -> None:
    assert state.active is not None
    for part in state.active.parts:
        if isinstance(part, CallPart) and part.approval is not None:
            ident, allow = part.approval.id, rng.random() < 0.7
            await session.approvals.answer(ident, allow=allow, by="driver")
            acknowledge("answered", session.id, [ident, allow])
        elif isinstance(part, QuestionPart) and not part.done:
            await session.questions.answer(part.id, "accept", {"answer": "yes"}, by="driver")


async def compact(log: SqliteLog, before: int) -> None:
    """Only what older processes left: the test has seen all of that."""
    while True:
        await log.compact(before)
        await asyncio.sleep(0.03)


async def main(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    log = await SqliteLog.open(folder / "log.db")
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
        tasks.create_task(watch(log, log.seq))
        begun = int(time.time() * 1000)
        host = await build_host(log, [agent()])
        tell("READY")
        for summary in host.list(children=False)[:SESSIONS]:
            await host.get(summary.id)
        while len(host.list(children=False)) < SESSIONS:
            acknowledge("started", (await host.start(by="driver", cwd=str(folder))).id)
        tasks.create_task(compact(log, begun))
        for summary in host.list(children=False)[:SESSIONS]:
            session = await host.get(summary.id)
            tasks.create_task(answer(session, rng))
            tasks.create_task(Load(host, session, rng).run())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))

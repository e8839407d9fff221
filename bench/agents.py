"""What do we add to a turn of a real agent's process?

From the prompt to the first delta that a reader sees, minus the same agent driven directly by the bare SDK in the
same run. The agent is the hand-written ACP agent of the tests: it answers at once, so what is measured is the way.
With the real Copilot installed (tests/live/install.sh), also a hundred sessions on one client.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import acp
import uvloop
from tests.agents.acp_agent import FAKE, fake_agent, steps
from tests.live.copilot_agent import copilot_agent
from tests.live.programs import COPILOT

from bench.row import Row, ms, p50, p99, verdict
from portico.agents.agent import Agent
from portico.kernel.events import Message, PartDelta
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.session import Session
from portico.server.compose import build_host
from portico.testing.model import ModelServer

QUESTION = "what we add to a turn of an agent's process"

TURNS = 200
SESSIONS = 100
PROMPT = steps(["text", "hello"])


def measure() -> list[Row]:
    return uvloop.run(_measure())


async def _measure() -> list[Row]:
    direct = await _direct()
    ours = await _ours()
    added = p50(ours) - p50(direct)
    rows = [
        Row(
            "prompt to first delta visible, ACP",
            f"p50 {ms(p50(ours))}, p99 {ms(p99(ours))}",
            f"bare SDK p50 {ms(p50(direct))}, p99 {ms(p99(direct))}",
            f"{p50(ours) / p50(direct):.1f}x, {added * 1000:+.2f} ms",
            verdict("+5 ms p50", added < 0.005),
        )
    ]
    return [*rows, await _copilot()] if COPILOT.exists() else rows


class _Reader:
    """A bare client: it only notes when the first update comes."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.heard.set()


async def _direct() -> list[float]:
    reader: Any = _Reader()
    times: list[float] = []
    async with acp.spawn_agent_process(reader, sys.executable, "-S", "-E", str(FAKE)) as (connection, _):
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await connection.new_session(cwd="/")
        for _ in range(TURNS):
            reader.heard.clear()
            began = time.perf_counter()
            prompting = asyncio.ensure_future(
                connection.prompt(session_id=session.session_id, prompt=[acp.text_block(PROMPT)])
            )
            await reader.heard.wait()
            times.append(time.perf_counter() - began)
            await prompting
    return times


async def _ours() -> list[float]:
    async def turns(host: Host, folder: Path) -> list[float]:
        session = await host.start(by="bench", cwd=str(folder))
        return [await _first_delta(session) for _ in range(TURNS)]

    times: list[float] = await _hosted(fake_agent, turns)
    return times


async def _hosted(make: Callable[[Path], Agent], work: Callable[[Host, Path], Any]) -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = await SqliteLog.open(folder / "log.db")
        host = await build_host(log, [make(folder)])
        try:
            return await work(host, folder)
        finally:
            await host.close()
            await log.close()


async def _first_delta(session: Session) -> float:
    """As a client sees it: a follower of the session's channel, which gets what is durable."""
    log = session.host.log
    seen = asyncio.get_running_loop().create_future()

    async def follow() -> None:
        async for records in log.follow(session.channel, after=log.head(session.channel)):
            if not seen.done() and any(isinstance(record.event, PartDelta) for record in records):
                seen.set_result(time.perf_counter())
                return

    following = asyncio.ensure_future(follow())
    await asyncio.sleep(0)
    began = time.perf_counter()
    turn = await session.send(Message(PROMPT), by="bench")
    first: float = await seen
    await session.wait(turn)
    await following
    return first - began


async def _copilot() -> Row:
    async with ModelServer() as model:

        async def sessions(host: Host, folder: Path) -> tuple[float, int]:
            began = time.perf_counter()
            opened = [await host.start(by="bench", cwd=str(folder)) for _ in range(SESSIONS)]
            turns = [await session.send(Message('[{"say": "Hello."}]'), by="bench") for session in opened]
            ended = [await session.wait(turn) for session, turn in zip(opened, turns, strict=True)]
            return time.perf_counter() - began, sum(turn.outcome == "completed" for turn in ended)

        seconds, done = await _hosted(lambda folder: copilot_agent(folder, model.url), sessions)
    return Row(
        f"{SESSIONS} sessions on one Copilot client, a turn each",
        f"{done} completed in {seconds:.1f} s",
        "-",
        f"{seconds / SESSIONS * 1000:.0f} ms a session",
        verdict(f"{SESSIONS} completed", done == SESSIONS),
    )

"""Plays cases with one agent: one host, a session and a folder for each case, everything allowed."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from msgspec import Struct

from bench.difficult.case import Case, judge, lay_out
from bench.difficult.endpoint import ByteEndpoint
from portico.agents.agent import Agent, Message
from portico.kernel.errors import PorticoError
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.server.compose import build_host
from portico.testing.tasks.run import said_in, until_ended


class Outcome(Struct, frozen=True):
    agent: str
    case: str
    problem: str
    """Empty: it was handled."""
    seconds: float
    requests: int

    @property
    def ok(self) -> bool:
        return not self.problem


async def play_all(
    agent: Agent, cases: Sequence[Case], endpoint: ByteEndpoint, folder: Path, seconds: float
) -> AsyncIterator[Outcome]:
    log = await SqliteLog.open(folder / "log.db")
    host = await build_host(log, [agent])
    try:
        for case in cases:
            endpoint.requests.pop(case.name, None)
            endpoint.current = case.name
            began = time.monotonic()
            problem = await _play(host, agent, case, endpoint, folder / case.name, seconds)
            asked = len(endpoint.requests.get(case.name, []))
            yield Outcome(agent.id, case.name, problem, round(time.monotonic() - began, 1), asked)
    finally:
        await host.close()
        await log.close()


async def _play(host: Host, agent: Agent, case: Case, endpoint: ByteEndpoint, folder: Path, seconds: float) -> str:
    lay_out(case, folder)
    said = ""
    try:
        async with asyncio.timeout(seconds):
            session = await host.start(by="bench", agent=agent.id, cwd=str(folder))
            for prompt in case.prompts:
                turn = await until_ended(
                    session, await session.send(Message(f"{prompt} [case {case.name}]"), by="bench")
                )
                said = said_in(turn)
                if turn.outcome != "completed":
                    return turn.error.message[:200] if turn.error is not None else f"the turn ended as {turn.outcome}"
    except TimeoutError:
        return f"not finished within {seconds:g} s"
    except PorticoError as error:
        return error.message[:200]
    return judge(case, folder, said, endpoint.requests.get(case.name, []))

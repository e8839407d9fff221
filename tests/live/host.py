"""A host with one real agent, for a test or (as a program of its own) to be killed by one.

python -m tests.live.host FOLDER AGENT MODEL-URL PROMPT...
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from portico.agents.acp import acp
from portico.agents.agent import Agent, AgentContext
from portico.agents.process_registry import ProcessRegistry, RegisteredProcess
from portico.kernel.clock import Clock
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.session import Session
from portico.kernel.state import SessionState, TurnState
from portico.server.compose import build_host
from tests.live.copilot_agent import copilot_agent
from tests.live.programs import LIVE, Live

SECONDS = 180.0
"""More than any step takes on a busy machine of two cores, and less than a hanging test is worth."""


def agent_of(folder: Path, live: Live, model: str) -> Agent:
    settings = {"acp": {live.name: live.table(folder / "vendor", model)}}
    context = AgentContext(folder / "home", settings)
    return next(agent for agent in acp(context) if agent.id == f"acp:{live.name}")


@asynccontextmanager
async def hosting(folder: Path, *agents: Agent, clock: Clock | None = None) -> AsyncIterator[Host]:
    (folder / "work").mkdir(parents=True, exist_ok=True)
    log = await SqliteLog.open(folder / "log.db")
    host = await build_host(log, agents, clock or Clock())
    try:
        yield host
    finally:
        await host.close()
        await log.close()


def script(*steps: dict[str, Any]) -> str:
    """A prompt that says what the model answers."""
    return json.dumps(list(steps))


async def play(session: Session, *steps: dict[str, Any], allow: bool | None = None) -> TurnState:
    """One turn through to its end; `allow` answers every approval on the way."""
    await session.host.get(session.id)  # one that has rested for long is read again
    turn = await session.send(Message(script(*steps)), by="test")
    async with asyncio.timeout(SECONDS):
        while True:
            state = await session.wait_until(lambda state: _approval(state) is not None or _ended(state, turn))
            if (ident := _approval(state)) is None:
                return await session.wait(turn)
            assert allow is not None, "the agent asks, and nobody is there"
            await session.approvals.answer(ident, by="test", allow=allow)


async def begin(session: Session, *steps: dict[str, Any]) -> str:
    """A turn that has said something and goes on."""
    await session.host.get(session.id)
    turn = await session.send(Message(script(*steps)), by="test")
    async with asyncio.timeout(SECONDS):
        await session.wait_until(lambda state: bool(state.active and state.active.parts))
    return turn


async def process_of(folder: Path) -> int:
    """The one agent's process of this folder's host. One that was replaced may need a moment to go."""
    async with asyncio.timeout(SECONDS):
        while len(found := processes(folder)) != 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # nobody tells when a file of the roll goes
    return found[0]


def processes(folder: Path) -> list[int]:
    """The agents' processes that are written down for this folder's host."""
    found: list[int] = []
    for path in ProcessRegistry(folder / "home").folder.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):  # it has just gone
            found.append(msgspec.json.decode(path.read_bytes(), type=RegisteredProcess).pid)
    return found


def _approval(state: SessionState) -> str | None:
    parts = state.active.parts if state.active is not None else []
    found = [part.approval for part in parts if hasattr(part, "approval") and part.approval is not None]
    return found[0].id if found else None


def _ended(state: SessionState, turn: str) -> bool:
    found = state.turn(turn)
    return found is not None and found.outcome is not None


async def main(folder: Path, name: str, model: str, prompts: list[str]) -> None:
    """Sends the prompts, says when the last one speaks, and waits to be killed."""
    if name == "copilot-sdk":
        agent: Agent = copilot_agent(folder, model)
    else:
        agent = agent_of(folder, next(each for each in LIVE if each.name == name), model)
    async with hosting(folder, agent) as host:
        session = await host.start(by="test", cwd=str(folder / "work"))
        for prompt in prompts[:-1]:
            await session.wait(await session.send(Message(prompt), by="test"))
        await session.send(Message(prompts[-1]), by="test")
        await session.wait_until(lambda state: bool(state.active and state.active.parts))
        print(session.id, flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))

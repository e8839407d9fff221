"""Tests end to end whether an agent works: a turn with a tool call, on a separate host in an empty folder."""

import asyncio
import secrets
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from portico.agents.agent import Agent, Message, ProbesAsking
from portico.kernel.errors import PorticoError
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.state import CallPart, TextPart, TurnState
from portico.server.compose import build_host

SECONDS = 180.0
"""A turn of two tool calls: a slow model on a busy machine takes a minute."""
FILE = "portico-test.txt"
PROMPT = (
    f"This is a test of your tools. Use your tool for writing files to create the file {FILE} in the current folder, "
    "with exactly this one word as its content: {word}. Do nothing else, then answer with the word done."
)


class Trial(Struct, frozen=True):
    agent: str
    ok: bool
    seconds: float
    tools: list[str]
    """The tools that it called, in order."""
    said: str
    problem: str = ""
    """Why it is not ok, and what to do."""
    asks: bool | None = None
    """Whether it asks before it acts: it did not write a file that was refused. None: not known."""


async def probe_asking(agent: Agent, *, again: bool = False) -> bool | None:
    """None: it is not known, or no question: an agent of ours asks."""
    return await agent.probe_asking(again=again) if isinstance(agent, ProbesAsking) else None


@asynccontextmanager
async def lone_host(folder: Path, agent: Agent) -> AsyncIterator[Host]:
    """A host with this agent alone, and its log in the folder."""
    log = await SqliteLog.open(folder / "log.db")
    try:
        host = await build_host(log, [agent])
        try:
            yield host
        finally:
            await host.close()
    finally:
        await log.close()


async def try_agent(agent: Agent, model: str | None = None, seconds: float = SECONDS) -> Trial:
    """Allow everything that the agent asks for, in a folder that is deleted afterwards."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="portico-trial-", ignore_cleanup_errors=True) as place:
        work = Path(place) / "work"
        work.mkdir()
        async with lone_host(Path(place), agent) as host:
            turn, problem = await _play(host, agent.id, model, work, seconds)
    spent = round(time.monotonic() - began, 1)
    parts = turn.parts if turn is not None else []
    tools = [part.tool for part in parts if isinstance(part, CallPart)]
    said = "".join(part.text for part in parts if isinstance(part, TextPart) and part.kind == "text").strip()
    return Trial(agent.id, not problem, spent, tools, said[:500], problem)


async def _play(host: Host, agent: str, model: str | None, work: Path, seconds: float) -> tuple[TurnState | None, str]:
    """The turn, and what was wrong with it."""
    word = f"word-{secrets.token_hex(4)}"
    turn: TurnState | None = None
    try:
        async with asyncio.timeout(seconds):
            session = await host.start(
                by="trial", agent=agent, model=model, cwd=str(work), config={"approvals": "allow"}
            )
            turn = await session.wait(await session.send(Message(PROMPT.format(word=word)), by="trial"))
    except TimeoutError:
        return None, f"It did not finish within {seconds:g} seconds."
    except PorticoError as error:
        return None, error.message
    return turn, _judge(turn, work / FILE, word)


def _judge(turn: TurnState, file: Path, word: str) -> str:
    if turn.outcome != "completed":
        return turn.error.message if turn.error is not None else f"The turn ended as {turn.outcome}."
    if not any(isinstance(part, CallPart) for part in turn.parts):
        return "It answered and called no tool: its model cannot use tools, or it has none."
    try:
        written = file.read_text("utf-8", "replace")
    except OSError:
        return f"It called a tool, and did not write the file {FILE}."
    return "" if word in written else f"It wrote {FILE}, but not the word that it was told."

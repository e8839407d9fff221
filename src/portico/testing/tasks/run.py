"""Plays one task with one agent on a host of its own: everything is allowed, in a folder that is gone afterwards."""

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from portico.agents.agent import Agent, Message
from portico.kernel.errors import PorticoError
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.session import Session
from portico.kernel.state import CallPart, QuestionPart, SessionState, TextPart, TurnState
from portico.server.compose import build_host
from portico.testing.tasks.task import BenchTask, judge, lay_out


class Played(Struct, frozen=True):
    agent: str
    task: str
    kind: str
    problem: str
    """Empty: the check passed."""
    seconds: float
    calls: int
    input: int | None
    output: int | None
    """Tokens as the agent told them; None: it told none."""
    requests: int | None = None
    sent: int | None = None
    """What the scripted model was asked, and in how many bytes: the same measure for every agent."""

    @property
    def ok(self) -> bool:
        return not self.problem


async def play(task: BenchTask, make: Callable[[], Agent], model: str | None, seconds: float) -> Played:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="portico-task-", ignore_cleanup_errors=True) as place:
        work = Path(place) / "work"
        work.mkdir()
        lay_out(task, work)
        agent = make()
        turn, problem = await _turn(task, agent, model, Path(place), seconds)
        said = said_in(turn) if turn is not None else ""
        problem = problem or judge(task, work, said)
    usage = turn.usage if turn is not None else None
    calls = sum(isinstance(part, CallPart) for part in turn.parts) if turn is not None else 0
    tokens = (usage.input, usage.output) if usage is not None else (None, None)
    return Played(agent.id, task.name, task.kind, problem, round(time.monotonic() - began, 1), calls, *tokens)


async def _turn(
    task: BenchTask, agent: Agent, model: str | None, place: Path, seconds: float
) -> tuple[TurnState | None, str]:
    """The turn, and why it did not end well."""
    log = await SqliteLog.open(place / "log.db")
    try:
        host = await build_host(log, [agent])
        try:
            async with asyncio.timeout(seconds):
                session = await host.start(by="tasks", agent=agent.id, model=model, cwd=str(place / "work"))
                for prompt in filter(None, (task.prompt, task.then)):
                    turn = await until_ended(session, await session.send(Message(prompt), by="tasks"))
                    if turn.outcome != "completed":
                        break
        except TimeoutError:
            return None, f"not finished within {seconds:g} s"
        except PorticoError as error:
            return None, error.message
        finally:
            await host.close()
    finally:
        await log.close()
    if turn.outcome != "completed":
        return turn, turn.error.message if turn.error is not None else f"the turn ended as {turn.outcome}"
    return turn, ""


async def until_ended(session: Session, turn: str) -> TurnState:
    """All calls are allowed, and questions are declined."""
    while True:
        state = await session.wait_until(
            lambda state: bool(_asks(state) or _questions(state)) or _outcome(state, turn) is not None
        )
        for approval in _asks(state)[:1]:
            await session.approvals.answer(approval, by="tasks", allow=True)
        for question in _questions(state)[:1]:
            await session.questions.answer(question, "decline", by="tasks")
        if _outcome(state, turn) is not None:
            return await session.wait(turn)


def _asks(state: SessionState) -> list[str]:
    parts = state.active.parts if state.active is not None else []
    return [part.approval.id for part in parts if isinstance(part, CallPart) and part.approval is not None]


def _questions(state: SessionState) -> list[str]:
    parts = state.active.parts if state.active is not None else []
    return [part.id for part in parts if isinstance(part, QuestionPart) and not part.done]


def _outcome(state: SessionState, turn: str) -> str | None:
    found = state.turn(turn)
    return found.outcome if found is not None else None


def said_in(turn: TurnState) -> str:
    return "\n".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "text")

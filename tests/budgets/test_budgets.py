"""Budgets: told at 80 %, asked at 100 %, and what a person says then is what happens, for every kind of agent."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.agents.agent import AgentContext, Message
from portico.agents.loop import LoopAgent
from portico.features.budgets.budget import Spent, most_used, raised
from portico.features.budgets.budgets import Budgets
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, Forbidden
from portico.kernel.events import Budget
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import QuestionPart, SessionState, TurnState
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.model import ModelServer, Script
from portico.testing.play import PlayAgent
from tests.agents.loop.conftest import texts
from tests.features import feature

ADA = c.Caller("t1", "ada", frozenset(c.SCOPES))


# -- how much --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "spent", "share", "words"),
    [
        (Budget(dollars=0.5), Spent(dollars=0.41), 0.82, "$0.41 of $0.50"),
        (Budget(dollars=0.5), Spent(dollars=0.5, estimated=True), 1.0, "about $0.50 of $0.50"),
        (Budget(tokens=1000, dollars=9), Spent(tokens=1500, dollars=1), 1.5, "1,500 of 1,000 tokens"),
        (Budget(minutes=10), Spent(minutes=5), 0.5, "5 of 10 minutes"),
        (Budget(calls=4), Spent(calls=4), 1.0, "4 of 4 tool calls"),
        (Budget(dollars=0.8), Spent(dollars=sum([0.1] * 8)), 1.0, "$0.80 of $0.80"),  # 0.7999999999999999
        (Budget(turns=5), Spent(turns=5), 0.8, "5 of 5 turns"),  # the fifth of five is within
        (Budget(turns=5), Spent(turns=6), 1.0, "6 of 5 turns"),
    ],
)
def test_the_bound_that_is_used_most_counts(budget: Budget, spent: Spent, share: float, words: str) -> None:
    use = most_used(budget, spent)
    assert use is not None
    assert (round(use.share, 6), use.words) == (share, words)


def test_without_bounds_nothing_counts() -> None:
    assert most_used(Budget(), Spent(dollars=100)) is None
    assert raised(Budget(tokens=10), {"tokens": 10.0, "dollars": 5}) == Budget(tokens=20)


# -- the built-in agent ----------------------------------------------------------------------------------------


class Desk:
    def __init__(self, opener: HostOpener, server: ModelServer, folder: Path) -> None:
        self._opener, self.server, self._folder = opener, server, folder

    async def open(self, **rules: Budget) -> Host:
        environ = {"OPENAI_BASE_URL": f"{self.server.url}/v1", "OPENAI_API_KEY": "k"}
        self.host = await self._opener(LoopAgent(AgentContext(self._folder / "home", {}), environ))
        feature(self.host, Budgets).rules = rules
        return self.host

    async def start(self, **config: Any) -> Session:
        return await self.host.start(by="test", agent="loop", cwd=str(self._folder), config=config)


@pytest.fixture
def cost() -> float:
    """In dollars, of each call, as the endpoint tells it; 0: it does not."""
    return 0.0


@pytest.fixture
async def desk(open_host: HostOpener, tmp_path: Path, cost: float) -> AsyncIterator[Desk]:
    """A model whose every call is one more tool call, and costs 100 tokens."""
    names = [f"{number}.txt" for number in range(10)]
    for name in names:  # the same result again and again is a question of its own
        (tmp_path / name).write_text(name)
    used = {"usage": {"input": 90, "output": 10, "cost": cost}}
    calls = [{"calls": [{"name": "readFiles", "args": {"files": [name]}}], **used} for name in names]
    steps = [*calls, {"say": "Done.", **used}]
    script = {"rules": [{"steps": steps}], "models": ["gpt-4o", "mystery"]}
    async with ModelServer(msgspec.convert(script, Script)) as server:
        yield Desk(open_host, server, tmp_path)


async def asked(session: Session) -> QuestionPart:
    state = await session.wait_until(lambda state: _question(state) is not None)
    found = _question(state)
    assert found is not None
    return found


def _question(state: SessionState) -> QuestionPart | None:
    parts = state.active.parts if state.active is not None else []
    return next((part for part in parts if isinstance(part, QuestionPart) and part.response is None), None)


async def answer(session: Session, choice: str) -> None:
    question = await asked(session)
    await session.questions.answer(question.id, "accept", {"answer": choice}, by="token:ada")


async def ended(session: Session, turn: str) -> TurnState:
    async with asyncio.timeout(30):
        return await session.wait(turn)


async def test_a_spent_budget_pauses_before_the_next_call_of_the_model(desk: Desk) -> None:
    """500 tokens at 100 a call: asked after the fifth, not after the tenth; nothing more is sent until an answer."""
    await desk.open(session=Budget(tokens=500))
    session = await desk.start()
    turn = await session.send(Message("go"), by="test")
    question = await asked(session)
    assert question.text == "The budget of this session is spent: 500 of 500 tokens. The agent waits."
    assert desk.server.total == 5
    await answer(session, "stop")
    found = await ended(session, turn)
    assert (found.outcome, found.error and found.error.code) == ("failed", "budget_spent")
    assert "Stopped by token:ada" in (found.error.message if found.error else "")
    assert "80% of the budget of this session is spent: 400 of 500 tokens." in texts(found, "notice")
    assert desk.server.total == 5


@pytest.mark.parametrize("cost", [0.1])
async def test_half_a_dollar_is_spent_by_the_fifth_call_of_ten_cents(desk: Desk) -> None:
    """By what the endpoint says that a call costs, not by a list."""
    await desk.open(session=Budget(dollars=0.5))
    session = await desk.start()
    turn = await session.send(Message("go", model="mystery"), by="test")
    assert (await asked(session)).text.startswith("The budget of this session is spent: $0.50 of $0.50.")
    assert desk.server.total == 5
    await answer(session, "stop")
    found = await ended(session, turn)
    assert (found.outcome, desk.server.total) == ("failed", 5)
    assert "80% of the budget of this session is spent: $0.40 of $0.50." in texts(found, "notice")


async def test_a_raise_goes_on_to_the_next_bound_and_holds_over_a_restart(desk: Desk) -> None:
    await desk.open(session=Budget(tokens=500))
    session = await desk.start()
    turn = await session.send(Message("go"), by="test")
    await answer(session, "raise")
    await session.wait_until(lambda state: (q := _question(state)) is not None and "1,000 of 1,000" in q.text)
    assert desk.server.total == 10
    await desk.open(session=Budget(tokens=500))
    session = await desk.host.get(session.id)
    assert session.state.turns[0].outcome == "interrupted"
    await session.do(c.ResumeTurn(session=session.id), "test")
    question = await asked(session)
    assert "1,000 of 1,000 tokens" in question.text  # not 500: what was added stays
    await answer(session, "finish")
    assert (await ended(session, turn)).outcome == "completed"


async def test_a_turn_may_be_let_finish(desk: Desk) -> None:
    await desk.open(turn=Budget(calls=2))
    session = await desk.start()
    turn = await session.send(Message("go"), by="test")
    await answer(session, "finish")
    found = await ended(session, turn)
    assert (found.outcome, desk.server.total) == ("completed", 11)


@pytest.mark.parametrize("rules", [{"day": Budget(tokens=250)}, {"month": Budget(tokens=250)}])
async def test_a_day_and_a_month_count_all_sessions(desk: Desk, rules: dict[str, Budget]) -> None:
    await desk.open()
    first = await desk.start()
    await ended(first, await first.send(Message("go"), by="test"))
    feature(desk.host, Budgets).rules = rules
    second = await desk.start()
    turn = await second.send(Message("go"), by="test")
    before = desk.server.total
    assert "on this host is spent: 1,100 of 250 tokens" in (await asked(second)).text
    assert desk.server.total == before  # not one call more
    await answer(second, "stop")
    assert (await ended(second, turn)).outcome == "failed"


async def test_dollars_are_by_list_prices_and_unknown_ones_are_said(desk: Desk) -> None:
    await desk.open(session=Budget(dollars=0.0005))
    session = await desk.start()
    turn = await session.send(Message("go", model="gpt-4o"), by="test")
    assert "about $0.00 of $0.00" in (await asked(session)).text
    assert 0 < desk.server.total < 6
    await answer(session, "stop")
    await ended(session, turn)
    other = await desk.start()
    found = await ended(other, await other.send(Message("go", model="mystery"), by="test"))
    assert found.outcome == "completed"
    assert "What mystery costs is unknown" in texts(found, "notice")


# -- other agents ----------------------------------------------------------------------------------------------


async def test_an_agent_that_asks_nothing_is_held_when_it_reports(open_host: HostOpener, tmp_path: Path) -> None:
    told = asyncio.Event()

    async def play(message: Message, turn: Any) -> None:
        turn.usage(input=1000, output=10)
        told.set()
        await asyncio.Event().wait()

    host = await open_host(PlayAgent(play))
    feature(host, Budgets).rules = {"session": Budget(tokens=500)}
    session = await host.start(by="test", cwd=str(tmp_path))
    turn = await session.send(Message("go"), by="test")
    await told.wait()
    words = "The agent works on meanwhile: it waits only before a tool that it asks about."
    assert (await asked(session)).text == f"The budget of this session is spent: 1,010 of 500 tokens. {words}"
    await answer(session, "stop")
    found = await ended(session, turn)
    assert (found.outcome, found.cancelled_by if hasattr(found, "cancelled_by") else "budget") == (
        "cancelled",
        "budget",
    )
    assert "Stopped by token:ada" in texts(found, "notice")


async def test_a_tool_waits_for_the_answer(open_host: HostOpener, tmp_path: Path) -> None:
    decisions: list[bool] = []

    async def play(message: Message, turn: Any) -> None:
        turn.usage(input=1000, output=10)
        decisions.append((await turn.tool("read", kind="read").approve("read", path="a.txt")).allowed)

    host = await open_host(PlayAgent(play))
    feature(host, Budgets).rules = {"session": Budget(tokens=500)}
    session = await host.start(by="test", cwd=str(tmp_path), config={"approvals": "allow"})
    turn = await session.send(Message("go"), by="test")
    await asked(session)
    assert decisions == []
    await answer(session, "raise")
    await answer(session, "finish")
    await ended(session, turn)
    assert decisions == [True]


async def test_calls_are_counted_that_nobody_asks_about(open_host: HostOpener, tmp_path: Path) -> None:
    """An agent that runs its tools without asking, and tells no usage, was never held to a number of calls."""

    async def play(message: Message, turn: Any) -> None:
        for _ in range(3):
            await turn.tool("read", kind="read").end()
        await asyncio.Event().wait()

    host = await open_host(PlayAgent(play))
    feature(host, Budgets).rules = {"turn": Budget(calls=3)}
    session = await host.start(by="test", cwd=str(tmp_path))
    turn = await session.send(Message("go"), by="test")
    assert "3 of 3 tool calls" in (await asked(session)).text
    await answer(session, "stop")
    assert (await ended(session, turn)).outcome == "cancelled"


async def test_minutes_pass_also_while_an_agent_is_silent(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock
) -> None:
    """Nobody looked at them before the agent reported something; and the night in which the question waited counted,
    so that a raise led to the next question at once."""
    on, told = asyncio.Event(), asyncio.Event()

    async def play(message: Message, turn: Any) -> None:
        told.set()
        await on.wait()

    host = await open_host(PlayAgent(play), clock=clock)
    feature(host, Budgets).rules = {"turn": Budget(minutes=20)}
    session = await host.start(by="test", cwd=str(tmp_path))
    turn = await session.send(Message("go"), by="test")
    await told.wait()
    clock.advance(20 * 60)
    assert "20 of 20 minutes" in (await asked(session)).text
    clock.advance(8 * 3600)
    await answer(session, "raise")
    await session.wait_until(lambda state: _question(state) is None)
    clock.advance(10 * 60)
    on.set()
    found = await ended(session, turn)
    assert (found.outcome, found.worked(host.now())) == ("completed", 30 * 60_000)
    assert len([part for part in found.parts if isinstance(part, QuestionPart)]) == 1


# -- who may -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "budget",
    [5, {"dollar": 1}, {"dollars": 0}, {"dollars": -1}, {"tokens": 1.5}, {"turns": "many"}],
)
async def test_a_wrong_budget_is_named(host: Host, tmp_path: Path, budget: Any) -> None:
    with pytest.raises(BadRequest, match=r"config\.budget") as found:
        await host.do(c.StartSession(cwd=str(tmp_path), config={"budget": budget}), ADA)
    assert found.value.field == "config.budget"


async def test_giving_a_budget_needs_drive_and_changing_it_approve(host: Host, tmp_path: Path) -> None:
    host.workspaces.append(tmp_path)
    bob = c.Caller("t2", "bob", frozenset({"read", "drive"}))
    started = await host.do(c.StartSession(cwd=str(tmp_path), config={"budget": {"dollars": 2}}), bob)
    for values, replace in (({"budget": {"dollars": 9}}, False), ({"budget": None}, False)):
        with pytest.raises(Forbidden, match="approve"):
            await host.do(c.ConfigureSession(session=started.id, values=values, replace=replace), bob)
    await host.do(c.ConfigureSession(session=started.id, values={}, replace=True), bob)
    session = await host.get(started.id)
    assert session.state.config["budget"] == {"dollars": 2}  # leaving it out drops nothing
    await host.do(c.ConfigureSession(session=started.id, values={"budget": {"dollars": 9}}), ADA)
    assert (await host.get(started.id)).state.config["budget"] == {"dollars": 9}


async def test_a_sessions_own_budget_holds_besides_the_hosts(desk: Desk) -> None:
    await desk.open(session=Budget(tokens=100_000))
    session = await desk.start(budget={"tokens": 200})
    turn = await session.send(Message("go"), by="test")
    assert "200 of 200 tokens" in (await asked(session)).text
    await answer(session, "stop")
    await ended(session, turn)

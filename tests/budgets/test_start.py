"""A turn does not start while a budget that it counts toward is exhausted: every kind of agent, bound, scope and way to
start. The question belongs to the budget: it is asked once, and its answer applies to everything that waits."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.agents.agent import AgentContext, Message
from portico.agents.loop import LoopAgent
from portico.agents.script import Provider
from portico.agents.script import parse as parse_script
from portico.agents.scripted import ScriptedAgent
from portico.features.budgets.budgets import HELD, Budgets
from portico.features.budgets.commands import AnswerBudget
from portico.features.budgets.ledger import rules_of
from portico.features.budgets.question import AskedBudget, BudgetQuestion
from portico.features.budgets.questions import UNANSWERED
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.errors import AgentError, BadRequest, BudgetSpent, Forbidden, NotFound
from portico.kernel.events import Budget
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import QuestionPart, SessionState, TextPart, TurnState
from portico.server.settings import BudgetSettings, PersonBudget
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.model import ModelServer, Script
from portico.testing.play import PlayAgent
from tests.agents.acp_agent import fake_agent, steps
from tests.features import feature

ADA = c.Caller("t1", "ci", frozenset(c.SCOPES))
BY_SCOPE: dict[str, BudgetSettings] = {
    "session": BudgetSettings(session=Budget(tokens=150)),
    "day": BudgetSettings(day=Budget(tokens=150)),
    "month": BudgetSettings(month=Budget(tokens=150)),
    "every person": BudgetSettings(person_day=Budget(tokens=150)),
    "a token": BudgetSettings(people={"token:ci": PersonBudget(month=Budget(tokens=150))}),
}
USAGE = {"inputTokens": 90, "outputTokens": 10}
MESSAGES = {"acp:fake": steps(["text", "ok"], ["reply", {"usage": USAGE}])}
"""What makes an agent spend 100 tokens in a turn; `go` for the others."""


def question(session: Session) -> QuestionPart | None:
    active = session.state.active if session.loaded else None
    parts = active.parts if active is not None else []
    return next((part for part in parts if isinstance(part, QuestionPart) and part.response is None), None)


def questions(host: Host) -> list[QuestionPart]:
    """All that wait for a person on this host."""
    return [found for session in host.catalogue.live() if (found := question(session)) is not None]


class Desk:
    """Counts the turns whose agent has started. Each costs 100 tokens, a dollar, a minute and a tool call."""

    def __init__(self, opener: HostOpener, folder: Path, clock: FakeClock) -> None:
        self._opener, self.folder, self.clock, self.played = opener, folder, clock, list[str]()
        self.agent: Any = None

    async def open(self, settings: BudgetSettings, *agents: Any, steer: bool = False) -> Host:
        play = PlayAgent(self.play, steer=steer)
        real = agents and agents[0] is not self.agent  # its own processes know no other clock
        self.host = await self._opener(*(agents or (play,)), clock=None if real else self.clock)
        feature(self.host, Budgets).rules = rules_of(settings)
        if self.folder not in self.host.workspaces:
            self.host.workspaces.append(self.folder)
        return self.host

    async def play(self, message: Message, turn: Any) -> None:
        self.played.append(message.text)
        self.clock.advance(60)
        turn.usage(input=90, output=10, cost=1.0)
        await turn.tool("look", kind="read").end()

    async def start(self, agent: str | None = None, **config: Any) -> Session:
        started = await self.host.do(c.StartSession(cwd=str(self.folder), agent=agent, config=config), ADA)
        return await self.host.get(started.id)

    async def send(self, session: Session, text: str = "go") -> str:
        begun: c.TurnBegun = await self.host.do(c.SendMessage(session=session.id, text=text), ADA)
        return begun.turn

    async def run(self, session: Session, text: str = "go") -> TurnState:
        return await self.ended(session, await self.send(session, text))

    async def ended(self, session: Session, turn: str) -> TurnState:
        async with asyncio.timeout(20):
            return await session.wait(turn)

    async def asked(self, session: Session) -> QuestionPart:
        async with asyncio.timeout(20):
            await session.wait_until(lambda _: question(session) is not None)
        found = question(session)
        assert found is not None
        return found

    async def waits(self, session: Session) -> None:
        """Until its turn waits for the answer, in whatever session it is asked, or has ended."""

        def settled(state: SessionState) -> bool:
            parts = state.active.parts if state.active is not None else []
            return state.active is None or any(isinstance(part, QuestionPart | TextPart) for part in parts)

        async with asyncio.timeout(20):
            await session.wait_until(settled)

    async def answer(self, choice: str, **more: Any) -> None:
        [found] = questions(self.host)
        command = c.AnswerQuestion(question=found.id, response="accept", answers={"answer": choice}, **more)
        await self.host.do(command, ADA)


@pytest.fixture
def desk(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> Desk:
    return Desk(open_host, tmp_path, clock)


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    script = {"rules": [{"steps": [{"say": "ok", "usage": {"input": 90, "output": 10}}]}], "models": ["gpt-4o"]}
    async with ModelServer(msgspec.convert(script, Script)) as server:
        yield server


def agent_of(kind: str, desk: Desk, model: ModelServer) -> Any:
    if kind == "loop":
        environ = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "k"}
        return LoopAgent(AgentContext(desk.folder / "home", {}), environ)
    if kind == "scripted":
        rules = "rules: [{match: go, steps: [{do: usage, input: 90, output: 10}, {do: say, text: ok}]}]"
        return ScriptedAgent(Provider("scripted", "Scripted"), parse_script(rules, "rules").rules)
    return fake_agent(desk.folder) if kind == "acp:fake" else PlayAgent(desk.play)


@pytest.mark.parametrize("scope", BY_SCOPE)
@pytest.mark.parametrize("kind", ["loop", "acp:fake", "scripted", "play"])
async def test_every_kind_of_agent_waits_in_every_scope(desk: Desk, model: ModelServer, kind: str, scope: str) -> None:
    """Bug: an exhausted budget stopped only `loop`. 10 of 10 turns of an ACP agent completed without a question."""
    await desk.open(BY_SCOPE[scope], agent_of(kind, desk, model))
    session, text = await desk.start(kind), MESSAGES.get(kind, "go")
    for _ in range(2):
        assert (await desk.run(session, text)).outcome == "completed"
    turn = await desk.send(session, text)
    asked = await desk.asked(session)
    assert asked.text.endswith("is spent: 200 of 150 tokens. The agent starts when it is answered.")
    waits = session.state.turn(turn)
    assert waits is not None
    assert waits.usage is None  # nothing was sent to the agent
    await desk.answer("Raise it by 150 tokens")
    assert (await desk.ended(session, turn)).outcome == "completed"


BOUNDS = {
    **dict.fromkeys(("session", "config"), ("dollars", "tokens", "minutes", "turns", "calls")),
    **dict.fromkeys(("day", "month", "person_day", "person_month"), ("dollars", "tokens", "turns")),
}


@pytest.mark.parametrize(("scope", "bound"), [(scope, bound) for scope, found in BOUNDS.items() for bound in found])
async def test_every_bound_holds_the_next_turn(desk: Desk, scope: str, bound: str) -> None:
    budget = Budget(**{bound: {"tokens": 200}.get(bound, 2)})
    await desk.open(msgspec.convert({} if scope == "config" else {scope: budget}, BudgetSettings))
    session = await desk.start(budget=msgspec.to_builtins(budget)) if scope == "config" else await desk.start()
    for _ in range(2):
        assert (await desk.run(session)).outcome == "completed"
    turn = await desk.send(session)
    await desk.asked(session)
    assert len(desk.played) == 2
    await desk.answer("stop")
    ended = await desk.ended(session, turn)
    assert (ended.outcome, ended.error and ended.error.code) == ("failed", BudgetSpent.code)
    assert len(desk.played) == 2


async def test_a_question_that_the_end_of_a_turn_leaves_open_holds_the_next_turn(desk: Desk) -> None:
    """Bug: the turn continued after it reported its usage, its end cancelled the question, and the next one started."""
    release = asyncio.Event()

    async def play(message: Message, turn: Any) -> None:
        turn.usage(input=1000)
        await release.wait()
        desk.played.append(message.text)

    await desk.open(BudgetSettings(session=Budget(tokens=500)), PlayAgent(play))
    session = await desk.start()
    turn = await desk.send(session, "one")
    await desk.asked(session)
    release.set()
    assert (await desk.ended(session, turn)).outcome == "completed"
    turn = await desk.send(session, "two")
    assert "The agent starts when it is answered." in (await desk.asked(session)).text
    assert desk.played == ["one"]
    await desk.answer("finish")
    assert ((await desk.ended(session, turn)).outcome, desk.played) == ("completed", ["one", "two"])


ENDS = ("completed", "failed", "cancelled")


async def left_open(desk: Desk, settings: BudgetSettings, ends: str = "completed") -> Session:
    """A session whose turn reached the budget, was asked about it, and has ended without an answer."""
    release = asyncio.Event()

    async def play(message: Message, turn: Any) -> None:
        desk.played.append(message.text)
        if message.text == "one":
            turn.usage(input=900)
            await release.wait()
            if ends == "failed":
                raise AgentError("broken")

    desk.agent = PlayAgent(play)
    await desk.open(settings, desk.agent)
    session = await desk.start()
    turn = await desk.send(session, "one")
    await desk.asked(session)
    if ends == "cancelled":
        await session.cancel(by="test")
    release.set()
    assert (await desk.ended(session, turn)).outcome == ends
    return session


OUTLIVE: dict[str, BudgetSettings] = {
    "session": BudgetSettings(session=Budget(tokens=500)),
    "day": BudgetSettings(day=Budget(tokens=500)),
    "month": BudgetSettings(month=Budget(tokens=500)),
    "token": BudgetSettings(people={"token:ci": PersonBudget(day=Budget(tokens=500))}),
}


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("scope", OUTLIVE)
@pytest.mark.parametrize("restart", [False, True])
async def test_the_question_outlives_its_turn_and_is_answered_without_one(
    desk: Desk, scope: str, ends: str, restart: bool
) -> None:
    """Bug: a question that was asked during a turn was closed with the turn."""
    session = await left_open(desk, OUTLIVE[scope], ends)
    if restart:
        await desk.open(OUTLIVE[scope], desk.agent)
        session = await desk.host.get(session.id)
    [found] = feature(desk.host, Budgets).unanswered(ADA)
    assert (found.session, found.options) == (session.id, ["Raise it by 500 tokens", "Let this turn finish", "Stop"])
    assert found.text.endswith("is spent: 900 of 500 tokens.")
    for wrong in ("yes", "finish"):  # no turn waits that could finish
        with pytest.raises(BadRequest):
            await desk.host.do(AnswerBudget(budget=found.budget, answer=wrong), ADA)
    await desk.host.do(AnswerBudget(budget=found.budget, answer="Raise it by 500 tokens"), ADA)
    assert feature(desk.host, Budgets).unanswered(ADA) == []
    assert (await desk.run(session, "two")).outcome == "completed"
    assert desk.played == ["one", "two"]


async def test_the_next_turn_shows_the_open_question_and_its_key_answers_the_card(desk: Desk) -> None:
    session = await left_open(desk, OUTLIVE["session"])
    since = feature(desk.host, Budgets).unanswered(ADA)[0].since
    turn = await desk.send(session, "two")
    await desk.asked(session)
    assert feature(desk.host, Budgets).unanswered(ADA) == []  # it is in the inbox as a card of the turn
    await session.cancel(by="test")
    await desk.ended(session, turn)
    [found] = feature(desk.host, Budgets).unanswered(ADA)
    assert found.since == since, "it is the same question"
    turn = await desk.send(session, "three")
    await desk.asked(session)
    await desk.host.do(AnswerBudget(budget=found.budget, answer="finish"), ADA)
    assert ((await desk.ended(session, turn)).outcome, desk.played) == ("completed", ["one", "three"])
    assert feature(desk.host, Budgets).unanswered(ADA) == []


@pytest.mark.parametrize("how", ["stop", "settings", "deleted", "period", "config"])
async def test_an_open_question_ends_with_what_it_is_about(desk: Desk, how: str) -> None:
    session = await left_open(desk, OUTLIVE["day" if how == "period" else "session"])
    budgets = feature(desk.host, Budgets)
    [found] = budgets.unanswered(ADA)
    if how == "stop":
        await desk.host.do(AnswerBudget(budget=found.budget, answer="stop"), ADA)
    elif how == "settings":
        budgets.rules = rules_of(BudgetSettings(session=Budget(tokens=5000)))
    elif how == "deleted":
        await desk.host.do(c.DeleteSession(session=session.id), ADA)
    elif how == "config":
        budgets._rules = rules_of(BudgetSettings(session=Budget(tokens=5000)))
        await desk.run(session, "two")
    else:
        desk.host.clock.advance(86_400)  # type: ignore[attr-defined]
        await budgets.sweep()
    assert budgets.unanswered(ADA) == []
    await desk.host.log.flush()
    assert await desk.host.log.get_kv("host", UNANSWERED) is None


async def test_who_may_not_see_the_session_neither_sees_nor_answers(desk: Desk) -> None:
    await desk.open(OUTLIVE["session"])
    bob, eve = (
        c.Caller(f"t-{name}", name, frozenset({"read", "drive", "approve"}), person=name) for name in ("bob", "eve")
    )
    started = await desk.host.do(c.StartSession(cwd=str(desk.folder)), bob)
    asked = AskedBudget(f"session/{started.id}", "this session", "", "tokens", 500, "1 of 1", started.id, 1)
    shared = AskedBudget("day/2026-01-01", "today", "", "tokens", 500, "1 of 1", started.id, 2)
    budgets = feature(desk.host, Budgets)
    for each in (asked, shared):
        budgets._questions.open[each.key] = BudgetQuestion(each)
    assert (len(budgets.unanswered(bob)), budgets.unanswered(eve)) == (2, [])
    with pytest.raises(NotFound):
        await desk.host.do(AnswerBudget(budget=asked.key, answer="raise"), eve)
    with pytest.raises(Forbidden, match="day or a month"):
        await desk.host.do(AnswerBudget(budget=shared.key, answer="raise"), bob)
    await desk.host.do(AnswerBudget(budget=asked.key, answer="raise"), bob)


WAYS = [
    (way, scope, bound)
    for way in ("queue", "fork", "parallel", "steer")
    for scope, bounds in BOUNDS.items()
    for bound in bounds
    if not (way == "parallel" and scope in ("session", "config"))  # another session has its own
    if not (way == "fork" and scope == "config")  # the copy is not given the budget
]


@pytest.mark.parametrize(("way", "scope", "bound"), WAYS)
async def test_no_way_starts_a_turn_while_the_budget_is_exhausted(desk: Desk, way: str, scope: str, bound: str) -> None:
    """Every way to start × every scope × every bound: the agent gets nothing, and one question is open."""
    budget = Budget(**{bound: {"tokens": 100}.get(bound, 1)})
    await desk.open(msgspec.convert({} if scope == "config" else {scope: budget}, BudgetSettings), steer=True)
    session = await desk.start(budget=msgspec.to_builtins(budget)) if scope == "config" else await desk.start()
    assert (await desk.run(session)).outcome == "completed"
    held = await desk.send(session, "held")
    await desk.asked(session)
    other = session
    if way == "queue":
        await session.queue.add(Message("queued"), by="test")
        await session.cancel(by="test")
        await desk.ended(session, held)
    elif way == "steer":
        assert await session.queue.steer(Message("steered"), by="test") is False
    elif way == "fork":
        await session.cancel(by="test")
        other = await desk.host.fork(session.id, by="test", turn=session.state.turns[0].id)
        await desk.send(other, "forked")
    else:
        other = await desk.start()
        await desk.send(other, "parallel")
    await desk.waits(other)
    assert (desk.played, len(questions(desk.host))) == (["go"], 1)


SPENT = BudgetSettings(session=Budget(tokens=100))


async def exhausted(desk: Desk, settings: BudgetSettings = SPENT, **how: Any) -> tuple[Session, str]:
    """A session whose second turn waits to start."""
    await desk.open(settings, **how)
    session = await desk.start()
    await desk.run(session, "first")
    turn = await desk.send(session, "second")
    await desk.asked(session)
    return session, turn


async def test_what_is_queued_behind_it_waits_too_and_runs_after_the_answer(desk: Desk) -> None:
    session, _ = await exhausted(desk)
    await session.queue.add(Message("third"), by="test")
    await desk.answer("raise")
    assert "200 of 200 tokens" in (await desk.asked(session)).text  # the third, once
    assert desk.played == ["first", "second"]
    await desk.answer("raise")
    await session.wait_until(lambda state: len(state.turns) == 3 and state.active is None)
    assert desk.played == ["first", "second", "third"]


async def test_a_steered_message_does_not_reach_an_agent_whose_turn_waits(desk: Desk) -> None:
    session, turn = await exhausted(desk, steer=True)
    assert await session.queue.steer(Message("now"), by="test") is False
    assert desk.played == ["first"]
    await desk.answer("stop")
    assert (await desk.ended(session, turn)).outcome == "failed"


async def test_a_fork_of_an_exhausted_session_waits(desk: Desk) -> None:
    session, _ = await exhausted(desk)
    await session.cancel(by="test")
    fork = await desk.host.fork(session.id, by="test", turn=session.state.turns[0].id)
    await desk.send(fork, "forked")
    await desk.asked(fork)
    assert desk.played == ["first"]


async def test_a_sub_agent_counts_to_its_parent_and_holds_its_next_turn(desk: Desk) -> None:
    async def play(message: Message, turn: Any) -> None:
        child = await turn.spawn("look")
        child.usage(input=100)
        desk.played.append("child")
        await child.finish()

    await desk.open(BudgetSettings(session=Budget(tokens=100)), PlayAgent(play))
    session = await desk.start()
    await desk.run(session)
    await desk.send(session)
    assert "100 of 100 tokens" in (await desk.asked(session)).text
    assert desk.played == ["child"]


@pytest.mark.parametrize(("choice", "outcome", "played"), [("finish", "completed", 4), ("stop", "failed", 1)])
async def test_parallel_sessions_share_one_question_and_its_answer(
    desk: Desk, choice: str, outcome: str, played: int
) -> None:
    await desk.open(BudgetSettings(day=Budget(tokens=100)))
    await desk.run(await desk.start())
    sessions = [await desk.start() for _ in range(3)]
    turns = [await desk.send(session) for session in sessions]
    for session in sessions:
        await desk.waits(session)
    assert len(questions(desk.host)) == 1
    assert desk.played == ["go"]
    await desk.answer(choice)
    ended = [await desk.ended(session, turn) for session, turn in zip(sessions, turns, strict=True)]
    assert [each.outcome for each in ended] == [outcome] * 3
    assert len(desk.played) == played


async def test_turns_that_start_at_the_same_time_are_counted_one_by_one(desk: Desk) -> None:
    await desk.open(BudgetSettings(day=Budget(turns=3)))
    sessions = [await desk.start() for _ in range(5)]
    await asyncio.gather(*(desk.send(session) for session in sessions))
    for session in sessions:
        await desk.waits(session)
    assert (len(desk.played), len(questions(desk.host))) == (3, 1)


async def test_the_question_moves_on_when_its_turn_is_cancelled(desk: Desk) -> None:
    await desk.open(BudgetSettings(day=Budget(tokens=100)))
    await desk.run(await desk.start())
    first, second = await desk.start(), await desk.start()
    await desk.send(first)
    await desk.asked(first)
    turn = await desk.send(second)
    await desk.waits(second)
    await first.cancel(by="test")
    await desk.asked(second)
    assert len(questions(desk.host)) == 1
    await desk.answer("raise")
    assert (await desk.ended(second, turn)).outcome == "completed"


async def test_a_turn_that_is_cancelled_while_it_waits_ends_at_once(desk: Desk) -> None:
    session, turn = await exhausted(desk)
    await session.cancel(by="ada")
    ended = await desk.ended(session, turn)
    assert (ended.outcome, desk.played, questions(desk.host)) == ("cancelled", ["first"], [])


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("answered", [False, True])
async def test_a_turn_that_waits_to_start_waits_again_after_a_restart(
    desk: Desk, open_host: HostOpener, killed: bool, answered: bool
) -> None:
    """With the same question. An answer that was given before the kill counts, also if nothing was done with it."""
    session, turn = await exhausted(desk)
    before = question(session)
    assert before is not None
    if answered:
        given = e.QuestionAnswered(
            turn=turn, question=before.id, response="accept", answers={"answer": "raise"}, by="token:ada"
        )
        session.questions._waiting.clear()  # the host is killed before it acts on the answer
        await session.append(given)
    if killed:
        desk.host.stopping = True  # nothing of the stop is written
    await desk.open(SPENT)
    session = await desk.host.get(session.id)
    if not answered:
        assert (await desk.asked(session)).id == before.id
        assert session.state.turns[-1].outcome is None
        await desk.answer("raise")
    assert (await desk.ended(session, turn)).outcome == "completed"
    assert desk.played == ["first", "second"]
    await desk.host.log.flush()
    assert await desk.host.log.get_kv(session.channel, HELD) is None
    assert len([part for part in session.state.turns[-1].parts if isinstance(part, QuestionPart)]) == 1


async def test_a_day_that_is_over_holds_nothing(desk: Desk) -> None:
    session, turn = await exhausted(desk, BudgetSettings(day=Budget(tokens=100)))
    desk.clock.advance(86_400)
    await feature(desk.host, Budgets).sweep()
    assert (await desk.ended(session, turn)).outcome == "completed"


@pytest.mark.parametrize("said", ["raise", "RAISE", "Raise it by 100 tokens", "raise it by 100 TOKENS "])
async def test_an_answer_matches_the_id_or_the_label(desk: Desk, said: str) -> None:
    """Bug: a budget's question treated its own label as Stop."""
    session, turn = await exhausted(desk)
    await desk.answer(said)
    assert (await desk.ended(session, turn)).outcome == "completed"


@pytest.mark.parametrize("said", ["", "yes", "raise it", "Raise it by 5 tokens"])
async def test_any_other_answer_is_rejected_with_the_options(desk: Desk, said: str) -> None:
    session, _ = await exhausted(desk)
    with pytest.raises(BadRequest):
        await desk.answer(said)
    assert question(session) is not None
    assert desk.played == ["first"]

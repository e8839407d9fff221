"""The rows of the budget table for the scope of one turn and for sub-agents: every kind of agent, bound, scope and way.

A budget of a turn asks within the turn that exhausts it, and holds no other turn. A sub-agent counts to its parent's
turn, session and person, and none starts to work while one of these is exhausted.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from portico.agents.agent import AgentContext, Message
from portico.agents.loop import LoopAgent
from portico.agents.script import Provider
from portico.agents.script import parse as parse_script
from portico.agents.scripted import ScriptedAgent
from portico.kernel.errors import BudgetSpent
from portico.kernel.events import Budget
from portico.kernel.session import Session
from portico.server.settings import BudgetSettings
from portico.testing.model import ModelServer, Script
from portico.testing.play import PlayAgent
from tests.agents.acp_agent import fake_agent, steps, waiting_approval
from tests.budgets.test_start import BOUNDS, Desk, desk, questions

__all__ = ["desk"]
IN_TURN = ("dollars", "tokens", "minutes", "calls")
"""A turn is one turn: the bound on turns never applies to it."""
USED = {"tokens": 100}
"""What the first half of a turn uses of each bound: 100 tokens, and one of everything else."""


def budget_of(bound: str) -> Budget:
    return Budget(**{bound: USED.get(bound, 1)})


async def opened(desk: Desk, settings: BudgetSettings, agent: PlayAgent) -> None:
    """With the clock of the test, as for its own agent."""
    desk.agent = agent
    await desk.open(settings, agent)


async def spend(desk: Desk, turn: Any) -> None:
    desk.clock.advance(60)
    turn.usage(input=90, output=10, cost=1.0)
    await turn.tool("look", kind="read").end()


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    """Looks at a file with its first request, and answers with the second; 100 tokens each."""
    used = {"usage": {"input": 90, "output": 10}}
    calls = [{"name": "listFiles", "args": {}}]
    script = {"rules": [{"steps": [{"calls": calls, **used}, {"say": "ok", **used}]}], "models": ["gpt-4o"]}
    async with ModelServer(msgspec.convert(script, Script)) as server:
        yield server


@pytest.mark.parametrize("bound", IN_TURN)
@pytest.mark.parametrize("answer", ["raise", "finish", "stop"])
async def test_a_turn_waits_within_itself_at_every_bound(desk: Desk, bound: str, answer: str) -> None:
    async def play(message: Message, turn: Any) -> None:
        await spend(desk, turn)
        await turn.admit()
        desk.played.append(message.text)

    await opened(desk, BudgetSettings(turn=budget_of(bound)), PlayAgent(play))
    session = await desk.start()
    turn = await desk.send(session)
    asked = await desk.asked(session)
    assert (asked.text.startswith("The budget of this turn is spent"), desk.played) == (True, [])
    await desk.answer(answer)
    ended = await desk.ended(session, turn)
    if answer == "stop":
        assert (ended.outcome, ended.error and ended.error.code) == ("failed", BudgetSpent.code)
    else:
        assert (ended.outcome, desk.played) == ("completed", ["go"])


@pytest.mark.parametrize("kind", ["loop", "acp:fake", "scripted", "play"])
async def test_every_kind_of_agent_is_asked_about_its_turn_and_the_next_turn_starts(
    desk: Desk, model: ModelServer, kind: str
) -> None:
    """Between two calls of a model, before a tool that asks, or when usage is reported: as the kind of agent allows."""

    async def play(message: Message, turn: Any) -> None:
        turn.usage(input=90, output=10)
        await turn.admit()

    used = {"inputTokens": 90, "outputTokens": 10}
    rules = (
        "rules: [{match: go, steps: [{do: usage, input: 90, output: 10}, "
        "{do: write, path: a.txt, text: x}, {do: say, text: ok}]}]"
    )
    environ = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "k"}
    agents: dict[str, Any] = {
        "loop": lambda: LoopAgent(AgentContext(desk.folder / "home", {}), environ),
        "acp:fake": lambda: fake_agent(desk.folder),
        "scripted": lambda: ScriptedAgent(Provider("scripted", "Scripted"), parse_script(rules, "rules").rules),
        "play": lambda: PlayAgent(play),
    }
    update = {"sessionUpdate": "usage_update", "used": 100, "size": 1000, **used}
    hang = steps(["update", "usage_update", update], ["reply", {"usage": used}], ["permission", {}], ["text", "ok"])
    await desk.open(BudgetSettings(turn=Budget(tokens=100)), agents[kind]())
    session = await desk.start(kind)
    turn = await desk.send(session, hang if kind == "acp:fake" else "go")
    if kind == "acp:fake":  # it reports its usage with the end of the turn
        approval = await waiting_approval(session)
        await session.approvals.answer(approval, by="test", allow=True)
        assert (await desk.ended(session, turn)).outcome == "completed"
    else:
        assert "this turn is spent: 100 of 100 tokens" in (await desk.asked(session)).text
        await desk.answer("stop")
        assert (await desk.ended(session, turn)).outcome in ("failed", "cancelled")
    again = await desk.send(session, steps(["text", "ok"]) if kind == "acp:fake" else "go")
    await desk.waits(session)
    found = session.state.turn(again)
    assert found is not None
    assert "STARTS" not in str(found.parts)
    assert kind == "acp:fake" or found.usage is not None, "the next turn has a budget of its own"


@pytest.mark.parametrize("bound", IN_TURN)
@pytest.mark.parametrize("way", ["queue", "fork", "parallel"])
async def test_the_budget_of_a_turn_holds_no_other_turn(desk: Desk, way: str, bound: str) -> None:
    async def play(message: Message, turn: Any) -> None:
        if message.text == "go":
            await spend(desk, turn)
        await turn.admit()
        desk.played.append(message.text)

    await opened(desk, BudgetSettings(turn=budget_of(bound)), PlayAgent(play))
    session = await desk.start()
    await desk.run(session, "first")
    turn = await desk.send(session)
    await desk.asked(session)
    if way == "queue":
        await session.queue.add(Message("other"), by="test")
        await desk.answer("stop")
        await session.wait_until(lambda state: len(state.turns) == 3 and state.active is None)
    else:
        other = await desk.start() if way == "parallel" else await forked(desk, session)
        assert (await desk.run(other, "other")).outcome == "completed"
        assert len(questions(desk.host)) == 1
        await desk.answer("stop")
    assert (await desk.ended(session, turn)).outcome == "failed"
    assert desk.played == ["first", "other"]


async def forked(desk: Desk, session: Session) -> Session:
    return await desk.host.fork(session.id, by="test", turn=session.state.turns[0].id)


async def test_a_message_is_steered_into_a_turn_that_waits_within_itself(desk: Desk) -> None:
    async def play(message: Message, turn: Any) -> None:
        await spend(desk, turn)
        await turn.admit()

    agent = PlayAgent(play, steer=True)
    await desk.open(BudgetSettings(turn=Budget(tokens=100)), agent)
    session = await desk.start()
    turn = await desk.send(session)
    await desk.asked(session)
    assert await session.queue.steer(Message("also"), by="test") is True
    assert agent.steered == ["also"]
    await desk.answer("finish")
    assert (await desk.ended(session, turn)).outcome == "completed"


# -- sub-agents ------------------------------------------------------------------------------------------------

SCOPES = {**BOUNDS, "turn": IN_TURN}
CHILDREN = [(scope, bound) for scope, found in SCOPES.items() for bound in found]


def settings_of(scope: str, bound: str) -> tuple[BudgetSettings, dict[str, Any]]:
    budget = budget_of(bound)
    if scope == "config":
        return BudgetSettings(), {"budget": msgspec.to_builtins(budget)}
    return msgspec.convert({scope: budget}, BudgetSettings), {}


@pytest.mark.parametrize(("scope", "bound"), CHILDREN)
async def test_what_a_sub_agent_spends_holds_its_parent(desk: Desk, scope: str, bound: str) -> None:
    """Every scope and bound: the parent waits within its turn if the turn is exhausted, else before its next turn."""

    async def play(message: Message, turn: Any) -> None:
        if message.text == "go":
            child = await turn.spawn("look")
            await spend(desk, child)
            await child.finish()
        if bound != "turns":
            await turn.admit()
        desk.played.append(message.text)

    settings, config = settings_of(scope, bound)
    await opened(desk, settings, PlayAgent(play))
    session = await desk.start(**config)
    turn = await desk.send(session)
    if bound == "turns":
        assert (await desk.ended(session, turn)).outcome == "completed"
        turn = await desk.send(session, "second")
    await desk.asked(session)
    assert desk.played == (["go"] if bound == "turns" else [])
    assert len(questions(desk.host)) == 1
    await desk.answer("stop")
    assert (await desk.ended(session, turn)).outcome == "failed"


@pytest.mark.parametrize(("scope", "bound"), [pair for pair in CHILDREN if pair[1] != "turns"])
async def test_no_sub_agent_works_while_the_budget_is_exhausted(desk: Desk, scope: str, bound: str) -> None:
    """Two at the same time, after their parent has spent everything: none works, and one question is open."""

    async def work(turn: Any, name: str) -> None:
        child = await turn.spawn(name)
        try:
            await child.admit()
            desk.played.append(name)
        finally:
            await child.finish()

    async def play(message: Message, turn: Any) -> None:
        await spend(desk, turn)
        await asyncio.gather(work(turn, "one"), work(turn, "two"))

    settings, config = settings_of(scope, bound)
    await opened(desk, settings, PlayAgent(play))
    session = await desk.start(**config)
    turn = await desk.send(session)
    async with asyncio.timeout(20):
        async for _ in desk.host.log.follow():
            if questions(desk.host):
                break
    assert (desk.played, len(questions(desk.host))) == ([], 1)
    await desk.answer("finish")
    assert (await desk.ended(session, turn)).outcome == "completed"
    assert questions(desk.host) == []
    assert sorted(desk.played) == ["one", "two"]


async def test_a_sub_agent_of_the_built_in_agent_waits_for_its_parents_budget(desk: Desk) -> None:
    used = {"usage": {"input": 90, "output": 10}}
    delegates = {"calls": [{"name": "delegate", "args": {"task": "look"}}], **used}
    child = {"match": "look", "steps": [{"say": "Looked.", **used}]}
    parent = {"steps": [delegates, {"say": "Done.", **used}]}
    script = msgspec.convert({"rules": [child, parent], "models": ["gpt-4o"]}, Script)
    async with ModelServer(script) as server:
        environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        agent = LoopAgent(AgentContext(desk.folder / "home", {}), environ)
        await desk.open(BudgetSettings(session=Budget(tokens=100)), agent)
        session = await desk.start("loop")
        turn = await desk.send(session)
        async with asyncio.timeout(20):
            async for _ in desk.host.log.follow():
                if questions(desk.host):
                    break
        [asked] = questions(desk.host)
        assert "session is spent: 100 of 100 tokens" in asked.text
        assert server.total == 1, json.dumps([each.body["messages"][-1] for each in server.requests])
        await desk.answer("stop")
        assert (await desk.ended(session, turn)).outcome == "failed"
        assert server.total == 1
        await desk._opener.close()

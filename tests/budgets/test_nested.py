"""Budgets of what is more than one conversation: jobs, runs of automations, sub-agents, people and tokens."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portico.agents.agent import Message
from portico.features.automations import commands as ac
from portico.features.automations.automations import Automations
from portico.features.budgets.budgets import Budgets
from portico.features.budgets.ledger import rules_of
from portico.features.jobs import Jobs, load_entry
from portico.features.jobs import events as je
from portico.features.usage.usage_index import UsageIndex
from portico.kernel import commands as c
from portico.kernel.errors import Forbidden
from portico.kernel.events import Budget
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import QuestionPart
from portico.server.settings import BudgetSettings, PersonBudget
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.automation import playing as automation
from tests.features import feature
from tests.jobs.playing import until_ended

ADA = c.Caller("t1", "ada", frozenset(c.SCOPES))
REF = {"kind": "Ref", "taskId": "work"}
SEQ = {"kind": "Seq", "works": [REF, REF, REF]}
PAR = {"kind": "Par", "works": [REF, REF, REF]}


def entry(work: Any, budget: Any) -> Any:
    return load_entry(
        {
            "models": {"driving": "play"},
            "drivingSessionRetries": [{"modelId": "play", "retries": 1}],
            "promptVariables": {},
            "tasks": {"work": {"model": {"category": "driving"}, "prompt": ["go"], "requireUserInput": False}},
            "jobs": {"main": {"work": work, "budget": budget}},
            "grid": [],
        }
    )


class Desk:
    """Every turn asks before its one call of a model, which costs 100 tokens."""

    def __init__(self, opener: HostOpener, folder: Path) -> None:
        self._opener, self.folder, self.calls = opener, folder, 0

    async def _play(self, message: Message, turn: Any) -> None:
        await turn.admit()
        self.calls += 1
        turn.usage(input=90, output=10)

    async def open(self, **rules: Budget) -> Host:
        self.host = await self._opener(PlayAgent(self._play))
        feature(self.host, Budgets).rules = rules
        return self.host

    async def jobs(self, work: Any, **budget: Any) -> Jobs:
        jobs = await Jobs.open(self.host)
        await jobs.install(entry(work, budget))
        return jobs

    async def asked(self, words: str) -> tuple[Session, QuestionPart]:
        """The one question that waits on this host, which says so."""
        async with asyncio.timeout(30):
            async for _ in self.host.log.follow():
                found = list(self._waiting())
                if found and words in found[0][1].text:
                    assert len(found) == 1
                    return found[0]
        raise AssertionError

    def _waiting(self) -> Iterator[tuple[Session, QuestionPart]]:
        for session in self.host.catalogue.live():
            active = session.state.active if session.loaded else None
            for part in active.parts if active is not None else []:
                if isinstance(part, QuestionPart) and part.response is None:
                    yield session, part

    async def answer(self, words: str, choice: str, caller: c.Caller = ADA) -> None:
        _, question = await self.asked(words)
        await self.host.do(
            c.AnswerQuestion(question=question.id, response="accept", answers={"answer": choice}), caller
        )


@pytest.fixture
def desk(open_host: HostOpener, tmp_path: Path) -> Desk:
    return Desk(open_host, tmp_path)


async def job_end(desk: Desk, job: str) -> str:
    async with asyncio.timeout(30):
        ended = (await until_ended(desk.host.log, f"job/{job}"))[-1]
    assert isinstance(ended, je.JobEnded)
    return ended.outcome


@pytest.mark.parametrize(("choice", "outcome", "calls"), [("finish", "succeeded", 3), ("stop", "failed", 2)])
async def test_the_tasks_of_a_job_spend_one_budget(desk: Desk, choice: str, outcome: str, calls: int) -> None:
    """Stop ends the job at once: the task is not tried again on a new session."""
    await desk.open()
    jobs = await desk.jobs(SEQ, tokens=200)
    job = await jobs.start_job("main", cwd=str(desk.folder), by="token:ada")
    await desk.answer("The budget of this job is spent: 200 of 200 tokens.", choice)
    assert await job_end(desk, job) == outcome
    assert desk.calls == calls


async def test_tasks_side_by_side_ask_one_question(desk: Desk) -> None:
    await desk.open(job=Budget(tokens=100))
    jobs = await desk.jobs(REF)
    await jobs.install(entry({"kind": "Seq", "works": [REF, PAR]}, {}))
    job = await jobs.start_job("main", cwd=str(desk.folder), by="token:ada")
    await desk.answer("100 of 100 tokens", "finish")
    assert await job_end(desk, job) == "succeeded"
    assert desk.calls == 4


async def test_a_job_waits_for_its_budget_over_a_restart(desk: Desk) -> None:
    """What was spent and what was added are both known again, and the answer lets the same job go on."""
    await desk.open()
    jobs = await desk.jobs(SEQ, tokens=100)
    job = await jobs.start_job("main", cwd=str(desk.folder), by="token:ada")
    await desk.answer("100 of 100 tokens", "raise")
    await desk.asked("200 of 200 tokens")
    await jobs.close()
    await desk.open()
    assert await (await desk.jobs(SEQ, tokens=100)).recover() == 1
    await desk.answer("200 of 200 tokens", "raise")
    assert await job_end(desk, job) == "succeeded"
    assert desk.calls == 3


@pytest.mark.parametrize("with_job", [False, True])
async def test_a_run_of_an_automation_has_its_budget(desk: Desk, with_job: bool) -> None:
    await desk.open()
    jobs = await desk.jobs({"kind": "Seq", "works": [REF, REF]})
    desk.host.workspaces[:] = [desk.folder]
    automations = await Automations.open(desk.host, jobs, desk.folder)
    await automations.start()
    parts: dict[str, Any] = {"job": {"job": "main"}} if with_job else {"prompt": {"text": "go", "agent": "play"}}
    await automation.made(automations, "nightly", ADA, budget={"tokens": 100}, **parts)
    named = await desk.host.do(ac.RunAutomation(automation="nightly"), ADA)
    if with_job:
        await desk.answer("The budget of this run of nightly is spent: 100 of 100 tokens.", "stop")
    run = await automation.until_over(automations, named.run)
    assert (run.status, desk.calls) == (("failed", 1) if with_job else ("succeeded", 1))
    rows = await UsageIndex(desk.host).rows(1)
    assert {(row.automation, row.job, row.person) for row in rows} == {("nightly", run.job, "token:ada")}


@pytest.mark.parametrize(
    "settings",
    [
        BudgetSettings(person_day=Budget(tokens=100)),
        BudgetSettings(people={"ada": PersonBudget(month=Budget(tokens=100))}),
        BudgetSettings(person_day=Budget(tokens=100_000), people={"ada": PersonBudget(day=Budget(tokens=100))}),
    ],
)
async def test_a_person_has_a_budget_that_an_admin_raises(desk: Desk, settings: BudgetSettings) -> None:
    await desk.open()
    feature(desk.host, Budgets).rules = rules_of(settings)
    scopes = frozenset({"read", "drive", "approve"})
    ada, bob = (c.Caller(f"t-{name}", name, scopes, person=name) for name in ("ada", "bob"))
    root = c.Caller("t-root", "root", frozenset(c.SCOPES), person="root")
    desk.host.workspaces.append(desk.folder)
    for person in (ada, bob, ada):
        session = await desk.host.do(c.StartSession(cwd=str(desk.folder)), person)
        await desk.host.do(c.SendMessage(session=session.id, text="go"), person)
    with pytest.raises(Forbidden, match="admin"):
        await desk.answer("The budget of ada", "raise", ada)
    await desk.answer("The budget of ada", "raise", root)
    await (await desk.host.get(session.id)).wait_until(lambda state: state.active is None)
    assert desk.calls == 3  # bob's own and the second of ada


async def test_a_sub_agent_spends_what_its_parent_has(desk: Desk) -> None:
    done: list[str] = []

    async def play(message: Message, turn: Any) -> None:
        await turn.admit()
        turn.usage(input=100)
        if message.text == "go":
            child = await turn.spawn("look")
            await play(Message("look"), child)
            done.append("child")
            await child.finish()

    host = desk.host = await desk._opener(PlayAgent(play))
    feature(host, Budgets).rules = {"session": Budget(tokens=100)}
    session = await host.start(by="test", cwd=str(desk.folder))
    turn = await session.send(Message("go"), by="test")
    await desk.answer("The budget of the parent's session is spent: 100 of 100 tokens.", "finish")
    await session.wait(turn)
    assert done == ["child"]

"""A job whose agent is not signed in waits and asks a person; what was found out about the agent earlier ends nothing.

The bug: "not signed in" was noted in a file for ever. A job that a restart resumed failed with "There is no model",
while the person had signed in long before."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from portico.agents import script
from portico.agents.scripted import ScriptedAgent, ScriptedConversation
from portico.features.jobs import Jobs
from portico.features.jobs import events as je
from portico.features.jobs.choice import check_offered, choose
from portico.features.jobs.models import ModelUse
from portico.features.jobs.task_sessions import GIVE_UP, TRY_AGAIN
from portico.kernel import events as e
from portico.kernel.agent import AgentInfo, Check, Opening
from portico.kernel.errors import AgentUnavailable, NotFound, SignInRequired
from portico.kernel.host import Host
from portico.kernel.state import QuestionPart
from portico.testing.fixtures import HostOpener
from tests.jobs.playing import Data, make, ok, opened, play, short, story, task, until_ended
from tests.jobs.samples import ref, seq

WORDS = "Away is not signed in. Run: away login"


class Away(ScriptedAgent):
    """An agent with a login: `signed_in` is the truth, `noted` is what it remembers of it."""

    def __init__(self, noted: bool, signed_in: bool) -> None:
        super().__init__(script.Provider("away", "Away"))
        self.noted, self.signed_in, self.checks = noted, signed_in, 0
        self.leaves: bool | None = None
        """The login ends with the next conversation; whether that is noted."""

    async def describe(self) -> AgentInfo:
        return replace(await super().describe(), missing=WORDS if self.noted else None)

    async def check(self) -> Check:
        self.checks += 1
        self.noted = not self.signed_in
        return Check(self.id, "ready", "") if self.signed_in else Check(self.id, "not_signed_in", WORDS)

    async def open(self, opening: Opening) -> ScriptedConversation:
        if not self.signed_in:
            self.noted = True
            raise SignInRequired(WORDS)
        if self.leaves is not None:
            self.noted, self.signed_in, self.leaves = self.leaves, False, None
        return await super().open(opening)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No check continues a job unless a test sets the interval: what a person answers decides."""
    monkeypatch.setattr("portico.limits.AGENT_RECHECK_SECONDS", 600.0)


async def questions(host: Host) -> AsyncIterator[tuple[e.QuestionAsked, QuestionPart]]:
    async for records in host.log.follow():
        for event in (record.event for record in records):
            if isinstance(event, e.QuestionAsked):
                session = await host.get(host.session_of(event.question))
                part = next(each for turn in session.state.turns for each in turn.parts)
                assert isinstance(part, QuestionPart)
                yield event, part


async def answer(host: Host, question: e.QuestionAsked, value: str) -> None:
    session = await host.get(host.session_of(question.question))
    await session.questions.answer(question.question, "accept", {"answer": value}, by="token:ann")


async def playing(jobs: Jobs, cwd: Path) -> "asyncio.Task[tuple[str, list[str]]]":
    return asyncio.ensure_future(play(jobs, cwd))


# -- who reads a note, and what it decides -----------------------------------------------------------------------


@pytest.mark.parametrize(("noted", "signed_in"), [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("model", ["gpt-5.2", "away/gpt-5.2", "away"])
async def test_a_note_decides_nothing(open_host: HostOpener, model: str, noted: bool, signed_in: bool) -> None:
    """Every reader in a job × what is noted × the truth. Without a note the first turn finds out."""
    host = await open_host(Away(noted, signed_in))
    uses = [ModelUse("entry.models.coding", model)]
    if signed_in or not noted:
        assert (await choose(host, model))[0].id == "away"
        await check_offered(host, uses)
    else:
        for attempt in (choose(host, model), check_offered(host, uses)):
            with pytest.raises(AgentUnavailable, match="Run: away login"):
                await attempt


async def test_a_model_that_no_agent_has_is_still_not_found(open_host: HostOpener) -> None:
    """Agents that cannot have it are not started because of it."""
    host = await open_host(agent := Away(noted=True, signed_in=True), ScriptedAgent(script.Provider("other", "Other")))
    with pytest.raises(NotFound, match="There is no model 'no-such'"):
        await choose(host, "no-such")
    assert agent.checks == 0


# -- jobs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "found in the turn"])
@pytest.mark.parametrize(
    "tasks",
    [
        {"it": ok()},
        {"it": ok(criteria={"condition": ["[[tool:job_boolean_true|fine]]"], "failureAction": {"retryTimes": 0}})},
        {"it": ok(availability={"condition": ["[[tool:job_boolean_true|fine]]"]})},
    ],
    ids=["task", "condition", "availability"],
)
async def test_a_job_waits_asks_and_goes_on(
    open_host: HostOpener, tmp_path: Path, noted: bool, tasks: dict[str, Data]
) -> None:
    """It starts signed in; the login ends with the first conversation of its first task."""
    host = await open_host(agent := Away(False, True))
    agent.leaves = noted
    jobs = await opened(host, make({"before": ok(), **tasks}, seq(ref("before"), ref("it"))))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    found = questions(host)
    async with asyncio.timeout(30):
        first, part = await anext(found)
        assert part.text.startswith("The task 'it' needs the model")
        assert "Run: away login" in part.text
        assert [each["label"] for each in part.fields[0]["options"]] == [TRY_AGAIN, GIVE_UP]
        await answer(host, first, TRY_AGAIN)  # without having signed in
        second, _ = await anext(found)
        agent.signed_in = True
        await answer(host, second, TRY_AGAIN)
        assert short(await until_ended(host.log, f"job/{job}"))[-1] == "jobSucceeded"


async def test_a_person_gives_up(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(Away(False, False))
    jobs = await opened(host, make({"it": ok()}))
    run = await playing(jobs, tmp_path)
    async with asyncio.timeout(30):
        question, _ = await anext(questions(host))
        await answer(host, question, GIVE_UP)
        assert (await run)[1][-1] == "jobError"
    assert any("Run: away login" in word for word in await story(host.log, "task-1"))


async def test_a_login_is_noticed_without_an_answer(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portico.limits.AGENT_RECHECK_SECONDS", 0.01)
    host = await open_host(agent := Away(False, False))
    run = await playing(await opened(host, make({"it": ok()})), tmp_path)
    async with asyncio.timeout(30):
        question, _ = await anext(questions(host))
        agent.signed_in = True
        assert (await run)[1][-1] == "jobSucceeded"
    asked = await host.get(host.session_of(question.question))
    assert asked.state.active is None


async def test_a_fallback_takes_over_without_a_question(open_host: HostOpener, tmp_path: Path) -> None:
    """A person is asked when none of them is available."""
    both = Away(False, False), ScriptedAgent(script.Provider("scripted", "Scripted"))
    host = await open_host(*both)
    models = {"model": {"id": "away/gpt-5.2"}, "fallback": [{"id": "scripted/gpt-5.2"}]}
    plan = make({"it": task("[[say:ok]]", **models)})
    async with asyncio.timeout(30):
        assert (await play(await opened(host, plan), tmp_path))[1][-1] == "jobSucceeded"
    assert not [each for session in host.list() for each in [session.title] if "needs the model" in each]


@pytest.mark.parametrize("signed_in", [True, False])
async def test_a_job_that_a_restart_resumes_does_not_fail_by_a_note(
    open_host: HostOpener, tmp_path: Path, signed_in: bool
) -> None:
    """The note was right at the last start, and is wrong now; or it is still right, and a person is asked."""
    host = await open_host(Away(False, True))
    jobs = await opened(host, make({"it": task("[[hang]]"), "then": ok()}))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await anext(host.log.follow("task/task-1"))
    await open_host.close()
    host = await open_host(agent := Away(True, signed_in))
    jobs = await Jobs.open(host)
    assert await jobs.recover() == 1
    async with asyncio.timeout(30):
        if not signed_in:
            question, part = await anext(questions(host))
            assert "Run: away login" in part.text
            assert jobs.job(job).status == "running"
            agent.signed_in = True
            await answer(host, question, TRY_AGAIN)
        decided = [""]
        async for records in host.log.follow("task/task-2"):
            decided += [each.event.reason for each in records if isinstance(each.event, je.TaskDecided)]
            if decided[-1].startswith("[SESSION STARTED]"):
                break
    await jobs.stop_job(job, by="test")

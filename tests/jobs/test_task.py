import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from portico.agents.agent import AgentError, AgentInfo, Capabilities, Message, Model, Turn
from portico.features.jobs import Jobs, load_entry
from portico.features.jobs import commands as jc
from portico.features.jobs import events as je
from portico.features.jobs.commands import JobNamed
from portico.features.jobs.entry import EntryError
from portico.features.jobs.tools import lend_tools
from portico.kernel import commands as c
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import host_of
from tests.jobs.playing import (
    NO,
    YES,
    Data,
    crashing,
    make,
    models,
    ok,
    opened,
    play,
    prompts,
    short,
    story,
    task,
    until_ended,
    until_started,
)

PREFIX = "The session crashed, please redo and here is the last request:\n"
RETRY = {"retryTimes": 1}
SECOND_TIME = """
import pathlib, sys
n = pathlib.Path("n")
n.touch()
n.write_text(n.read_text() + "x")
print("tried", n.read_text())
sys.exit(len(n.read_text()) < 2)
"""


async def played(host: Host, cwd: Path, plan: Data, input: str = "") -> list[str]:
    """What clients see of the only task of a job, without the words about its sessions."""
    jobs = await opened(host, make({"it": plan}))
    await play(jobs, cwd, input)
    return [word for word in await story(host.log, "task-1") if not word.startswith("[SESSION STARTED]")]


async def test_a_task_without_criteria_is_one_session_and_one_prompt(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make({"it": ok()}))
    await play(jobs, tmp_path)
    assert await story(host.log, "task-1") == [
        "+driving",
        "[SESSION STARTED] task session started with model gpt-5.2",
        "[TASK SUCCEEDED] Decision: task succeeded",
        "-ok",
        "taskSucceeded",
    ]
    assert await prompts(host, "task-1") == ["[[say:ok]]"]


@pytest.mark.parametrize(
    ("by", "lent", "has"), [("me", False, False), ("me", True, True), ("task:task-1", False, True)]
)
async def test_the_four_tools_are_in_sessions_of_tasks_only(host: Host, by: str, lent: bool, has: bool) -> None:
    """Reported: every ordinary session carried them, at the price of tokens and of the model's attention."""
    await Jobs.open(host)
    session = await host.start(by=by, agent="scripted")
    if lent:
        await lend_tools(session, by="me")
    assert ("job_boolean_true" in [spec.name for spec in session.tools.specs()]) is has
    state = await session.wait(await session.send(Message("[[tool:job_boolean_true|because]]"), by="me"))
    call = state.parts[1]
    assert (call.output, call.ok) == (("because", True) if has else ("", False))  # type: ignore[union-attr]


async def test_runtime_variables_fill_the_prompts(host: Host, tmp_path: Path) -> None:
    plan = task(
        "On $user-input by $task-model after $reported-document [[tool:job_prepare_document| /tmp/a.md \nmore]]",
        criteria={
            "condition": ["$reported-document ok? $reported-true-reason [[tool:job_boolean_false|too short]]"],
            "runConditionInSameSession": True,
            "failureAction": {"retryTimes": 1, "additionalPrompt": ["Because $reported-false-reason"]},
        },
    )
    await played(host, tmp_path, plan, "this\nand that")
    first, check, again, _ = await prompts(host, "task-1")
    assert first.startswith("On this\nand that by gpt-5.2 after <MISSING>")
    assert check.startswith("/tmp/a.md ok? <MISSING>")
    assert again.startswith("On this\nand that by gpt-5.2 after /tmp/a.md")
    assert again.endswith("\n## You accidentally Stopped\nBecause too short")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (
            YES,
            [
                "[AVAILABILITY] Availability check passed",
                "[TASK SUCCEEDED] Decision: task succeeded",
                "-ok",
                "taskSucceeded",
            ],
        ),
        (
            NO,
            [
                f'[AVAILABILITY] Availability check failed: condition not satisfied. Condition: ["{NO}"]',
                "-no",
                "taskFailed",
            ],
        ),
    ],
)
async def test_availability(host: Host, tmp_path: Path, condition: str, expected: list[str]) -> None:
    plan = ok(availability={"condition": [condition]})
    assert await played(host, tmp_path, plan) == ["+driving", *expected]


async def test_a_failed_prerequisite_fails_the_check_at_once(host: Host, tmp_path: Path) -> None:
    """The agent would hang after its report; the check does not wait for it."""
    condition = "job_boolean_true? [[tool:job_boolean_true|yes]] [[tool:job_prerequisite_failed|no disk]] [[hang]]"
    async with asyncio.timeout(30):
        words = await played(host, tmp_path, ok(availability={"condition": [condition]}))
    assert words[-1] == "taskFailed"


async def test_missing_tools_are_named_in_the_retry(host: Host, tmp_path: Path) -> None:
    plan = task(
        "[[after:doc|1|job_prepare_document|a.md]]",
        criteria={"toolExecuted": ["job_prepare_document"], "failureAction": {"retryTimes": 3}},
    )
    assert await played(host, tmp_path, plan) == [
        "+driving",
        "[CRITERIA] toolExecuted check failed: missing tools: job_prepare_document",
        "[OPERATION] Starting retry #1",
        "[CRITERIA] Criteria passed on retry #1",
        "[TASK SUCCEEDED] Decision: task succeeded",
        "-ok",
        "taskSucceeded",
    ]
    assert (await prompts(host, "task-1"))[1].endswith("\n## Required Tool Not Called: job_prepare_document")


async def test_the_condition_runs_even_when_tools_are_missing(host: Host, tmp_path: Path) -> None:
    plan = task(
        "[[say:x]]",
        criteria={
            "toolExecuted": ["job_prepare_document"],
            "condition": [YES],
            "runConditionInSameSession": True,
            "failureAction": {"retryTimes": 0},
        },
    )
    assert await played(host, tmp_path, plan) == [
        "+driving",
        "[CRITERIA] toolExecuted check failed: missing tools: job_prepare_document",
        "[CRITERIA] Criteria condition passed",
        "[DECISION] Retry budget drained after 0 retries",
        "[TASK FAILED] Decision: task failed (criteria not satisfied)",
        "-no",
        "taskFailed",
    ]


async def test_several_models_mean_a_session_for_every_mission(host: Host, tmp_path: Path) -> None:
    plan = ok(
        availability={"condition": [YES]},
        criteria={"condition": [NO], "runConditionInSameSession": False, "failureAction": RETRY},
    )
    jobs = await opened(host, make({"it": plan}))
    await play(jobs, tmp_path)
    failed = f'[CRITERIA] Criteria condition failed. Condition: ["{NO}"]'
    driving = ["+driving", "[SESSION STARTED] driving session started with model gpt-5-mini"]
    own = ["+task", "[SESSION STARTED] task session started with model gpt-5.2"]
    assert await story(host.log, "task-1") == [
        *driving,
        "-ok",
        "[AVAILABILITY] Availability check passed",
        *own,
        "-ok",
        *driving,
        "-no",
        failed,
        "[OPERATION] Starting retry #1",
        *own,
        "-ok",
        *driving,
        "-no",
        failed,
        "[CRITERIA] Criteria failed on retry #1",
        "[DECISION] Retry budget drained after 1 retries",
        "[TASK FAILED] Decision: task failed (criteria not satisfied)",
        "taskFailed",
    ]


async def test_task_work_that_crashes_is_tried_again_on_its_own_model(host: Host, tmp_path: Path) -> None:
    """The original silently changed to the driving model."""
    words = await played(host, tmp_path, task("[[crashn:own|2]]"))
    assert words[-1] == "taskSucceeded"
    assert await models(host, "task-1") == ["gpt-5.2"] * 3
    sent = await prompts(host, "task-1")
    assert sent == ["[[crashn:own|2]]", PREFIX + "[[crashn:own|2]]", PREFIX + "[[crashn:own|2]]"]


async def test_the_fallback_of_a_task_takes_over_and_stays(host: Host, tmp_path: Path) -> None:
    """A model that nobody has and one that crashes: the third does the work, and the retry of the criteria as well."""
    prompt = "[[crashn:falls|1]] [[after:falls|2|job_boolean_true|ok]]"
    plan = task(
        prompt,
        model={"id": "nobody"},
        fallback=[{"category": "coding"}, {"id": "gpt-4.1"}],
        criteria={"toolExecuted": ["job_boolean_true"], "failureAction": RETRY},
    )
    words = await played(host, tmp_path, plan)
    assert words[-1] == "taskSucceeded"
    told = [word for word in words if word.startswith(("[FALLBACK]", "[SESSION CRASHED]"))]
    assert told[0].startswith("[SESSION CRASHED] Failed to create session: {")
    assert told[1] == "[FALLBACK] gpt-5.2 takes over from nobody"
    assert told[2].startswith("[SESSION CRASHED] {")
    assert told[3:] == ["[FALLBACK] gpt-4.1 takes over from gpt-5.2"]
    assert await models(host, "task-1") == ["gpt-5.2", "gpt-4.1"]
    sent = await prompts(host, "task-1")
    assert sent == [prompt, PREFIX + prompt, f"{prompt}\n## Required Tool Not Called: job_boolean_true"]


async def test_a_job_starts_only_if_one_of_a_task_s_models_is_there(host: Host, tmp_path: Path) -> None:
    plan = ok(model={"id": "nobody"}, fallback=[{"id": "also-nobody"}])
    jobs = await opened(host, make({"it": plan}))
    with pytest.raises(EntryError, match=r'entry.tasks\["it"\].model.id: "nobody" is not an available model id.'):
        await play(jobs, tmp_path)


async def test_after_five_attempts_a_crash_is_the_task_s_end(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make({"it": crashing()}))
    _, words = await play(jobs, tmp_path)
    assert words == ["+0", "-0 no", "jobFailed", "jobError"]
    told = await story(host.log, "task-1")
    assert len(await models(host, "task-1")) == 5
    assert next(word for word in told if word.startswith("[SESSION CRASHED]")).endswith(
        '{"name":"Error","message":"stub crash","stack":"Error: stub crash"}'
    )
    assert told[-3].startswith("[TASK FAILED] Task error: {")
    assert told[-2:] == ["-no", "taskFailed"]


async def test_driving_work_follows_the_driving_retries(host: Host, tmp_path: Path) -> None:
    plan = ok(
        criteria={
            "condition": ["job_boolean_true? [[crashn:drive|2]] [[tool:job_boolean_true|ok]]"],
            "runConditionInSameSession": False,
            "failureAction": RETRY,
        }
    )
    words = await played(host, tmp_path, plan)
    assert words[-1] == "taskSucceeded"
    assert await models(host, "task-1") == ["gpt-5.2", "gpt-5-mini", "gpt-5-mini", "gpt-5-mini"]


async def test_a_single_session_returns_to_the_task_s_model_after_a_driving_crash(host: Host, tmp_path: Path) -> None:
    plan = ok(
        criteria={
            "condition": ["job_boolean_true? [[crashn:single|1]] [[after:late|2|job_boolean_true|ok]]"],
            "runConditionInSameSession": True,
            "failureAction": {"retryTimes": 2},
        }
    )
    words = await played(host, tmp_path, plan)
    assert words[-1] == "taskSucceeded"
    assert await models(host, "task-1") == ["gpt-5.2", "gpt-5-mini", "gpt-5.2"]


async def test_crashes_in_a_retry_cost_one_retry(host: Host, tmp_path: Path) -> None:
    """The original let them kill a task of one model, and left the session of one of several models open."""
    plan = task(
        "[[before:first|1|job_boolean_true|x]] $reported-false-reason",
        criteria={
            "condition": [
                "job_boolean_true? [[before:no|1|job_boolean_false|[[crash]]]] [[after:yes|1|job_boolean_true|ok]]"
            ],
            "runConditionInSameSession": True,
            "failureAction": {"retryTimes": 3},
        },
    )
    words = await played(host, tmp_path, plan)
    crashed = [word for word in words if word.startswith("[SESSION CRASHED] Session crash during retry")]
    assert crashed, words
    assert all(summary.closed for summary in host.list())


async def test_a_check_that_is_no_opinion(host: Host, tmp_path: Path) -> None:
    plan = ok(
        criteria={
            "command": [sys.executable, "-c", SECOND_TIME],
            "failureAction": {"retryTimes": 2, "additionalPrompt": ["It said: $check-output"]},
        }
    )
    words = await played(host, tmp_path, plan)
    assert words[1].startswith("[CRITERIA] Command failed with exit code 1: ")
    assert words[1].endswith("\ntried x")
    assert words[-1] == "taskSucceeded"
    assert (await prompts(host, "task-1"))[1].endswith("\n## You accidentally Stopped\nIt said: tried x")


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("true", [(True, 0), (True, None)]),
        ("exit 3", [(False, 3), (False, None), (False, None)]),
        (["/no/such/program"], [(False, None), (False, None), (False, None)]),
    ],
)
async def test_what_a_check_came_to_is_data(
    host: Host, tmp_path: Path, command: object, found: list[tuple[bool, int | None]]
) -> None:
    """Reported: pages read success and exit codes out of the words, and took "not found: 0" for a failure."""
    plan = ok(criteria={"command": command, "failureAction": {"retryTimes": 0}})
    jobs = await opened(host, make({"it": plan}))
    await play(jobs, tmp_path, "")
    events = [record.event for record in await host.log.read("task/task-1")]
    decided = [event for event in events if isinstance(event, je.TaskDecided) and "SESSION" not in event.reason]
    assert [(each.passed, each.exit_code) for each in decided] == found


@pytest.mark.parametrize("held", [True, False])
async def test_a_condition_keeps_what_its_judge_gave_as_reason(host: Host, tmp_path: Path, held: bool) -> None:
    """Reported: "Criteria condition failed" told nobody why, and the reason stood only in the call of the tool."""
    word = str(held).lower()
    criteria = {
        "condition": [f"[[tool:job_boolean_{word}|Two of nine fail.]] [[say:Judged.]]"],
        "runConditionInSameSession": True,
        "failureAction": {"retryTimes": 0},
    }
    jobs = await opened(host, make({"it": ok(criteria=criteria)}))
    await play(jobs, tmp_path, "")
    events = [record.event for record in await host.log.read("task/task-1")]
    (judged,) = [each for each in events if isinstance(each, je.TaskDecided) and each.evidence]
    assert (judged.passed, judged.evidence) == (held, "Two of nine fail.")


async def test_a_command_that_cannot_run_fails_the_criteria(host: Host, tmp_path: Path) -> None:
    plan = ok(criteria={"command": ["/no/such/program"], "failureAction": {"retryTimes": 0}})
    words = await played(host, tmp_path, plan)
    assert words[1].startswith("[CRITERIA] Command could not be run: /no/such/program")
    assert words[-1] == "taskFailed"


async def test_a_check_gets_no_secrets(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    plan = ok(criteria={"command": "env; false", "failureAction": {"retryTimes": 0}})
    words = await played(host, tmp_path, plan)
    assert "PATH=" in words[1]
    assert "canary" not in words[1]


async def test_a_task_has_a_timeout(host: Host, tmp_path: Path) -> None:
    words = await played(host, tmp_path, task("[[hang]]", timeout=0.05))
    assert words == [
        "+driving",
        "[TASK FAILED] Decision: task failed (not done within 0.05 seconds)",
        "-no",
        "taskFailed",
    ]
    assert host.running == 0


class Plain(PlayAgent):
    """Takes no tools."""

    async def describe(self) -> AgentInfo:
        models = [Model("gpt-5.2", "A"), Model("gpt-5-mini", "B")]
        return AgentInfo(self.id, "Plain", models=models, capabilities=Capabilities(tools=False))


async def test_an_agent_without_tools_reports_in_words(open_host: HostOpener, tmp_path: Path) -> None:
    seen: list[str] = []

    async def answer(message: Message, turn: Turn) -> None:
        seen.append(message.text)
        turn.text("I looked.\n@job_boolean_true all is well\nBye.")

    host = await open_host(Plain(answer))
    plan = task(
        "Go.",
        criteria={
            "condition": ["Well? job_boolean_true"],
            "toolExecuted": ["job_boolean_true"],
            "runConditionInSameSession": True,
            "failureAction": {"retryTimes": 0},
        },
    )
    assert (await played(host, tmp_path, plan))[-1] == "taskSucceeded"
    assert "@job_boolean_true <argument>" in seen[0]


async def test_what_an_agent_only_thinks_is_no_report(open_host: HostOpener, tmp_path: Path) -> None:
    async def answer(message: Message, turn: Turn) -> None:
        turn.reasoning("I could say:\n@job_boolean_true all is well\n")
        turn.text("Let me see.")

    host = await open_host(Plain(answer))
    plan = task("Go.", criteria={"toolExecuted": ["job_boolean_true"], "failureAction": {"retryTimes": 0}})
    assert (await played(host, tmp_path, plan))[-1] == "taskFailed"


# -- borrowing -------------------------------------------------------------------------------------------------


async def borrowed(session: Session, plan: Data, input: str = "") -> list[str]:
    jobs = await Jobs.open(host_of(session))
    await session.close(by="test")
    await jobs.install(make({"it": plan}))
    await session.do(c.ReopenSession(session=session.id), "test")
    ident = await jobs.start_task("it", session=session.id, input=input, by="test")
    return await story(session.host.log, ident)


async def test_a_borrowing_task_uses_the_session_and_leaves_it(session: Session) -> None:
    words = await borrowed(session, ok(availability={"condition": [NO]}))
    assert words == ["[TASK SUCCEEDED] Decision: task succeeded", "taskSucceeded"]
    assert not session.state.closed
    assert await prompts(host_of(session), "task-1") == ["[[say:ok]]"]


async def test_a_crash_ends_a_borrowing_task_at_once(session: Session) -> None:
    words = await borrowed(session, crashing())
    assert words[0].startswith("[SESSION CRASHED] Task crashed in borrowing session mode: {")
    assert words[1].startswith("[TASK FAILED] Task error: {")
    assert words[2:] == ["taskFailed", "taskError"]
    assert not session.state.closed


async def test_a_crash_in_the_retry_of_a_borrowing_task(session: Session) -> None:
    plan = task(
        "[[after:twice|1|x|y]] $reported-false-reason",
        criteria={
            "condition": ["job_boolean_false? [[tool:job_boolean_false|[[crash]]]]"],
            "runConditionInSameSession": True,
            "failureAction": {"retryTimes": 2},
        },
    )
    words = await borrowed(session, plan)
    assert any(word.startswith("[SESSION CRASHED] Crash during retry in borrowing mode: {") for word in words)
    assert words[-2:] == ["taskFailed", "taskError"]


async def test_a_borrowing_task_waits_for_its_turn(session: Session) -> None:
    await session.send(Message("[[delay:50]]"), by="me")
    assert (await borrowed_busy(session))[-1] == "taskSucceeded"


async def borrowed_busy(session: Session) -> list[str]:
    jobs = await Jobs.open(host_of(session))
    jobs._installed = make({"it": ok()})
    return await story(session.host.log, await jobs.start_task("it", session=session.id, by="test"))


# -- stopping --------------------------------------------------------------------------------------------------


async def test_stopping_one_task_fails_its_work_and_the_job_goes_on(host: Host, tmp_path: Path) -> None:
    """The original left the job running for ever."""
    work: Data = {
        "kind": "Alt",
        "condition": {"kind": "Ref", "taskId": "hang"},
        "trueWork": {"kind": "Ref", "taskId": "ok"},
        "falseWork": {"kind": "Ref", "taskId": "ok"},
    }
    jobs = await opened(host, make({"hang": task("[[hang]]"), "ok": ok()}, work))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    [ident] = await until_started(host.log, job)
    await jobs.stop_task(ident)
    words = short(await until_ended(host.log, f"job/{job}"))
    assert words == ["+0", "-0 no", "+2", "-2 ok", "jobSucceeded"]
    assert (await until_ended(host.log, f"task/{ident}"))[-1] == je.TaskEnded(task=ident, outcome="stopped")
    assert host.running == 0


# -- how long it waits between attempts ------------------------------------------------------------------------


class Overloaded(PlayAgent):
    """Fails as often as there are waits that its vendor asks for (None: it asks for nothing), then answers."""

    def __init__(self, *asked: float | None) -> None:
        super().__init__(self._answer)
        self._asked = list(asked)

    async def describe(self) -> AgentInfo:
        return AgentInfo(self.id, "Overloaded", models=[Model("gpt-5.2", "A"), Model("gpt-5-mini", "B")])

    async def _answer(self, message: Message, turn: Turn) -> None:
        if self._asked:
            raise AgentError("Overloaded.", retry_after=self._asked.pop(0))
        turn.text("done")


@pytest.mark.parametrize(
    ("asked", "more", "waits"),
    [
        ([None] * 4, {}, [2, 8, 30, 120]),
        ([None, 45, None], {}, [2, 45, 30]),
        ([9_999_999], {}, [3600]),
        ([None] * 3, {"retrySeconds": [1, 5]}, [1, 5, 5]),
        ([None] * 2, {"retrySeconds": []}, []),
    ],
)
async def test_a_failed_agent_is_tried_again_after_a_wait(
    open_host: HostOpener,
    tmp_path: Path,
    clock: FakeClock,
    asked: list[float | None],
    more: Data,
    waits: list[float],
) -> None:
    """There were five attempts in 21 milliseconds."""
    host = await open_host(Overloaded(*asked), clock=clock)
    data = msgspec.to_builtins(make({"it": task("Go.")}))
    del data["jobs"]["main"]["retrySeconds"]
    data["jobs"]["main"] |= more
    jobs = await opened(host, load_entry(data))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    found: list[float] = []
    async for records in host.log.follow("task/task-1"):
        for event in (record.event for record in records):
            if isinstance(event, je.TaskDecided) and event.reason.startswith("[OPERATION] The next attempt begins in "):
                seconds = float(event.reason.split()[-2])
                found.append(seconds)
                clock.advance(seconds - 0.2)
                assert jobs.job(job).status == "running"
                clock.advance(0.3)
        if isinstance(records[-1].event, je.TaskEnded):
            break
    assert [round(each / wait, 1) for each, wait in zip(found, waits, strict=True)] == pytest.approx(
        [1.0] * len(waits), abs=0.21
    )


async def test_a_job_of_the_portal_does_not_wait(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    host = await open_host(Overloaded(None, None, None), clock=clock)
    data = msgspec.to_builtins(make({"it": task("Go.")}))
    del data["jobs"]["main"]["retrySeconds"]
    await opened(host, load_entry(data))
    command = jc.StartJob(job="main", cwd=str(tmp_path), strict=False)
    named: JobNamed = await host.do(command, c.Caller.inside("client:portal"))
    async with asyncio.timeout(30):
        assert isinstance((await until_ended(host.log, f"job/{named.job}"))[-1], je.JobEnded)

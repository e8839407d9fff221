"""A host ends while a job waits for a person or checks the work: the next one goes on there, and repeats nothing."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from portico import limits
from portico.features.jobs import Entry, Jobs
from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.events import Record
from portico.kernel.host import Host
from portico.kernel.state import QuestionPart
from portico.testing.fixtures import HostOpener
from tests.jobs.playing import NO, YES, Data, make, opened, task, until_ended
from tests.jobs.samples import ref, seq

PERSON = {"person": {"question": ["Good?"], "expires": 3600}}
RAN = {"command": "echo ran >> ran"}
ASK = {"kind": "Ask", "question": ["Way?"], "expires": 3600, "choices": [{"label": "left"}, {"label": "right"}]}
AFTER = task("[[say:ok]] Go on.")


def judged(condition: str) -> Data:
    return {"model": {"condition": [condition], "judges": [{"category": "driving"}]}}


def checked(*checks: Data, **more: Any) -> Data:
    return task("[[say:worked]]", criteria={"checks": list(checks), "failureAction": {"retryTimes": 2}}, **more)


CASES: dict[str, tuple[Entry, str]] = {
    "Ask": (make({"after": AFTER}, seq(ASK, ref("after"))), "left"),
    "person check": (make({"it": checked(PERSON), "after": AFTER}, seq(ref("it"), ref("after"))), "yes"),
    "behind others": (make({"it": checked(RAN, judged(YES), PERSON)}), "yes"),
    "with a condition": (
        make(
            {
                "it": task(
                    "[[say:worked]]",
                    criteria={
                        "checks": [RAN, PERSON],
                        "condition": [YES],
                        "runConditionInSameSession": True,
                        "failureAction": {"retryTimes": 0},
                    },
                )
            }
        ),
        "yes",
    ),
    "multi": (
        make(
            {
                "it": task(
                    "[[say:worked]]",
                    criteria={
                        "checks": [RAN, PERSON],
                        "condition": [YES],
                        "runConditionInSameSession": False,
                        "failureAction": {"retryTimes": 0},
                    },
                )
            }
        ),
        "yes",
    ),
    "output": (
        make(
            {"it": checked(PERSON, output="plan"), "after": task("[[say:ok]] With $plan.")},
            seq(ref("it"), ref("after")),
        ),
        "yes",
    ),
}


async def question(host: Host) -> e.QuestionAsked:
    """The first one that is asked."""
    async for records in host.log.follow():
        for record in records:
            if isinstance(record.event, e.QuestionAsked):
                return record.event
    raise AssertionError


async def answer(host: Host, asked: e.QuestionAsked, value: str) -> None:
    session = await host.get(host.session_of(asked.question))
    await session.questions.answer(asked.question, "accept", {"answer": value}, by="token:ann")


async def restarted(open_host: HostOpener, jobs: Jobs) -> tuple[Host, Jobs]:
    await jobs.close()
    host = await open_host()
    return host, await Jobs.open(host)


async def told(host: Host) -> list[Record]:
    return await host.log.read_all(limit=10_000)


def kinds(records: list[Record], *types: type) -> list[str]:
    return [type(record.event).__name__ for record in records if isinstance(record.event, types)]


def open_parts(host: Host, session: str) -> list[QuestionPart]:
    found = host.find(session)
    assert found is not None
    assert found.state.active is not None
    return [part for part in found.state.active.parts if isinstance(part, QuestionPart) and not part.done]


async def ended(host: Host, job: str = "job-1") -> str:
    async with asyncio.timeout(30):
        event = (await until_ended(host.log, f"job/{job}"))[-1]
    assert isinstance(event, je.JobEnded)
    return event.outcome


@pytest.mark.parametrize("early", [False, True], ids=["answered after", "answered before it is taken up"])
@pytest.mark.parametrize("case", CASES)
async def test_the_same_question_is_open_after_a_restart(
    open_host: HostOpener, tmp_path: Path, case: str, early: bool
) -> None:
    entry, value = CASES[case]
    host = await open_host()
    jobs = await opened(host, entry)
    await jobs.start_job("main", cwd=str(tmp_path), by="test")
    asked = await question(host)
    for _ in range(2):
        host, jobs = await restarted(open_host, jobs)
        [part] = open_parts(host, host.session_of(asked.question))
        assert (part.id, part.expires) == (asked.question, asked.expires)
        if not early:
            await jobs.recover()
    await answer(host, asked, value)
    await jobs.recover()
    assert await ended(host) == "succeeded"
    records = await told(host)
    assert kinds(records, e.QuestionAsked, je.WorkStarted, je.TaskStarted).count("QuestionAsked") == 1
    attempts = [record.event.attempt for record in records if isinstance(record.event, je.WorkStarted)]
    assert set(attempts) == {1}
    prompts = [record.event.message.text for record in records if isinstance(record.event, e.TurnStarted)]
    assert len(prompts) == len(set(prompts))
    assert not (tmp_path / "ran").exists() or (tmp_path / "ran").read_text() == "ran\n"
    assert not [each for each in host.list() if not each.closed]
    await jobs.close()


async def test_only_the_check_that_was_under_way_runs_again(open_host: HostOpener, tmp_path: Path) -> None:
    """Both commands count their runs; the second hangs until the host is another one."""
    slow = {"command": "echo slow >> slow; test -e free || { echo > begun; sleep 60; }"}
    os.mkfifo(tmp_path / "begun")
    host = await open_host()
    jobs = await opened(host, make({"it": checked(RAN, slow)}))
    await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await asyncio.to_thread((tmp_path / "begun").read_text)
    host, jobs = await restarted(open_host, jobs)
    (tmp_path / "free").touch()
    await jobs.recover()
    assert await ended(host) == "succeeded"
    assert ((tmp_path / "ran").read_text(), (tmp_path / "slow").read_text()) == ("ran\n", "slow\nslow\n")
    turns = [record.event.message.text for record in await told(host) if isinstance(record.event, e.TurnStarted)]
    assert turns == ["[[say:worked]]"]
    await jobs.close()


async def test_a_no_after_a_restart_leads_to_the_retry(open_host: HostOpener, tmp_path: Path) -> None:
    """In a retry, too: the third round asks a second time, and is the last."""
    again = {"retryTimes": 1, "additionalPrompt": ["Because: $check-output"]}
    host = await open_host()
    entry = make({"it": task("[[say:worked]]", criteria={"checks": [RAN, PERSON], "failureAction": again})})
    jobs = await opened(host, entry)
    await jobs.start_job("main", cwd=str(tmp_path), by="test")
    first = await question(host)
    host, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    session = await host.get(host.session_of(first.question))
    answers = {"answer": "no", "reason": "too long"}
    await session.questions.answer(first.question, "accept", answers, by="token:ann")
    second = await asked_after(host, first)
    host, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    await answer(host, second, "no")
    assert await ended(host) == "failed"
    records = await told(host)
    prompts = [record.event.message.text for record in records if isinstance(record.event, e.TurnStarted)]
    decided = [record.event.reason for record in records if isinstance(record.event, je.TaskDecided)]
    retry = "[[say:worked]]\n## You accidentally Stopped\nBecause: too long"
    assert [prompt for prompt in prompts if "worked" in prompt] == ["[[say:worked]]", retry]
    assert decided[-4:] == [
        "[CRITERIA] Person check failed: ann said no",
        "[CRITERIA] Criteria failed on retry #1",
        "[DECISION] Retry budget drained after 1 retries",
        "[TASK FAILED] Decision: task failed (criteria not satisfied)",
    ]
    assert (tmp_path / "ran").read_text() == "ran\nran\n"
    await jobs.close()


async def asked_after(host: Host, first: e.QuestionAsked) -> e.QuestionAsked:
    async for records in host.log.follow():
        for record in records:
            if isinstance(record.event, e.QuestionAsked) and record.event.question != first.question:
                return record.event
    raise AssertionError


async def test_a_failed_condition_is_not_judged_again(open_host: HostOpener, tmp_path: Path) -> None:
    """The reason of the judge is in the retry's prompt, although another process had heard it."""
    failure = {"retryTimes": 1, "additionalPrompt": ["Because: $reported-false-reason"]}
    criteria = {"condition": [NO], "runConditionInSameSession": False, "failureAction": failure}
    host = await open_host()
    jobs = await opened(host, make({"it": task("[[say:worked]]", criteria=criteria)}))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    async for page in host.log.follow("task/task-1"):
        if any(isinstance(record.event, je.TaskDecided) and record.event.check == "condition" for record in page):
            break
    host, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    assert await ended(host, job) == "failed"
    records = await told(host)
    prompts = [record.event.message.text for record in records if isinstance(record.event, e.TurnStarted)]
    assert any("Because: not good" in prompt for prompt in prompts)
    await jobs.close()


@pytest.mark.parametrize("case", ["Ask", "behind others"])
async def test_a_stop_after_a_restart_withdraws_the_question(open_host: HostOpener, tmp_path: Path, case: str) -> None:
    host = await open_host()
    jobs = await opened(host, CASES[case][0])
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    asked = await question(host)
    host, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    await jobs.stop_job(job, by="test")
    records = await told(host)
    ends = kinds(records, e.QuestionAnswered, je.TaskEnded, je.WorkEnded, je.JobEnded)
    assert ends == ["QuestionAnswered", "TaskEnded", "WorkEnded", "JobEnded"]
    session = await host.get(host.session_of(asked.question))
    assert (session.state.active, session.summary.closed) == (None, True)
    await jobs.close()


@pytest.mark.parametrize(("case", "outcome"), [("Ask", "failed"), ("person check", "failed")])
async def test_a_question_that_expired_while_no_host_ran(
    open_host: HostOpener, tmp_path: Path, case: str, outcome: str
) -> None:
    entry, _ = CASES[case]
    host = await open_host()
    jobs = await opened(host, entry)
    await jobs.start_job("main", cwd=str(tmp_path), by="test")
    asked = await question(host)
    await jobs.close()
    host = await open_host()
    host.now = lambda: (asked.expires or 0) + 1  # type: ignore[method-assign]
    jobs = await Jobs.open(host)
    await jobs.recover()
    if case == "person check":  # the retry asks again; nobody answers that either
        again = await asked_after(host, asked)
        assert again.question != asked.question
        await jobs.stop_job("job-1", by="test")
    else:
        assert await ended(host) == outcome
    reasons = [record.event.reason for record in await told(host) if isinstance(record.event, je.TaskDecided)]
    assert any("Nobody answered within 3600 seconds" in reason for reason in reasons)
    await jobs.close()


async def test_a_check_that_ends_the_host_each_time_is_asked_about(open_host: HostOpener, tmp_path: Path) -> None:
    """Going on in the middle counts as an interruption, too, if the host was not stopped in an orderly way."""
    host = await open_host()
    jobs = await opened(host, make({"it": checked({"command": "sleep 60"})}))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    for _ in range(limits.INTERRUPTIONS):
        async for records in host.log.follow():
            if any(isinstance(record.event, e.TurnEnded) for record in records):
                break
        await host.log.flush()
        crash(jobs)
        host = await open_host()
        jobs = await Jobs.open(host)
        await jobs.recover()
        if jobs.job(job).status == "waiting":
            break
    assert f"The host ended in the middle of 'it' ({limits.INTERRUPTIONS} times)" in jobs.job(job).reason
    await jobs.stop_job(job, by="test")
    await jobs.close()


def crash(jobs: Jobs) -> None:
    """Nothing more is written, as after a kill."""
    for run in jobs._runs.values():
        run.suspend()

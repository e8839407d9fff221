"""What a task reads out of a turn, out of the answer of a person, and out of a failed job."""

from pathlib import Path
from typing import Any

import pytest

from portico.features.jobs import events as je
from portico.features.jobs.entry import JOB_TOOLS
from portico.features.jobs.failure import failure
from portico.features.jobs.items import items_of
from portico.features.jobs.judge_check import person_checked, value_of, who
from portico.features.jobs.load import load_entry
from portico.features.jobs.state import JobSummary, WorkSummary
from portico.features.jobs.task_sessions import TaskCrash, detailed
from portico.features.jobs.tools import Report, argument_of, in_words, report_of, says_prerequisite_failed
from portico.kernel import events as e
from portico.kernel.events import Json, Message
from portico.kernel.host import Host
from portico.kernel.log.log import Log
from portico.kernel.question import Answer
from portico.kernel.state import CallPart, Part, TextPart, TurnState
from tests.jobs.playing import crashing, failing, make, opened, play, until_ended
from tests.jobs.samples import entry_data


def said(text: str, kind: e.PartKind = "text") -> TextPart:
    return TextPart("p", kind, text)


def call(tool: str, argument: str = "") -> CallPart:
    return CallPart("c", tool, input='{"argument": "' + argument + '"}' if argument else "")


def turn(*parts: Part) -> TurnState:
    return TurnState("t", Message("go"), "task:1", 0, 0, list(parts))


CALLED: dict[str, tuple[list[Part], Report]] = {
    "nothing": ([], Report([])),
    "only words": ([said("hello")], Report([], answer="hello")),
    "the last words count": ([said("one"), said("two"), said("  ")], Report([], answer="two")),
    "thoughts are no answer": ([said("hm", "reasoning"), said("careful", "notice")], Report([])),
    "a yes": ([call("job_boolean_true", "fits")], Report(["job_boolean_true"], verdict=True, reason="fits")),
    "a no": ([call("job_boolean_false", "bad")], Report(["job_boolean_false"], verdict=False, reason="bad")),
    "the last verdict counts": (
        [call("job_boolean_true", "a"), call("job_boolean_false", "b")],
        Report(["job_boolean_true", "job_boolean_false"], verdict=False, reason="b"),
    ),
    "under the name of a server": (
        [call("portico-job_boolean_true", "x")],
        Report(["job_boolean_true"], verdict=True, reason="x"),
    ),
    "a document": ([call("job_prepare_document", " /a/b.md ")], Report(["job_prepare_document"], document="/a/b.md")),
    "its first line": (
        [CallPart("c", "job_prepare_document", input='{"argument": "/a.md\\nand more"}')],
        Report(["job_prepare_document"], document="/a.md"),
    ),
    "a failed prerequisite": (
        [call("job_prerequisite_failed", "no git")],
        Report(["job_prerequisite_failed"], prerequisite_failed=True),
    ),
    "tools of its own": ([call("bash"), call("job_boolean_true")], Report(["bash", "job_boolean_true"], verdict=True)),
    "a line is no call": ([said("@job_boolean_true yes")], Report([], answer="@job_boolean_true yes")),
}


@pytest.mark.parametrize(("parts", "expected"), CALLED.values(), ids=CALLED)
def test_what_an_agent_reports_by_its_calls(parts: list[Part], expected: Report) -> None:
    assert report_of(turn(*parts), takes_tools=True) == expected


WRITTEN: dict[str, tuple[list[Part], Report]] = {
    "a yes": ([said("@job_boolean_true it fits")], Report(["job_boolean_true"], verdict=True, reason="it fits")),
    "indented": (
        [said("So:\n  @job_boolean_false no \nend")],
        Report(["job_boolean_false"], verdict=False, reason="no"),
    ),
    "without a reason": ([said("@job_boolean_true")], Report(["job_boolean_true"], verdict=True)),
    "in the middle of a line": ([said("write @job_boolean_true")], Report([])),
    "another word": ([said("@job_boolean_trueish")], Report([])),
    "in thoughts": ([said("@job_boolean_true", "reasoning")], Report([])),
    "over two parts": (
        [said("@job_prepare_document /a"), said("@job_boolean_true ok")],
        Report(["job_prepare_document", "job_boolean_true"], document="/a", verdict=True, reason="ok"),
    ),
    "beside its own tools": (
        [call("bash"), said("@job_boolean_true ok")],
        Report(["bash", "job_boolean_true"], verdict=True, reason="ok"),
    ),
}


@pytest.mark.parametrize(("parts", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_what_an_agent_without_tools_reports_by_its_lines(parts: list[Part], expected: Report) -> None:
    report = report_of(turn(*parts), takes_tools=False)
    expected.answer = report.answer
    assert report == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([call("job_prerequisite_failed")], True),
        ([call("mcp__portico__job_prerequisite_failed")], True),
        ([call("bash"), call("job_boolean_false")], False),
        ([said("@job_prerequisite_failed")], False),
        ([], False),
    ],
)
def test_a_failed_prerequisite_is_seen_while_the_turn_still_runs(parts: list[Part], expected: bool) -> None:
    assert says_prerequisite_failed(turn(*parts)) is expected


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ('{"argument": "x"}', "x"),
        ('{"n": 1, "why": "x", "z": "y"}', "x"),
        ('{"n": 1}', '{"n": 1}'),
        ("{}", "{}"),
        ("", ""),
        ('["x"]', '["x"]'),
        ("not JSON", "not JSON"),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_the_argument_of_a_report_is_its_first_text(text: str, argument: str) -> None:
    assert argument_of(text) == argument


def test_an_agent_without_tools_is_told_how_to_report() -> None:
    lines = in_words("Do it.").splitlines()
    assert lines[0] == "Do it."
    assert [line.split(" ")[0] for line in lines[3:]] == [f"@{name}" for name in JOB_TOOLS]


# -- people ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "name"),
    [("token:ann", "ann"), ("person:bob", "bob"), ("client:c1#7.x", "c1"), ("host", "host"), ("token:", "token:")],
)
def test_who_has_answered(by: str, name: str) -> None:
    assert who(by) == name


@pytest.mark.parametrize(
    ("answers", "value"),
    [
        ({"answer": "yes"}, "yes"),
        ({"answer": {"value": "yes"}}, "yes"),
        ({"answer": {"kind": "x", "value": {"value": "yes"}}}, "yes"),
        ({"answer": 7}, "7"),
        ({"answer": None}, ""),
        ({"answer": {}}, ""),
        ({"other": "yes"}, ""),
    ],
)
def test_an_answer_in_the_form_of_any_door(answers: Json, value: str) -> None:
    assert value_of(Answer("accept", answers, "token:ann"), "answer") == value


@pytest.mark.parametrize(
    ("response", "answers", "reason"),
    [
        ("accept", {"answer": "yes"}, "Person check passed: ann said yes"),
        ("accept", {"answer": "yes", "reason": "neat"}, "Person check passed: ann said yes: neat"),
        ("accept", {"answer": "no"}, "Person check failed: ann said no"),
        ("accept", {"answer": "no", "reason": "ugly"}, "Person check failed: ann said no: ugly"),
        ("accept", {}, "Person check failed: ann said no"),
        ("decline", {"answer": "yes"}, "Person check failed: ann declined"),
        ("cancel", {"reason": "later"}, "Person check failed: ann declined: later"),
    ],
)
def test_what_a_person_said_of_a_task(response: e.QuestionResponse, answers: Json, reason: str) -> None:
    checked = person_checked(Answer(response, answers, "token:ann"))
    assert (checked.passed, checked.reason) == ("passed" in reason, reason)
    assert bool(checked.output) is not checked.passed


# -- items -----------------------------------------------------------------------------------------------------


def each(**source: object) -> Any:
    work = {"kind": "Each", "body": {"kind": "Ref", "taskId": "write"}, **source}
    output = {"output": {"name": "list"}}
    return load_entry(entry_data(work, output)).jobs["main"].work


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("[]", []),
        ('[1, {"k": [2]}, null, "x"]', ["1", '{"k":[2]}', "null", "x"]),
    ],
)
async def test_the_items_of_an_output(value: str, items: list[str]) -> None:
    assert await items_of(each(output="list"), "/", {"list": value}) == items


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "and is not there."),
        ({"list": "{}"}, "and is not."),
        ({"list": "no"}, "and is not."),
        ({"list": ""}, "and is not."),
    ],
)
async def test_an_output_that_is_no_array_ends_the_job_with_its_name(values: dict[str, str], words: str) -> None:
    with pytest.raises(TaskCrash) as crash:
        await items_of(each(output="list"), "/", values)
    assert crash.value.detail == detailed("Error", f"The output 'list' should be a JSON array {words}")


async def test_the_items_of_a_list_are_those_of_the_entry() -> None:
    assert await items_of(each(items=["b", "a"]), "/", {"list": "[]"}) == ["b", "a"]


# -- why a job failed ------------------------------------------------------------------------------------------


def summary(*works: WorkSummary, **more: Any) -> JobSummary:
    return JobSummary("job-1", "main", "failed", 0, "/", "test", 1, works=list(works), **more)


def decided(reason: str, passed: bool | None = False) -> je.TaskDecided:
    return je.TaskDecided(reason=reason, passed=passed)


WHY: dict[str, tuple[list[e.Event], str]] = {
    "no decision": ([], "write: it failed"),
    "a criterion": ([decided("[CRITERIA] Decision: the file is missing")], "write: the file is missing"),
    "the cause and not the end": (
        [decided("[CRITERIA] Decision: no tests"), decided("[TASK FAILED] Decision: gave up")],
        "write: no tests",
    ),
    "the last cause": ([decided("[CRITERIA] one"), decided("[SESSION CRASHED] two")], "write: two"),
    "not what repeats it": (
        [decided("[CRITERIA] one"), decided("[CRITERIA] Criteria failed on retry 1")],
        "write: one",
    ),
    "only the end": ([decided("[TASK FAILED] Decision: gave up")], "write: gave up"),
    "not what passed": ([decided("[CRITERIA] bad"), decided("[CRITERIA] fine", True)], "write: bad"),
    "several lines": ([decided("[CRITERIA] Command failed:\n  x\n\ty")], "write: Command failed: x y"),
    "an error as clients know it": ([decided(f"[SESSION CRASHED] {detailed('Error', 'no model')}")], "write: no model"),
}


@pytest.mark.parametrize(("events", "expected"), WHY.values(), ids=WHY)
async def test_why_a_job_failed(log: Log, events: list[e.Event], expected: str) -> None:
    if events:
        await log.append("task/task-1", *events)
    done = WorkSummary(0, "read", "task-0", "succeeded", 0, 1)
    assert await failure(log, summary(done, WorkSummary(1, "write", "task-1", "failed", 0, 1)), "") == expected


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (summary(error=detailed("Error", "no entry")), "no entry"),
        (summary(error="plain"), "plain"),
        (summary(error="x" * 900), "x" * 500),
        (summary(reason="the loop has not ended"), "the loop has not ended"),
        (summary(), ""),
    ],
)
async def test_a_job_that_failed_without_a_failed_work(log: Log, job: JobSummary, expected: str) -> None:
    assert await failure(log, job, job.error) == expected


async def test_a_crash_names_its_step(log: Log) -> None:
    crashed = summary(WorkSummary(1, "write", "task-1", "failed", 0, 1))
    assert await failure(log, crashed, detailed("Error", "no model")) == "write: no model"


async def test_a_long_reason_keeps_the_last_lines(log: Log) -> None:
    """It was cut after 500 characters, and the line that tells what is wrong was not among them."""
    output = "\n".join(f"line {number}" for number in range(1000))
    await log.append("task/task-1", decided(f"[CRITERIA] Command failed with exit code 1: make test\n{output}"))
    found = await failure(log, summary(WorkSummary(1, "write", "task-1", "failed", 0, 1)), "")
    assert found.startswith("write: Command failed with exit code 1: make test … ")
    assert found.endswith(" line 998 line 999")
    assert len(found) <= 500


async def test_the_same_reason_everywhere(host: Host, tmp_path: Path) -> None:
    """The error of a crash was JSON, and a job whose task missed its criteria had none."""
    jobs = await opened(host, make({"no": failing()}))
    job, _ = await play(jobs, tmp_path)
    ended = (await until_ended(host.log, f"job/{job}"))[-1]
    assert isinstance(ended, je.JobEnded)
    reason = "no: toolExecuted check failed: missing tools: job_prepare_document"
    assert (ended.reason, ended.error, jobs.job(job).error) == (reason, "", reason)
    await jobs.install(make({"gone": crashing()}))
    job, _ = await play(jobs, tmp_path)
    assert jobs.job(job).error.startswith("gone: ")
    assert "{" not in jobs.job(job).error

"""Outputs between tasks, and the works Ask, Wait and Each: run, replayed after a restart, and drawn."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from portico.features.jobs import EntryError, Jobs, generate_chart, to_json
from portico.features.jobs import events as je
from portico.features.jobs.load import load_entry, parse
from portico.features.jobs.tree import draw_tree
from portico.kernel import events as e
from portico.kernel.errors import Conflict, NotFound
from portico.kernel.host import Host
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from tests.jobs.playing import Data, both_engines, failing, make, ok, opened, play, prompts, story, task, until_ended
from tests.jobs.samples import ref, seq
from tests.jobs.test_checks import answering

JSON = "[[say:```json\n%s\n```]]"


def ask(*choices: Data, **more: Any) -> Data:
    return {"kind": "Ask", "question": ["Which way?"], **({"choices": list(choices)} if choices else {}), **more}


def each(body: Data, **more: Any) -> Data:
    return {"kind": "Each", "body": body, **more}


def wait(**more: Any) -> Data:
    return {"kind": "Wait", **more}


async def sent(host: Host) -> list[str]:
    """The prompts of all tasks, in the order of tasks."""
    tasks = sorted((channel.removeprefix("task/") for channel in host.log.channels("task/")), key=lambda t: int(t[5:]))
    return [prompt for ident in tasks for prompt in await prompts(host, ident)]


# -- outputs ---------------------------------------------------------------------------------------------------


@both_engines
async def test_what_a_task_said_is_there_for_later_ones(host: Host, tmp_path: Path) -> None:
    tasks = {"plan": task("[[say:in three steps]]", output="plan"), "do": task("[[say:ok]] Follow $plan.")}
    jobs = await opened(host, make(tasks, seq(ref("plan"), ref("do"))))
    _, words = await play(jobs, tmp_path)
    assert words[-1] == "jobSucceeded"
    assert (await sent(host))[1] == "[[say:ok]] Follow in three steps."


async def test_an_output_with_a_schema_is_checked_and_tried_again(host: Host, tmp_path: Path) -> None:
    output = {"name": "plan", "schema": {"type": "array", "items": {"type": "string"}}}
    bad = {"plan": task("[[say:no JSON]]", output=output)}
    jobs = await opened(host, make(bad))
    _, words = await play(jobs, tmp_path)
    assert words[-1] == "jobFailed"
    told = await story(host.log, "task-1")
    assert any("there is no JSON in the answer" in word for word in told)
    assert told.count("[OPERATION] Starting retry #1") == 1


async def test_without_a_value_it_is_missing(host: Host, tmp_path: Path) -> None:
    tasks = {"plan": ok(output="plan"), "do": task("[[say:ok]] $plan")}
    await play(await opened(host, make(tasks, ref("do"))), tmp_path)
    assert await sent(host) == ["[[say:ok]] <MISSING>"]


# -- Ask -------------------------------------------------------------------------------------------------------


async def test_a_free_answer_is_there_for_later_prompts(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make({"do": task("[[say:ok]] Go $answer.")}, seq(ask(), ref("do"))))
    person = asyncio.ensure_future(answering(host, ("token:ann", {"answer": "left"})))
    _, words = await play(jobs, tmp_path)
    await person
    assert words == ["+0", "-0 ok", "+1", "-1 ok", "jobSucceeded"]
    assert (await sent(host))[-1] == "[[say:ok]] Go left."


@both_engines
@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("left", ["+0", "-0 ok", "+1", "-1 ok", "jobSucceeded"]),
        ("right", ["+0", "-0 ok", "+2", "-2 no", "jobFailed"]),
        ("neither", ["+0", "-0 ok", "jobSucceeded"]),
    ],
)
async def test_the_answer_chooses_the_branch(host: Host, tmp_path: Path, label: str, words: list[str]) -> None:
    left, right = {"label": "left", "work": ref("ok")}, {"label": "right", "work": ref("no")}
    choices: list[Data] = [left, right, {"label": "neither"}]
    jobs = await opened(host, make({"ok": ok(), "no": failing()}, ask(*choices)))
    person = asyncio.ensure_future(answering(host, ("token:ann", {"answer": label})))
    _, found = await play(jobs, tmp_path)
    await person
    assert found == words


async def test_nobody_answers_in_time(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make({"ok": ok()}, seq(ask(expires=0.05), ref("ok"))))
    _, words = await play(jobs, tmp_path)
    assert words == ["+0", "-0 no", "jobFailed"]
    assert "[TASK FAILED] Nobody answered within 0.05 seconds" in await story(host.log, "task-1")


@pytest.mark.parametrize("engine", ["temporal"], indirect=True)
async def test_on_temporal_the_same_question_stays_open_after_a_restart(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    jobs = await opened(host, make({"do": task("[[say:ok]] Go $answer.")}, seq(ask(), ref("do"))))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    async for records in host.log.follow():
        asked = [record.event.question for record in records if isinstance(record.event, e.QuestionAsked)]
        if asked:
            break
    await jobs.close()
    host = await open_host()
    jobs = await Jobs.open(host)
    await jobs.recover()
    session = await host.get(host.session_of(asked[0]))
    await session.questions.answer(asked[0], "accept", {"answer": "on"}, by="token:ann")
    async with asyncio.timeout(60):
        ended = (await until_ended(host.log, f"job/{job}"))[-1]
    assert isinstance(ended, je.JobEnded)
    assert (ended.outcome, (await sent(host))[-1]) == ("succeeded", "[[say:ok]] Go on.")
    written = await host.log.read_all(limit=10_000)
    assert [each.event.question for each in written if isinstance(each.event, e.QuestionAsked)] == asked
    await jobs.close()


async def test_a_failed_job_goes_on_with_its_answers(host: Host, tmp_path: Path) -> None:
    gate = "[[say:ok]] $answer"
    criteria = [{"files": {"exist": ["ready"]}}]
    plan = {"do": task(gate, criteria={"checks": criteria, "failureAction": {"retryTimes": 0}})}
    jobs = await opened(host, make(plan, seq(ask(), ref("do"))))
    person = asyncio.ensure_future(answering(host, ("token:ann", {"answer": "once"})))
    job, words = await play(jobs, tmp_path)
    await person
    assert words[-1] == "jobFailed"
    (tmp_path / "ready").touch()
    again = await jobs.resume(job, by="test")
    ended = (await until_ended(host.log, f"job/{again}"))[-1]
    assert isinstance(ended, je.JobEnded)
    assert (ended.outcome, (await sent(host))[-1]) == ("succeeded", "[[say:ok]] once")


# -- Wait ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", [wait(seconds=0.05), wait(until="2020-01-01T00:00:00+00:00")])
async def test_a_wait(host: Host, tmp_path: Path, work: Data) -> None:
    _, words = await play(await opened(host, make({"ok": ok()}, seq(work, ref("ok")))), tmp_path)
    assert words == ["+0", "-0 ok", "+1", "-1 ok", "jobSucceeded"]


async def test_a_wait_outlives_a_clock_that_was_ahead(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    """A wait of seconds that began while the clock stood a year ahead lasted that year."""
    clock.set_ahead = 365 * 86_400
    host = await open_host(clock=clock)
    jobs = await opened(host, make({"ok": ok()}, wait(seconds=0.05)))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    async for records in host.log.follow(f"job/{job}"):
        if any(isinstance(record.event, je.WorkStarted) for record in records):
            break
    clock.set_ahead = 0
    ending = asyncio.ensure_future(until_ended(host.log, f"job/{job}"))
    while not ending.done():
        clock.advance(0.05)
        await asyncio.wait({ending}, timeout=0.02)
    ended = ending.result()[-1]
    assert isinstance(ended, je.JobEnded)
    assert ended.outcome == "succeeded"


@both_engines
async def test_a_hook_ends_a_wait_whenever_it_came(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    work = seq(wait(hook="first"), wait(hook="second"), ref("ok"))
    jobs = await opened(host, make({"ok": ok()}, work))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await jobs.signal(job, "second", by="test")  # before anybody waits for it
    with pytest.raises(NotFound, match="There are: 'first', 'second'"):
        await jobs.signal(job, "third", by="test")
    async for records in host.log.follow(f"job/{job}"):
        if any(isinstance(record.event, je.WorkStarted) for record in records):
            break
    await jobs.close()
    host = await open_host()
    jobs = await Jobs.open(host)
    await jobs.recover()
    await jobs.signal(job, "first", by="test")
    ended = (await until_ended(host.log, f"job/{job}"))[-1]
    assert isinstance(ended, je.JobEnded)
    assert ended.outcome == "succeeded"
    with pytest.raises(Conflict, match="has ended"):
        await jobs.signal(job, "first", by="test")
    await jobs.close()


@both_engines
async def test_a_stop_ends_a_wait(host: Host, tmp_path: Path) -> None:
    jobs = await opened(host, make({"ok": ok()}, wait(seconds=3600)))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    async for records in host.log.follow(f"job/{job}"):
        if any(isinstance(record.event, je.WorkStarted) for record in records):
            break
    await jobs.stop_job(job, by="test")
    assert jobs.job(job).status == "canceled"


# -- Each ------------------------------------------------------------------------------------------------------


async def test_each_file(host: Host, tmp_path: Path) -> None:
    for name in ("b.md", "a.md", "c.txt"):
        (tmp_path / name).touch()
    jobs = await opened(host, make({"it": task("[[say:ok]] Read $item.")}, each(ref("it"), files="*.md")))
    _, words = await play(jobs, tmp_path)
    assert words == ["+0", "-0 ok", "+0", "-0 ok", "jobSucceeded"]
    assert await sent(host) == ["[[say:ok]] Read a.md.", "[[say:ok]] Read b.md."]


@both_engines
async def test_each_of_an_earlier_answer_with_values_of_its_own_lane(host: Host, tmp_path: Path) -> None:
    tasks = {
        "list": task(JSON % '["x", {"n": 1}]', output={"name": "found", "schema": {"type": "array"}}),
        "name": task("[[say:name of $item]]", output="name"),
        "use": task("[[say:ok]] $name"),
    }
    body = each(seq(ref("name"), ref("use")), output="found", concurrency=2)
    jobs = await opened(host, make(tasks, seq(ref("list"), body)))
    _, words = await play(jobs, tmp_path)
    assert words[-1] == "jobSucceeded"
    used = [prompt for prompt in await sent(host) if prompt.startswith("[[say:ok]]")]
    assert sorted(used) == ["[[say:ok]] name of x", '[[say:ok]] name of {"n":1}']


async def test_one_that_fails_fails_it_and_nothing_to_do_is_done(host: Host, tmp_path: Path) -> None:
    work = each(ref("no"), items=["a", "b"])
    jobs = await opened(host, make({"no": failing()}, work))
    assert (await play(jobs, tmp_path))[1][-1] == "jobFailed"
    await jobs.install(make({"no": failing()}, each(ref("no"), files="*.none")))
    assert (await play(jobs, tmp_path))[1] == ["jobSucceeded"]


@both_engines
async def test_what_is_no_list_ends_the_job(host: Host, tmp_path: Path) -> None:
    tasks = {"list": task("[[say:words]]", output="found"), "it": ok()}
    jobs = await opened(host, make(tasks, seq(ref("list"), each(ref("it"), output="found"))))
    job, words = await play(jobs, tmp_path)
    assert words[-2:] == ["jobFailed", "jobError"]
    assert "should be a JSON array and is not" in jobs.job(job).error


# -- entries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (ask({"label": "a"}, {"label": "a"}), '.choices[1].label: "a" is a choice already.'),
        (ask({"label": " "}), ".choices[0].label: Should say something."),
        (ask({"label": "a", "work": ref("none")}), '.choices[0].work.taskId: "none" is not a valid task name.'),
        (ask(question=["$no"]), ".question: Cannot find prompt variable: $no."),
        (wait(), ": Should have exactly one of seconds, until, hook."),
        (wait(seconds=1, until="2027-01-01T00:00:00+00:00"), ": Should have exactly one of seconds, until, hook."),
        (wait(hook=""), ".hook: Should be letters, digits"),
        (wait(until="tomorrow"), '.until: "tomorrow" should be a time such as'),
        (wait(until="2027-01-01T00:00:00"), '.until: "2027-01-01T00:00:00" should be a time such as'),
        (wait(seconds=0), ".seconds: Should be more than 0 but is 0."),
        (each(ref("it")), ": Should have exactly one of files, output, items."),
        (each(ref("it"), files="../*"), '.files: "../*" should be a path or glob below'),
        (each(ref("it"), output="none"), '.output: "none" is not the output of a task.'),
        (each(ref("none"), items=[]), '.body.taskId: "none" is not a valid task name.'),
    ],
)
def test_mistakes_in_works_are_named(work: Data, expected: str) -> None:
    with pytest.raises(EntryError) as caught:
        make({"it": ok()}, work)
    assert str(caught.value).startswith(f'entry.jobs["main"].work{expected}')


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("user-input", '.name: "user-input" is a variable already.'),
        ("item", '.name: "item" is a variable already.'),
        ("a1", '.name: "a1" should be letters'),
        ({"name": "a", "schema": {"type": 1}}, ".schema: Is not a JSON Schema"),
        ({}, ".name: Should exist."),
    ],
)
def test_mistakes_in_outputs_are_named(output: Any, expected: str) -> None:
    with pytest.raises(EntryError) as caught:
        make({"it": ok(output=output)})
    assert str(caught.value).startswith(f'entry.tasks["it"].output{expected}')


def test_the_names_of_values_are_free_in_entries_that_do_not_use_them() -> None:
    """Entries of the seeds stay what they were: `$answer` is a variable like any other there, or none."""
    with pytest.raises(EntryError, match=r"Cannot find prompt variable: \$answer"):
        make({"it": task("$answer")})
    data = parse(to_json(make({"it": ok()})))
    assert isinstance(data, dict)
    data |= {"promptVariables": {"answer": ["42"]}, "tasks": {"it": task("$answer")}}
    assert load_entry(data).tasks["it"].prompt == ["42"]


WORK = seq(
    ask({"label": "left", "work": ref("it")}, {"label": "right"}),
    wait(seconds=60),
    each(ref("it"), files="*.md"),
)


def test_it_is_numbered_drawn_and_written_as_the_others() -> None:
    entry = make({"it": ok()}, WORK)
    assert load_entry(parse(to_json(entry))) == entry, "validating twice gives the same"
    work = entry.jobs["main"].work
    assert draw_tree(work).splitlines() == [
        "Seq",
        "├─ [0] ask: Which way?",
        "│  └─ left: [1] it",
        "├─ [2] wait 60 s",
        "└─ Each of *.md (1 at a time)",
        "   └─ do: [3] it",
    ]
    nodes = generate_chart(work).nodes
    assert [(node.hint, node.label) for node in nodes] == [
        (("CondNode", 0), "Which way?"),
        (("TaskNode", 1), "it"),
        ("AltEnd", None),
        (("TaskNode", 2), "wait 60 s"),
        ("ParBegin", None),
        (("TaskNode", 3), "it"),
        ("ParEnd", None),
    ]
    arrows = [(arrow.to, arrow.label) for arrow in nodes[0].arrows or []]
    assert arrows == [(1, "left"), (2, "right")]

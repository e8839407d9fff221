"""Five workflows that teams use, written as the guide explains, and the examples of the guide itself."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs import events as je
from portico.features.jobs.entry import Entry
from portico.features.jobs.state import JobState, begin, plan_of
from portico.features.jobs.workflow.files import load_text
from portico.kernel import events as e
from portico.kernel.errors import AlreadyAnswered, Conflict
from portico.kernel.host import Host
from tests.jobs.playing import both_engines
from tests.jobs.workflow.playing import finish, run, start
from tests.jobs.workflow.test_folders import git, repository
from tests.jobs.workflow.test_steps import Service

GUIDE = Path(__file__).parents[3] / "docs/guide/workflows.md"
EXAMPLES = re.findall(r"^```(yaml|markdown)\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
__all__ = ["repository"]


@pytest.mark.parametrize(("kind", "text"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_of_the_guide_are_valid(kind: str, text: str) -> None:
    if text.startswith("- "):  # only steps, of which some use earlier ones
        text = "steps:\n  - {id: review, run: x}\n" + "".join(f"  {line}\n" for line in text.splitlines())
    load_text(text, "main.md" if kind == "markdown" else "main.yaml", "main")


@contextlib.asynccontextmanager
async def person(host: Host, **answers: str) -> AsyncIterator[list[e.QuestionAsked]]:
    """Answers questions by their first word."""
    asked: list[e.QuestionAsked] = []

    async def answer() -> None:
        async for records in host.log.follow():
            for event in (record.event for record in records):
                if isinstance(event, e.QuestionAsked):
                    asked.append(event)
                    session = await host.get(host.session_of(event.question))
                    given = {"answer": answers[event.text.split()[0]]}
                    with contextlib.suppress(AlreadyAnswered, Conflict):
                        await session.questions.answer(event.question, "accept", given, by="token:ann")

    answering = asyncio.ensure_future(answer())
    try:
        yield asked
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)


DEPENDENCIES = """
    about: Update packages one by one; leave a branch that is ready for review.
    inputs:
      only: {type: list, default: []}
    folder: worktree
    branch: "deps/{{ run.date }}"
    steps:
      - id: outdated
        run: echo '[{"name":"a","version":"2"},{"name":"b","version":"3"},{"name":"c","version":"9"}]'
        output: json
      - id: update
        each: "{{ steps.outdated.output }}"
        as: package
        name: "{{ package.name }}"
        parallel: 3
        folder: worktree
        may_fail: true
        steps:
          - run: echo {{ package.version }} > {{ package.name }}.version
          - prompt: "[[say:done]] Update {{ package.name }} to {{ package.version }}."
            check:
              - run: test $(cat {{ package.name }}.version) -lt 5
            retry: {times: 1}
      - id: tests
        run: cat *.version
    result: "{{ steps.update.output | length }} updated, {{ steps.update.failed | map(attribute='name') | join }} not"
"""


@both_engines
async def test_a_nightly_update_leaves_a_branch(host: Host, repository: Path) -> None:
    ended = await run(host, DEPENDENCIES, repository)
    assert (ended.status, ended.result) == ("succeeded", "2 updated, c not")
    assert re.fullmatch(r"deps/\d{4}-\d\d-\d\d", ended.branch)
    assert git(repository, "ls-tree", "--name-only", ended.branch).split() == ["a.version", "b.version", "list"]
    assert git(repository, "status", "--porcelain") == ""


async def sent(host: Host) -> list[str]:
    """The prompts of all agents."""
    records = await host.log.read_all(limit=10_000)
    return [
        record.event.message.text
        for record in records
        if isinstance(record.event, e.TurnStarted) and record.event.by.startswith("task:")
    ]


TRIAGE = """
    inputs:
      title: {from: /issue/title}
      url: {from: /url}
    steps:
      - id: triage
        prompt: |
          [[say:{"label": "bug"}]] Which label fits? {{ run.payload.issue.title }}
        output: {schema: {label: string}}
      - http:
          method: POST
          url: "{{ inputs.url }}"
          json: {labels: ["{{ steps.triage.output.label }}"], title: "{{ inputs.title }}"}
        retry: {times: 2, wait: 0}
"""


async def test_triage_from_a_webhook_replies_by_http(host: Host, tmp_path: Path) -> None:
    service = Service()
    async with await asyncio.start_server(service.serve, "127.0.0.1", 0) as server:
        jobs = await Jobs.open(host)
        jobs.services.allow_private = ["127.0.0.1"]
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        payload = {"issue": {"title": "Ignore [[crash]] all"}, "url": url}
        job = await start(jobs, TRIAGE, tmp_path, trigger={"payload": payload})
        ended = await finish(jobs, job)
    assert (ended.status, ended.error) == ("succeeded", "")
    assert (await sent(host))[0].rstrip().endswith('"Ignore \\u005b\\u005bcrash\\u005d\\u005d all"')
    assert service.seen == ['POST / HTTP/1.1 {"labels":["bug"],"title":"Ignore [[crash]] all"}']


FAN_OUT = """
    steps:
      - id: review
        each: "files:src/*.py"
        as: file
        name: "{{ file }}"
        parallel: 4
        may_fail: true
        steps:
          - prompt: "[[say:looked at {{ file }}]]"
            check: [{run: "! grep -q broken {{ file }}"}]
            retry: {times: 0}
      - id: merge
        run: printf '%s\\n' {{ steps.review.output | join(';') }}
    result:
      reviews: "{{ steps.merge.output.split(';') | length }}"
      failed: "{{ steps.review.failed | map(attribute='name') | list }}"
      why: "{{ steps.review.failed[0].reason }}"
"""


@both_engines
async def test_fan_out_over_twenty_files(host: Host, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for number in range(20):
        (tmp_path / f"src/f{number:02}.py").write_text("broken" if number % 7 == 3 else "fine")
    jobs = await Jobs.open(host)
    job = await start(jobs, FAN_OUT, tmp_path)
    ended = await finish(jobs, job)
    assert ended.result == {
        "reviews": 17,
        "failed": ["src/f03.py", "src/f10.py", "src/f17.py"],
        "why": "Command failed with exit code 1: ! grep -q broken src/f03.py",
    }
    failed = await jobs.rows(job, "failed")
    assert [(row.items, row.kind, row.status) for row in failed] == [
        ([f"src/f{number}.py"], "prompt", "failed") for number in ("03", "10", "17")
    ]
    assert len(await jobs.rows(job)) == 21


PLAN = """
    inputs: {issue: {}}
    folder: worktree
    steps:
      - {id: plan, prompt: "[[say:First this, then that.]] Plan: {{ inputs.issue }}"}
      - {id: approval, ask: Approve this plan?, show: ["{{ steps.plan.output }}"], choices: [Approve, Reject]}
      - if: "{{ steps.approval.answer == 'Approve' }}"
        steps:
          - run: echo 1 > rounds
          - {id: work, prompt: "[[say:done]] Implement: {{ steps.plan.output }}", check: [{run: test -s rounds}]}
          - loop: {most: 4, until: "{{ steps.review.output.approved }}"}
            steps:
              - id: review
                model: gpt-5.2
                prompt: >-
                  [[say:{"approved": {{ steps.seen.output == '2' }}, "findings": ["f"]}]]
                output: {schema: {approved: boolean, findings: [string]}}
              - id: fix
                if: "{{ not steps.review.output.approved }}"
                prompt: "[[say:fixed]] Fix these: {{ steps.review.output.findings }}"
              - {id: seen, run: echo 2}
    result: "{{ steps.approval.answer }}, {{ steps.review.output.approved }}"
"""


@both_engines
@pytest.mark.parametrize(("answer", "result"), [("Approve", "Approve, true"), ("Reject", "Reject, ")])
async def test_plan_approve_implement_review(host: Host, repository: Path, answer: str, result: str) -> None:
    jobs = await Jobs.open(host)
    text = (
        PLAN if answer == "Approve" else PLAN.replace('answer }}, {{ steps.review.output.approved }}"', 'answer }}, "')
    )
    async with person(host, Approve=answer) as asked:
        ended = await finish(jobs, await start(jobs, text, repository, issue="Do it."))
    assert (ended.error, ended.result) == ("", result)
    assert [(each.text, each.evidence[0]["text"]) for each in asked] == [
        ("Approve this plan?", "First this, then that.")
    ]


async def test_research_leaves_its_result(host: Host, tmp_path: Path) -> None:
    text = """
        inputs: {topic: {}}
        budget: {dollars: 2}
        timeout: 600
        steps:
          - {id: report, prompt: "[[say:All about {{ inputs.topic }}.]]", timeout: 60}
        result: "{{ steps.report.output }}"
    """
    ended = await run(host, text, tmp_path, topic="bees")
    assert (ended.status, ended.result) == ("succeeded", "All about bees.")


async def test_values_from_a_payload_are_quoted_wherever_they_reach_a_prompt(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    text = """
        inputs: {title: {from: /title}, own: {default: "[[say:x]]"}}
        steps:
          - prompt: "{{ inputs.title }}"
          - each: "{{ run.payload.list }}"
            steps: [{prompt: "{{ item.name }}"}]
          - prompt: "{{ run.payload }}"
          - prompt: "{{ inputs.own }}"
        result: "{{ run.payload.list[0] }}"
    """
    payload = {"title": "[[crash]]", "list": [{"name": "[[crash]]"}]}
    ended = await finish(jobs, await start(jobs, text, tmp_path, trigger={"payload": payload}))
    assert (ended.status, ended.result) == ("succeeded", {"name": "[[crash]]"})
    *quoted, own = await sent(host)
    assert own == "[[say:x]]"
    assert ["[[" in each for each in quoted] == [False, False, False]


async def test_a_step_with_a_label_needs_a_host_with_it(host: Host, tmp_path: Path) -> None:
    entry = load_text("label: gpu\nsteps: [{run: 'true'}, {id: b, run: 'true', label: big}]", "main.yaml", "main")
    jobs = await Jobs.open(host)
    assert jobs._lacks_label(_state(entry))


def _state(entry: Entry) -> JobState:
    started = je.JobStarted("job-1", "main", plan_of(entry, "main"), "/", "me")
    return begin(started, 0)


ENDS = {
    "a timeout": (
        "steps: [{name: slow, run: sleep 60, timeout: 0.1}]",
        "slow: task failed (not done within 0.1 seconds)",
    ),
    "a wrong exit code": (
        "steps: [{name: odd, run: exit 3, exit: [0, 1]}]",
        "odd: The command failed with exit code 3",
    ),
    "no json": ("steps: [{name: data, run: echo no, output: json}]", "data: The output is not JSON: 'no'"),
    "another shape": (
        "steps: [{name: data, run: 'echo {}', output: {schema: {a: string}}}]",
        "data: The output does not fit its schema: $: 'a' is a required property",
    ),
    "no list": ("steps: [{id: e, each: '{{ run.id }}', steps: [{run: 'true'}]}]", "e: 'each' should be a list"),
    "an endless loop": (
        "steps: [{loop: {most: 2, until: '{{ false }}'}, steps: [{run: 'true'}]}]",
        "The loop has not ended after 2 rounds (most), so it failed",
    ),
    "a value that is missing": (
        "steps: [{id: a, if: '{{ false }}', run: x}, {name: use, run: 'echo {{ steps.a.output.b }}'}]",
        "use: 'None' has no attribute 'b'",
    ),
    "a crash of the agent": (
        "steps: [{name: think, prompt: '[[crash]]', retry: {times: 1, wait: 0}}]",
        "think: ",
    ),
    "the whole job": ("timeout: 0.2\nsteps: [{name: slow, run: sleep 60}]", "The job was not done within 0.2 seconds."),
}


@pytest.mark.parametrize(("text", "error"), ENDS.values(), ids=ENDS)
async def test_why_a_job_failed(host: Host, tmp_path: Path, text: str, error: str) -> None:
    ended = await run(host, text, tmp_path)
    assert (ended.status, error in ended.error) == ("failed", True), ended.error


async def test_the_environment_of_a_step(host: Host, tmp_path: Path) -> None:
    text = """
        inputs: {who: {default: Ann}}
        env: {A: "{{ inputs.who }}", B: far}
        steps:
          - env: {B: near}
            id: shown
            run: echo $A $B $PORTICO_INPUTS_WHO $PORTICO_RUN_ID; cat
            stdin: "{{ inputs.who }} again"
          - {id: list, run: [echo, "{{ inputs.who }};", "$A"]}
        result: "{{ steps.shown.output }} {{ steps.list.output }}"
    """
    assert (await run(host, text, tmp_path)).result == "Ann near Ann job-1\nAnn again Ann; $A"

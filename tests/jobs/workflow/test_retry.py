"""Workflows that run again: resumed, or from a step, with the same file or a changed one."""

from pathlib import Path
from textwrap import dedent

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs.retry import kept_before
from portico.features.jobs.state import JobSummary
from portico.features.jobs.workflow.files import load_text, load_workflow
from portico.features.jobs.workflow.problem import WorkflowError
from portico.kernel.errors import BadRequest, NotFound
from portico.kernel.host import Host
from tests.jobs.playing import both_engines
from tests.jobs.workflow.playing import finish, start
from tests.jobs.workflow.test_steps import save

TEXT = """
    inputs: {word: {default: x}}
    steps:
      - {id: first, run: "echo first >> ran; echo one"}
      - id: items
        each: [a, b, c]
        steps:
          - {id: inner, run: "echo {{ item }} >> ran; echo {{ item }}; test {{ item }} != b || test -e fixed"}
      - {id: last, run: "echo last >> ran; echo {{ steps.first.output }} {{ steps.items.output | join }}"}
    result: "{{ steps.last.output }} {{ inputs.word }}"
"""


async def failed(jobs: Jobs, folder: Path, text: str = TEXT) -> str:
    job = await (start(jobs, text, folder, word="w") if text is TEXT else start(jobs, text, folder))
    assert (await finish(jobs, job)).status == "failed"
    (folder / "fixed").touch()
    return job


def ran(folder: Path) -> list[str]:
    return (folder / "ran").read_text().split()


async def again(jobs: Jobs, job: str, step: str = "", text: str = "") -> JobSummary:
    return await finish(jobs, await jobs.retry(job, by="test", step=step, workflow=dedent(text)))


@both_engines
async def test_a_resumed_job_runs_only_what_failed(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    job = await failed(jobs, tmp_path)
    assert ran(tmp_path) == ["first", "a", "b", "c"]
    ended = await finish(jobs, await jobs.resume(job, by="test"))
    assert (ended.status, ended.result, ended.origin) == ("succeeded", "one abc w", job)
    assert ran(tmp_path) == ["first", "a", "b", "c", "b", "last"]


FROM = {
    "last": ["last"],
    "items": ["a", "b", "c", "last"],
    "inner": ["a", "b", "c", "last"],
    "first": ["first", "a", "b", "c", "last"],
    "": ["first", "a", "b", "c", "last"],
}


@pytest.mark.parametrize("step", FROM)
async def test_a_job_runs_again_from_a_step(host: Host, tmp_path: Path, step: str) -> None:
    jobs = await Jobs.open(host)
    (tmp_path / "fixed").touch()
    job = await start(jobs, TEXT, tmp_path, word="w")
    assert (await finish(jobs, job)).status == "succeeded"
    (tmp_path / "ran").unlink()
    ended = await again(jobs, job, step)
    assert (ended.status, ended.result) == ("succeeded", "one abc w")
    assert ran(tmp_path) == FROM[step]


async def test_a_changed_file_keeps_the_results_of_steps_with_the_same_id(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    job = await failed(jobs, tmp_path)
    (tmp_path / "ran").unlink()
    text = """
        inputs: {word: {default: x}, more: {default: m}}
        steps:
          - {id: added, run: "true"}
          - steps:
              - {id: first, run: "echo changed"}
              - id: items
                each: [a, b, c]
                steps: [{id: inner, run: "echo {{ item }} >> ran; echo {{ item }}!"}]
          - {id: after, run: "echo {{ steps.first.output }} {{ steps.items.output | join }} {{ inputs.more }}"}
        result: "{{ steps.after.output }}"
    """
    ended = await again(jobs, job, "items", text)
    assert (ended.status, ended.result) == ("succeeded", "one a!b!c! m")
    assert ran(tmp_path) == ["a", "b", "c"]


async def test_items_that_are_kept_are_not_computed_again(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    text = """
        steps:
          - id: items
            each: "files:*.txt"
            steps:
              - {id: one, run: "echo one >> ran"}
              - {id: two, run: "echo two >> ran; test -e fixed"}
    """
    for name in "ab":
        (tmp_path / f"{name}.txt").touch()
    job = await failed(jobs, tmp_path, text)
    (tmp_path / "c.txt").touch()
    (tmp_path / "ran").unlink()
    ended = await again(jobs, job, "two")
    assert (ended.status, ran(tmp_path)) == ("succeeded", ["two", "two"])


async def test_what_cannot_be_retried(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    job = await failed(jobs, tmp_path)
    with pytest.raises(NotFound, match=r"Did you mean .inner."):
        await jobs.retry(job, by="test", step="iner")
    with pytest.raises(WorkflowError):
        await jobs.retry(job, by="test", workflow="steps: []")
    running = await start(jobs, "steps: [{wait: 60}]", tmp_path)
    with pytest.raises(BadRequest, match="has not ended"):
        await jobs.retry(running, by="test", step="step_1")
    await jobs.stop_job(running, by="test")


async def test_rounds_of_a_loop_are_kept_by_their_number(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    text = """
        steps:
          - loop: {most: 3, until: "{{ steps.count.output == 'xx' }}"}
            steps:
              - {id: count, run: "printf x >> count; cat count"}
          - {id: end, run: "false"}
    """
    job = await start(jobs, text, tmp_path)
    assert (await finish(jobs, job)).status == "failed"
    state = await jobs.load(job)
    kept = kept_before(state, load_text(dedent(text), "main.yaml", "main").jobs["main"], "end")
    assert kept.done == {"r.0#0": True, "r.0#1": True}
    changed = text.replace("- loop:", "- {id: new, run: 'true'}\n          - loop:")
    kept = kept_before(state, load_text(dedent(changed), "main.yaml", "main").jobs["main"], "end")
    assert kept.done == {"r.1#0": True, "r.1#1": True}


async def test_a_plan_of_a_retry_shows_the_differences_and_what_is_kept(host: Host, tmp_path: Path) -> None:
    """Nothing starts. The file counts if the job ran from it, or a given text."""
    save(tmp_path, "main.yaml", TEXT)
    path = tmp_path / ".portico/jobs/main.yaml"
    jobs = await Jobs.open(host)
    entry = load_workflow(path)
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test", entry=entry, inputs={"word": "w"})
    assert (await finish(jobs, job)).status == "failed"
    same = await jobs.plan_retry(job, "last", "")
    assert (same.differences, same.kept, same.text) == ("", ["first", "inner"], dedent(TEXT))
    path.write_text(dedent(TEXT).replace("echo one", "echo two"))
    changed = await jobs.plan_retry(job, "items", "")
    assert (changed.kept, changed.text) == (["first"], path.read_text())
    assert [line for line in changed.differences.splitlines() if line[0] in "+-"] == [
        "--- as it ran",
        "+++ now",
        '-  - {id: first, run: "echo first >> ran; echo one"}',
        '+  - {id: first, run: "echo first >> ran; echo two"}',
    ]
    given = await jobs.plan_retry(job, "items", dedent(TEXT).replace("echo one", "echo three"))
    assert "echo three" in given.differences
    with pytest.raises(WorkflowError):
        await jobs.plan_retry(job, "items", "steps: [")
    with pytest.raises(NotFound):
        await jobs.plan_retry(job, "nothing", "")
    assert [summary.id for summary in jobs.history()] == [job]

"""Workflows on Temporal: histories that are replayed and cut. And what steps store: outputs, artifacts, results."""

from pathlib import Path
from typing import Any

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs import events as je
from portico.features.jobs import temporal_messages as messages
from portico.features.jobs.artifacts import ARTIFACT_BYTES, keep_artifacts
from portico.features.jobs.result import StepResult, shown
from portico.features.jobs.state import JobState, begin, plan_of
from portico.features.jobs.step import FlowStep, RunDo
from portico.features.jobs.steps.outcome import OUTPUT_CHARS, StepOutcome, with_output
from portico.features.jobs.workflow.files import load_text
from portico.features.secrets.mask import Mask
from portico.kernel.host import Host
from tests.jobs.test_temporal import history, on_temporal, replayer
from tests.jobs.workflow.playing import finish, start
from tests.jobs.workflow.test_run import WHOLE

LONG = """
    steps:
      - id: items
        each: "{{ range(12) | list }}"
        parallel: 2
        steps: [{id: one, run: "echo {{ item }}"}]
      - loop: {most: 6, until: "{{ steps.count.output == 'xxx' }}"}
        steps: [{id: count, run: "printf x >> count; cat count"}]
    result: ["{{ steps.items.output | join(',') }}", "{{ steps.count.output }}"]
"""


@on_temporal
@pytest.mark.parametrize("text", [WHOLE, LONG], ids=["every kind", "long"])
async def test_a_history_of_a_workflow_is_replayed_the_same_way(host: Host, tmp_path: Path, text: str) -> None:
    jobs = await Jobs.open(host)
    job = await start(jobs, text, tmp_path)
    assert (await finish(jobs, job)).status == "succeeded"
    await replayer().replay_workflow(await history(jobs, job))


@on_temporal
async def test_a_long_workflow_goes_on_in_a_new_history(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "HISTORY_QUIET", 30)
    jobs = await Jobs.open(host)
    job = await start(jobs, LONG, tmp_path)
    ended = await finish(jobs, job)
    assert (ended.status, ended.result) == ("succeeded", [",".join(map(str, range(12))), "xxx"])
    last = await history(jobs, job)
    assert last.events[0].workflow_execution_started_event_attributes.continued_execution_run_id


# -- what a step stores --------------------------------------------------------------------------------------------


def step(**more: Any) -> FlowStep:
    return FlowStep(id="a", name="a", do=RunDo(command="x"), **more)


OUTPUTS: dict[str, tuple[FlowStep, str, bool, Any]] = {
    "text": (step(), "a\n\n", True, "a"),
    "nothing": (step(), "", True, ""),
    "json": (step(output="json"), '{"a": [1]}\n', True, {"a": [1]}),
    "fenced json": (step(output="json"), "So:\n```json\n[1]\n```\n", True, [1]),
    "no json": (step(output="json"), "a", False, "a"),
    "fits": (step(output="json", schema={"type": "array"}), "[1]", True, [1]),
    "does not fit": (step(output="json", schema={"type": "array"}), "{}", False, {}),
    "too long": (step(), "x" * (OUTPUT_CHARS + 1), False, ""),
}


@pytest.mark.parametrize(("given", "text", "passed", "output"), OUTPUTS.values(), ids=OUTPUTS)
def test_the_output_of_a_step(given: FlowStep, text: str, passed: bool, output: Any) -> None:
    found = with_output(given, text, StepOutcome(True))
    assert (found.passed, found.output) == (passed, output)
    assert bool(found.reason) is not passed


async def test_artifacts_are_files_that_match(host: Host, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/a.md").write_text("the key is s3cret-value")
    (tmp_path / "reports/b.txt").write_text("b")
    (tmp_path / "reports/large.md").write_bytes(b"x" * (ARTIFACT_BYTES + 1))
    (tmp_path / "reports/link.md").symlink_to("/etc/hostname")
    mask = Mask({"KEY": ["s3cret-value"]})
    kept = await keep_artifacts(host.log, tmp_path, ["reports/*.md"], mask)
    assert [each.path for each in kept] == ["reports/a.md"]
    assert await host.log.blob(kept[0].blob) == b"the key is [redacted: KEY]"
    assert await keep_artifacts(host.log, tmp_path, [], mask) == []


def state() -> JobState:
    entry = load_text("steps: [{run: x}]", "main.yaml", "main")
    return begin(je.JobStarted("job-1", "main", plan_of(entry, "main"), "/", "me"), 0)


def test_the_result_of_items_refers_to_their_last_steps() -> None:
    job = state()
    job.keep("r.0*0", "lane", '{"item":1,"name":"one","variable":"item"}')
    job.keep("r.0*0.0", "@inner", '{"outcome":"succeeded","output":"first"}')
    job.keep("r.0*0.1", "@last", '{"outcome":"succeeded","output":"out","changes":["a"]}')
    job.keep("r.0*1.0", "@inner", '{"outcome":"failed","reason":"why"}')
    found = shown(job, StepResult("failed", lanes=[True, False, False], path="r.0*"))
    assert (found["output"], found["changes"]) == (["out"], ["a"])
    assert [(each["name"], each["item"], each["outcome"]) for each in found["items"]] == [
        ("one", 1, "succeeded"),
        ("", None, "failed"),
        ("", None, "stopped"),
    ]
    assert [each["reason"] for each in found["failed"]] == ["why", ""]


def test_a_later_round_hides_an_earlier_one_and_lanes_are_separate() -> None:
    job = state()
    job.keep("r.0#0.0", "@a", "0")
    job.keep("r.0#1.0", "@a", "1")
    job.keep("r.1*0.0", "@b", "lane 0")
    job.keep("r.1*1.0", "@b", "lane 1")
    assert [job.nearest(path, "@a") for path in ("r.0#0.1", "r.0#1.1", "r.2")] == ["0", "1", "1"]
    assert [job.nearest(path, "@b") for path in ("r.1*0.1", "r.1*1.1")] == ["lane 0", "lane 1"]
    assert job.nearest("r", "@c") is None

"""Automations that start workflows: their inputs from the plan and from the payload of a hook, and the time they are
for."""

from pathlib import Path
from typing import Any

import pytest

from portico.features.automations import commands as ac
from portico.features.automations.automations import Automations
from portico.features.jobs.state import JobSummary
from portico.kernel.errors import BadRequest
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from tests.automation.playing import ME, made, opened, pass_time, settle, until_over
from tests.automation.test_triggers import deliver

WORKFLOW = """
inputs:
  title: {from: /issue/title}
  number: {type: number, from: /issue/number, default: 0}
  labels: {type: list, default: []}
steps:
  - id: show
    run: printf '%s|' {{ inputs.title }} {{ inputs.number }} {{ run.scheduled_at }}
  - id: think
    prompt: "Read {{ inputs.title }} {{ inputs.labels }}"
result:
  shown: "{{ steps.show.output }}"
  labels: "{{ inputs.labels }}"
"""


def save(folder: Path, text: str = WORKFLOW) -> None:
    path = folder / ".portico/jobs/triage.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def job_of(automations: Automations, run: str) -> JobSummary:
    ended = await until_over(automations, run)
    assert automations.jobs is not None
    assert ended.job, ended.reason
    return automations.jobs.job(ended.job)


async def prompt_of(automations: Automations, job: JobSummary) -> str:
    (session,) = [each for each in automations.host.catalogue.live() if each.summary.by.startswith("task:")]
    await session.load()
    return session.state.turns[0].message.text


async def test_a_hook_fills_the_inputs_of_a_workflow(open_host: HostOpener, tmp_path: Path) -> None:
    save(tmp_path)
    automations = await opened(await open_host(), tmp_path)
    action = {"job": "triage", "cwd": str(tmp_path), "inputs": {"labels": "a,b"}}
    await made(automations, "triage", hook={}, job=action)
    title = "It's [[broken]] $(touch x)"
    run = await deliver(automations, "triage", {"issue": {"title": title, "number": 7}})
    job = await job_of(automations, run)
    assert (job.status, job.error) == ("succeeded", "")
    shown, number, scheduled, _ = job.result["shown"].split("|")
    assert (shown, number, job.result["labels"]) == (title, "7", ["a", "b"])
    assert scheduled.endswith("+00:00")
    assert not (tmp_path / "x").exists()
    text = await prompt_of(automations, job)
    assert (title in text, "\\u005b\\u005bbroken" in text) == (False, True), "a stranger's text is quoted data"


async def test_inputs_survive_a_restart_as_data_of_a_stranger(open_host: HostOpener, tmp_path: Path) -> None:
    """Marked values could not be written to the log: the job did not start."""
    save(tmp_path)
    automations = await opened(await open_host(), tmp_path)
    await made(automations, "triage", hook={}, job={"job": "triage", "cwd": str(tmp_path)})
    run = await deliver(automations, "triage", {"issue": {"title": "<b>"}})
    await job_of(automations, run)
    automations = await opened(await open_host(), tmp_path)
    assert automations.jobs is not None
    (job,) = automations.jobs.history()
    assert await automations.jobs.inputs_of(job.id) == {"title": "<b>", "number": 0, "labels": []}


async def test_a_run_knows_the_time_that_it_is_for(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    save(tmp_path, "steps: [{run: 'true'}]\nresult: '{{ run.scheduled_at }}'\n")
    automations = await opened(await open_host(clock=clock), tmp_path)
    await made(automations, "daily", schedule={"every": "10m"}, job={"job": "triage", "cwd": str(tmp_path)})
    named = await automations.host.do(ac.RunAutomation(automation="daily", at="2020-01-31T07:00"), ME)
    assert (await job_of(automations, named.run)).result == "2020-01-31T07:00:00+00:00"
    await pass_time(clock, 600)
    runs = await settle(automations, 2)
    due = (await job_of(automations, runs[-1].id)).result
    assert due != "2020-01-31T07:00:00+00:00"


@pytest.mark.parametrize(
    ("trigger", "action", "words"),
    [
        ({"schedule": {"every": "10m"}}, {}, "'title' is missing"),
        ({"hook": {}}, {}, ""),
        ({}, {}, ""),
        ({"schedule": {"every": "10m"}}, {"inputs": {"title": "x"}}, ""),
        ({"schedule": {"every": "10m"}}, {"input": "x"}, ""),
        ({"schedule": {"every": "10m"}}, {"inputs": {"title": "x", "number": "many"}}, "'number' should be a number"),
        ({"hook": {}}, {"inputs": {"titel": "x"}}, "There is no input 'titel'"),
    ],
)
async def test_the_inputs_of_a_plan_are_checked(
    open_host: HostOpener, tmp_path: Path, trigger: dict[str, Any], action: dict[str, Any], words: str
) -> None:
    save(tmp_path)
    automations = await opened(await open_host(), tmp_path)
    job = {"job": "triage", "cwd": str(tmp_path), **action}
    if not words:
        await made(automations, "it", job=job, **trigger)
        return
    with pytest.raises(BadRequest, match=words) as refused:
        await made(automations, "it", job=job, **trigger)
    assert refused.value.field == "job.inputs"


@pytest.mark.parametrize(
    ("spec", "inputs", "refused"),
    [
        ("{type: secret}", {}, True),
        ("{type: secret}", {"token": "c4nary-value"}, True),
        ("{type: secret, required: false}", {"token": "c4nary-value"}, True),
        ("{type: secret, required: false}", {}, False),
    ],
)
async def test_an_automation_stores_no_secret_input(
    open_host: HostOpener, tmp_path: Path, spec: str, inputs: dict[str, Any], refused: bool
) -> None:
    save(tmp_path)
    (tmp_path / ".portico/jobs/deploy.yaml").write_text(f"inputs: {{token: {spec}}}\nsteps: [{{run: x}}]\n")
    host = await open_host()
    automations = await opened(host, tmp_path)
    job = {"job": "deploy", "cwd": str(tmp_path), "inputs": inputs}
    if refused:
        with pytest.raises(BadRequest, match="portico secrets set NAME"):
            await made(automations, "it", job=job, schedule={"every": "10m"})
    else:
        await made(automations, "it", job=job, schedule={"every": "10m"})
    stored = [record.data for record in await host.log.read_all(after=0, limit=1_000)]
    assert [data for data in stored if b"c4nary-value" in data] == []


async def test_a_job_of_an_entry_has_no_inputs_by_name(open_host: HostOpener, tmp_path: Path) -> None:
    automations = await opened(await open_host(), tmp_path, jobs=True)
    with pytest.raises(BadRequest, match="is no workflow"):
        await made(automations, "it", job={"job": "main", "inputs": {"a": "b"}})


async def test_a_mistake_in_the_workflow_is_named_with_its_line(open_host: HostOpener, tmp_path: Path) -> None:
    save(tmp_path, "steps:\n  - {runn: x}\n")
    automations = await opened(await open_host(), tmp_path)
    with pytest.raises(BadRequest, match=r"triage\.yaml:2"):
        await made(automations, "it", job={"job": "triage", "cwd": str(tmp_path)})

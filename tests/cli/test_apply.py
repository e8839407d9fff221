"""The triggers of a workflow file are registered when a person says so, and a mistake in them is named."""

import json
from pathlib import Path

import pytest

from portico.cli.apply_automations import plans_of
from portico.features.jobs.recipes import copy_recipe
from portico.kernel.errors import BadRequest, NotFound
from tests.process import HostProcess, inside

HOOK = "on: {hook: {}}\nsteps: [{id: a, run: 'echo {{ run.payload.x }}'}]\nresult: '{{ steps.a.output }}'"


def save(project: Path, name: str, text: str) -> None:
    (project / ".portico/jobs").mkdir(parents=True, exist_ok=True)
    (project / ".portico/jobs" / f"{name}.yaml").write_text(text)


@pytest.mark.parametrize(
    ("text", "names", "words"),
    [
        ("steps: [{run: x}]", [], "has 'on'"),
        ("steps: [{run: x}]", ["it"], "has no 'on', so nothing starts it"),
        ("on: [{schedule: {corn: x}}]\nsteps: [{run: x}]", [], "on[0].schedule: Object contains unknown field `corn`"),
        ("on: [{chron: x}]\nsteps: [{run: x}]", [], "Triggers: schedule, hook, files, after."),
        ("on: {hook: 5}\nsteps: [{run: x}]", [], "on[0].hook: Expected `object"),
    ],
)
def test_a_mistake_in_the_triggers_is_named(tmp_path: Path, text: str, names: list[str], words: str) -> None:
    save(tmp_path, "it", text)
    with pytest.raises(BadRequest) as refused:
        plans_of(tmp_path, names)
    assert words in refused.value.message


def test_the_automations_of_a_project(tmp_path: Path) -> None:
    for name in ("triage", "dependencies", "research"):
        copy_recipe(name, tmp_path)
    assert list(plans_of(tmp_path, [])) == ["dependencies", "triage"]
    assert list(plans_of(tmp_path, ["triage"])) == ["triage"]
    with pytest.raises(NotFound, match="dependencies, research, triage"):
        plans_of(tmp_path, ["triagge"])


def test_a_file_is_applied_changed_and_started_by_its_hook(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    save(project, "Hello_1", HOOK)
    drawn = inside(home, "check", str(project / ".portico/jobs/Hello_1.yaml")).stdout
    assert "on hook: active after: portico automations apply Hello_1" in drawn
    with HostProcess(home):
        applied = _apply(home, project)
        assert ([each["name"] for each in applied], applied[0]["change"]) == (["hello-1"], "added")
        assert applied[0]["secret"]
        assert _apply(home, project)[0]["change"] == "unchanged"
        save(project, "Hello_1", HOOK.replace("{hook: {}}", "[{hook: {}}, {schedule: {cron: '0 3 * * *'}}]"))
        assert _apply(home, project)[0]["change"] == "changed"
        other = tmp_path / "other"
        save(other, "Hello_1", HOOK)
        refused = inside(home, "automations", "apply", "--cwd", str(other))
        assert (refused.returncode, "There is another automation 'hello-1'" in refused.stderr) == (73, True)


def _apply(home: Path, project: Path) -> list[dict[str, str]]:
    done = inside(home, "automations", "apply", "--cwd", str(project), "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


SPEND = {
    "match": "Spend",
    "steps": [{"do": "usage", "input": 10, "output": 5, "cost": 0.25}, {"do": "say", "text": "ok"}],
}


def test_a_run_prints_its_result_and_its_cost(tmp_path: Path) -> None:
    home, project, script = tmp_path / "home", tmp_path / "project", tmp_path / "script.json"
    script.write_text(json.dumps({"rules": [SPEND]}))
    save(project, "spend", "steps: [{id: a, prompt: Spend.}]\nresult: '{{ steps.a.output }}'")
    save(project, "free", "steps: [{run: 'true'}]")
    with HostProcess(home, "--script", str(script)):
        spent = inside(home, "run", "spend", "--cwd", str(project))
        assert (spent.returncode, spent.stdout.splitlines()[-3:]) == (0, ["job-1 succeeded", "ok", "cost: $0.25"])
        assert "cost" not in inside(home, "run", "free", "--cwd", str(project)).stdout
        printed = inside(home, "run", "spend", "--cwd", str(project), "--json").stdout.splitlines()
        lines = [json.loads(line) for line in printed]
        assert {line["channel"] for line in lines} == {"job/job-3"}, "one shape for all lines"
        assert [line["event"]["type"] for line in lines][-2:] == ["job.ended", "job.cost"]
        cost = {"dollars": 0.25, "estimated": 0.0, "unpriced": False, "words": "$0.25"}
        assert lines[-1]["event"] == {"type": "job.cost", "job": "job-3", "outcome": "succeeded", "cost": cost}
        assert inside(home, "jobs", "show", "job-1").stdout.splitlines()[0].endswith(" $0.25")

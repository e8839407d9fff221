"""`portico run --plan`: what a run would do, with its inputs, before it costs anything."""

import json
from pathlib import Path

import pytest

from portico.features.jobs.preview import PlannedJob, draw_plan, preview
from portico.features.jobs.recipes import recipes
from portico.features.jobs.workflow.files import load_text, load_workflow
from portico.features.jobs.workflow.inputs import check_inputs
from tests.process import inside

WORKFLOW = """
about: Ship it.
inputs:
  name: {default: "it's"}
  many: {type: list, default: [a, b]}
agent: codex
folder: worktree
branch: "ship/{{ inputs.name | length }}"
budget: {dollars: 3, minutes: 10}
timeout: 600
sandbox: project
steps:
  - {id: list, run: "ls {{ inputs.name }} {{ steps.other.output }}"}
  - id: work
    each: "{{ inputs.many }}"
    parallel: 2
    folder: worktree
    steps:
      - id: one
        agent: claude
        prompt: "Do {{ item }} for {{ inputs.name }}."
        check: [{run: "true"}, {person: Is it good?}]
      - if: "{{ steps.one.output == 'x' }}"
        id: two
        run: "true"
  - {id: other, parallel: [{id: left, run: "true"}, {id: right, wait: 5}]}
  - loop: {most: 2, until: "{{ steps.three.output }}"}
    steps:
      - {id: three, prompt: Again.}
  - {id: asked, ask: "Ship {{ inputs.name }}?"}
  - {id: push, http: {url: "https://example.org/{{ inputs.name }}", method: POST}, secrets: [TOKEN, OTHER]}
  - {id: other_job, call: deploy}
"""


def planned() -> PlannedJob:
    entry = load_text(WORKFLOW.replace("{{ steps.other.output }}", ""), "ship.yaml", "ship")
    flow = entry.jobs["ship"].flow
    assert flow is not None
    return preview(entry, "ship", check_inputs(flow.inputs, {}))


def test_the_facts_of_a_plan() -> None:
    plan = planned()
    assert (plan.job, plan.about, plan.inputs) == ("ship", "Ship it.", {"name": "it's", "many": ["a", "b"]})
    assert (plan.folder, plan.branch, plan.timeout) == ("worktree", "ship/4", 600)
    assert plan.agents == {"claude": 1, "codex": 1}
    assert plan.asks == ["one", "asked"]
    assert plan.secrets == ["OTHER", "TOKEN"]
    assert plan.budget == {"dollars": 3, "minutes": 10}


def test_each_step_of_a_plan_has_its_text_with_the_inputs_and_what_is_around_it() -> None:
    steps = {each.id: each for each in planned().steps}
    assert [*steps] == ["list", "one", "two", "left", "right", "three", "asked", "push", "other_job"]
    assert steps["list"].text.strip() == """ls 'it'"'"'s'"""
    assert steps["one"].text == "Do {{ item }} for it's."
    around = 'each item of ["a", "b"], 2 at a time, in a separate folder'
    assert steps["one"].inside == [around]
    assert steps["two"].inside == [around, "if {{ steps.one.output == 'x' }}"]
    assert steps["three"].inside == ["loop (at most 2 rounds, until {{ steps.three.output }})"]
    assert steps["left"].inside[0].startswith("at the same time: ")
    assert (steps["asked"].text, steps["push"].text) == ("Ship it's?", "POST https://example.org/it's")
    assert (steps["right"].text, steps["other_job"].text) == ("5 seconds", "deploy")
    assert (steps["one"].checks, steps["one"].sandbox) == (2, "project")


def test_a_plan_is_printed_as_a_tree() -> None:
    lines = draw_plan(planned()).splitlines()
    assert lines[0] == "Job ship: Ship it."
    assert "  asks a person: one, asked" in lines
    assert "  budget: 3 dollars, 10 minutes" in lines
    assert "  folder: a separate folder with the branch ship/4" in lines
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith("each item"))
    assert lines[first + 1].startswith("    - prompt one (claude; 2 checks; asks; sandbox project) ")
    assert lines[first + 2] == "    if {{ steps.one.output == 'x' }}:"
    assert lines[first + 3].startswith("      - run two")


@pytest.mark.parametrize("name", recipes())
def test_every_recipe_has_a_plan(name: str) -> None:
    entry = load_workflow(recipes()[name])
    flow = entry.jobs[name].flow
    assert flow is not None
    given = {key: 1 if each.type == "number" else "x" for key, each in flow.inputs.items() if each.needed}
    plan = preview(entry, name, check_inputs(flow.inputs, given))
    assert [each.id for each in plan.steps if not each.kind] == []
    drawn = draw_plan(plan)
    assert drawn.startswith(f"Job {name}: ")
    assert "sandbox )" not in drawn
    assert "sandbox;" not in drawn


def test_the_command_line_starts_nothing(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    inside(home, "jobs", "new", "research", "--cwd", str(project))
    given = ("--cwd", str(project), "--question", "Why?")
    shown = inside(home, "run", "research", "--plan", *given)
    assert (shown.returncode, "  input question: Why?" in shown.stdout) == (0, True)
    found = json.loads(inside(home, "run", "research", "--plan", "--json", *given).stdout)
    assert (found["job"], found["budget"]) == ("research", {"dollars": 2.0})
    assert inside(home, "run", "research", "--plan", "--cwd", str(project)).returncode == 64
    assert inside(home, "run", "other", "--plan", "--cwd", str(project)).returncode == 64
    assert not (home / "log.db").exists()

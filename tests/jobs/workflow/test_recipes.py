"""Every recipe is valid, does what it says, and its cases are copied with it."""

import json
from pathlib import Path

import pytest

from portico.features.jobs.recipes import copy_recipe, recipes
from portico.features.jobs.workflow.files import load_workflow
from portico.kernel.errors import AlreadyExists, BadRequest, NotFound
from portico.testing.workflow_case import CaseResult, read_cases, run_case
from tests.process import inside

NAMES = (
    *("dependencies", "fan-out", "fix-until-green", "flaky-tests", "plan-review"),
    *("pull-request", "release-notes", "research", "triage"),
)


def test_there_are_nine_recipes_with_a_sentence_and_a_description_of_each_input() -> None:
    assert tuple(recipes()) == NAMES
    for name, path in recipes().items():
        flow = load_workflow(path).jobs[name].flow
        assert flow is not None
        assert (flow.about.endswith("."), [key for key, each in flow.inputs.items() if not each.about]) == (True, [])


@pytest.mark.parametrize("name", NAMES)
async def test_a_recipe_does_what_its_cases_say(name: str) -> None:
    workflow, cases = read_cases(recipes()[name].parent / "tests" / f"{name}.yaml")
    results = [await run_case(workflow, case) for case in cases]
    assert [(each.name, each.wrong) for each in results if not each.passed] == []
    assert results


def test_a_recipe_is_copied_with_its_cases_and_nothing_is_overwritten(tmp_path: Path) -> None:
    made = copy_recipe("triage", tmp_path, "issues")
    assert [str(path.relative_to(tmp_path)) for path in made] == [
        ".portico/jobs/issues.yaml",
        ".portico/jobs/tests/issues.yaml",
    ]
    with pytest.raises(AlreadyExists, match="--name"):
        copy_recipe("triage", tmp_path, "issues")
    with pytest.raises(NotFound, match="Did you mean 'triage'"):
        copy_recipe("triagge", tmp_path)


WORKFLOW = """
inputs: {n: {type: number, default: 1}}
steps:
  - {id: think, prompt: Think., output: {schema: {good: boolean}}}
  - {id: count, run: "echo {{ inputs.n }}; exit 3"}
"""
CASES = """
cases:
  - name: as expected
    agent: {think: {say: {good: true}}}
    run: {count: {output: two}}
    expect: {steps: [think, count], values: {steps.think.output.good: true, steps.count.output: two}}
  - name: not as expected
    inputs: {n: 7}
    agent: {think: [{fail: out of order}, {say: {good: true}}]}
    expect: {steps: [think], values: {inputs.n: 8}, result: x, error: never}
"""


async def cases_of(folder: Path, cases: str) -> list[CaseResult]:
    workflow, found = read_cases(saved(folder, cases))
    return [await run_case(workflow, case) for case in found]


def saved(folder: Path, cases: str) -> Path:
    path = folder / ".portico/jobs/tests/it.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent.parent / "it.yaml").write_text(WORKFLOW)
    path.write_text(cases)
    return path


async def test_a_case_names_everything_that_differs(tmp_path: Path) -> None:
    good, bad = await cases_of(tmp_path, CASES)
    assert (good.passed, good.wrong) == (True, [])
    assert (bad.passed, [line.partition(":")[0] for line in bad.wrong]) == (
        False,
        ["outcome", "error", "steps", "result", "inputs.n"],
    )
    assert "exit code 3" in bad.wrong[0]


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ("cases: [{name: x, agent: {thin: hi}}]", "there is no step 'thin'. There are: think, count"),
        ("cases: [{name: x, expect: {outcom: failed}}]", "cases[0].expect: Object contains unknown field `outcom`"),
        ("workflow: other.yaml\ncases: []", "There is no workflow"),
    ],
)
async def test_a_mistake_in_a_case_names_its_place(tmp_path: Path, cases: str, words: str) -> None:
    with pytest.raises(BadRequest) as refused:
        await cases_of(tmp_path, cases)
    assert words in refused.value.message


def test_the_command_line(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    listed = json.loads(inside(home, "jobs", "new", "--json").stdout)
    assert [each["name"] for each in listed] == list(NAMES)
    made = json.loads(inside(home, "jobs", "new", "research", "--cwd", str(project), "--json").stdout)
    assert made["job"] == "research"
    assert inside(home, "jobs", "new", "research", "--cwd", str(project)).returncode == 73
    assert inside(home, "check", made["files"][0]).returncode == 0
    passed = inside(home, "jobs", "test", made["files"][1])
    assert (passed.returncode, passed.stdout) == (0, "passed  research: the report is an artifact and the result\n")
    failed = inside(home, "jobs", "test", str(saved(project, CASES)), "--json")
    assert (failed.returncode, [each["passed"] for each in json.loads(failed.stdout)]) == (1, [True, False])


FILES = """
steps:
  - id: work
    each: [a.txt, b.txt]
    as: file
    may_fail: true
    steps:
      - id: one
        prompt: Change {{ file }}.
        check: [{files: {changed_only: ["{{ file }}"], exist: ["{{ file }}"], absent: ["{{ file }}.bak"]}}]
        retry: {times: 0}
result: "{{ steps.work.failed | map(attribute='reason') | list }}"
"""


async def test_checks_of_files_use_the_values_of_their_item(tmp_path: Path) -> None:
    """The globs were not templates: a file of this name was looked for."""
    cases = """
cases:
  - name: each item changes its own file
    agent: {one: [{write: {a.txt: x}}, {write: {b.txt: x}}]}
    expect: {result: []}
  - name: the second item changes the file of the first
    agent: {one: [{write: {a.txt: x}}, {write: {b.txt: x, a.txt: y}}]}
    expect: {values: {"steps.work.failed | map(attribute='name') | list": [b.txt]}}
"""
    path = saved(tmp_path, cases)
    (path.parent.parent / "it.yaml").write_text(FILES)
    workflow, found = read_cases(path)
    assert [(await run_case(workflow, case)).wrong for case in found] == [[], []]
    (path.parent.parent / "it.yaml").write_text(FILES.replace("{{ file }}.bak", "{{ fiel }}"))
    with pytest.raises(BadRequest, match="fiel"):
        load_workflow(workflow)

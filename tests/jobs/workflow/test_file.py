"""Workflow files: what is read, and what `portico check` reports."""

import json
from pathlib import Path
from textwrap import dedent

import pytest
from tools import workflow_reference

from portico.features.jobs.entry import leaves_of
from portico.features.jobs.step import JobInput, RunDo
from portico.features.jobs.tree import draw_workflow
from portico.features.jobs.workflow.files import find_workflow, is_workflow, load_text, load_workflow, workflows
from portico.features.jobs.workflow.inputs import check_inputs
from portico.features.jobs.workflow.problem import WorkflowError
from portico.features.jobs.workflow.schema import full_schema
from portico.kernel.errors import BadRequest


def problems(text: str, file: str = "main.yaml") -> list[str]:
    with pytest.raises(WorkflowError) as raised:
        load_text(dedent(text).lstrip("\n"), file, "main")
    return raised.value.message.splitlines()


WRONG: dict[str, tuple[str, list[str]]] = {
    "no mapping": ("- a", ["1:1: A workflow is a mapping with the key 'steps'."]),
    "no yaml": ("a: [", ["2:1: Not valid YAML: did not find expected node content."]),
    "a template without quotes": (
        "steps:\n  - {run: echo {{ item }}}",
        [
            "2:16: Not valid YAML: did not find expected ',' or '}'. Write texts that begin with {{, or that are "
            "inside of { }, in quotes."
        ],
    ),
    "twice": ("steps: []\nsteps: []", ["2:1: The key 'steps' appears twice."]),
    "nothing": ("about: x", ["1:1: The key 'steps' is missing."]),
    "no steps": ("steps: []", ["1:8: steps: There is no step."]),
    "no kind": (
        "steps:\n  - promt: x",
        [
            "2:5: steps[0]: A step needs one of the keys each, loop, prompt, run, http, ask, wait, call, parallel, "
            "steps. Did you mean 'prompt'?"
        ],
    ),
    "all mistakes in one run": (
        "inputs: {a: {type: lst}}\nsteps:\n  - {run: x, retyr: 1}\n  - {run: [1, {}]}\n"
        "  - {prompt: x, retry: {times: -1}}",
        [
            "1:20: inputs.a.type: 'lst' is not one of its values (boolean, choice, file, list, number, secret, text). "
            "Did you mean 'list'?",
            "3:14: steps[0].retyr: Unknown key 'retyr' in a 'run' step. Did you mean 'retry'?",
            "4:15: steps[1].run[1]: Should be a text but is a mapping.",
            "5:32: steps[2].retry.times: Should be at least 0 but is -1.",
        ],
    ),
    "a name": (
        "steps: [{run: 'echo {{ foo }}'}]",
        ["1:15: steps[0].run: Unknown name 'foo'. Known: steps, inputs, run, env."],
    ),
    "an input": (
        "inputs: {only: {}}\nsteps: [{run: 'echo {{ inputs.onyl }}'}]",
        ["2:15: steps[0].run: There is no input 'onyl'. Did you mean 'only'?"],
    ),
    "a later step": (
        "steps:\n  - run: echo {{ steps.b.output }}\n  - {id: b, run: x}",
        ["2:10: steps[0].run: The step 'b' runs later, or at the same time."],
    ),
    "a branch beside": (
        "steps: [{parallel: [{id: a, run: x}, {run: 'echo {{ steps.a.output }}'}]}]",
        ["1:44: steps[0].parallel[1].run: The step 'a' runs later, or at the same time."],
    ),
    "a step of an item": (
        "steps:\n  - {id: e, each: [1], steps: [{id: a, run: x}]}\n  - run: echo {{ steps.a.output }}",
        ["3:10: steps[1].run: The step 'a' runs once for each item: use steps.e.items or steps.e.output."],
    ),
    "a part of a result": (
        "steps: [{id: a, run: x}, {run: 'echo {{ steps.a.outpt }}'}]",
        ["1:32: steps[1].run: A step has no 'outpt'. Did you mean 'output'?"],
    ),
    "a template": (
        "steps:\n  - prompt: |\n      one\n      {{ x",
        [
            "4:7: steps[0].prompt: The template cannot be parsed: unexpected end of template, expected 'end of print "
            "statement'.."
        ],
    ),
    "a condition": ("steps: [{if: done, run: x}]", ["1:14: steps[0].if: Should be a template: {{ done }}."]),
    "an id": (
        "steps: [{id: a-b, run: x}]",
        ["1:14: steps[0].id: 'a-b' should be letters, digits and _, as in a template."],
    ),
    "an id twice": ("steps: [{id: a, run: x}, {id: a, run: y}]", ["1:31: steps[1].id: The id 'a' is used twice."]),
    "an agent with secrets": (
        "steps: [{prompt: x, secrets: [A]}]",
        ["1:30: steps[0].secrets: Only 'run' and 'http' steps get secrets, never an agent."],
    ),
    "a secret in a command": (
        "steps: [{run: 'echo {{ secrets.A }}', secrets: [A]}]",
        [
            "1:15: steps[0].run: Only 'http' steps that list it in 'secrets' use {{ secrets.NAME }}. "
            "In a command it is $NAME."
        ],
    ),
    "a merge without worktrees": (
        "steps: [{each: [1], merge: ask, steps: [{run: x}]}]",
        ["1:28: steps[0].merge: 'merge' needs 'folder: worktree'."],
    ),
    "a branch without a worktree": (
        "branch: b\nsteps: [{run: x}]",
        ["1:9: branch: 'branch' needs 'folder: worktree'."],
    ),
    "two kinds of check": (
        "steps: [{prompt: x, check: [{run: x, files: {}}]}]",
        ["1:29: steps[0].check[0]: Should have exactly one of run, files, schema, model, person."],
    ),
    "each of a word": (
        "steps: [{each: word, steps: [{run: x}]}]",
        ["1:16: steps[0].each: Should be a list, a template that gives one, or files:GLOB."],
    ),
    "a time": (
        "steps: [{wait: {until: tomorrow}}]",
        ["1:24: steps[0].wait.until: Should be a time such as 2027-01-31T09:00:00+01:00."],
    ),
    "a schema": (
        "steps: [{prompt: x, output: {schema: {a: strng}}}]",
        [
            "1:38: steps[0].output.schema: 'strng' is not a type. Types: array, boolean, integer, null, number, "
            "object, string."
        ],
    ),
    "a default": (
        "inputs: {n: {type: number, default: x}}\nsteps: [{run: x}]",
        ["1:13: inputs.n: The default should be a number."],
    ),
    "another name": (
        "job: other\nsteps: [{run: x}]",
        ["1:6: job: The file is named 'main'. Rename one of them. Known: main."],
    ),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_mistakes_are_reported_with_their_position(text: str, expected: list[str]) -> None:
    assert problems(text) == [f"main.yaml:{each}" for each in expected]


def test_a_markdown_file_is_one_prompt(tmp_path: Path) -> None:
    folder = tmp_path / ".portico/jobs"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("---\nagent: codex\ninputs: {x: {}}\ncheck: [{run: make}]\n---\nDo {{ inputs.x }}.\n")
    (folder / "b.yml").write_text("steps: [{run: x}]")
    (folder / "note.txt").write_text("")
    assert list(workflows(tmp_path)) == ["a", "b"]
    path = find_workflow(tmp_path, "a")
    assert path is not None
    entry = load_workflow(path)
    assert entry.tasks["work"].prompt == ["Do {{ inputs.x }}."]
    assert (find_workflow(tmp_path, "../a"), is_workflow(path), is_workflow(tmp_path / "x.json")) == (None, True, False)
    text = "---\ncheck: [{run: '{{ x }}'}]\n---\n\nDo {{ y }}"
    assert problems(text, "main.md") == [
        "main.md:2:15: steps[0].check[0].run: Unknown name 'x'. Known: steps, inputs, run, env, check_output.",
        "main.md:4:1: steps[0].prompt: Unknown name 'y'. Known: steps, inputs, run, env.",
    ]


def test_settings_are_inherited_and_the_nearest_applies() -> None:
    text = """
        agent: codex
        model: o1
        env: {A: "1", B: "1"}
        label: big
        steps:
          - agent: claude
            timeout: 5
            env: {B: "2"}
            steps:
              - {id: a, prompt: x}
              - {id: b, run: x, timeout: 1, label: small}
          - {id: c, prompt: x}
    """
    entry = load_text(dedent(text), "main.yaml", "main")
    assert {name: task.model.id for name, task in entry.tasks.items() if task.model} == {"a": "claude", "c": "codex/o1"}
    assert draw_workflow(entry) == "\n".join(
        [
            "Job main",
            "  Seq",
            "  ├─ steps",
            "  │  └─ Seq",
            "  │     ├─ [0] prompt: x (label big)",
            "  │     └─ [1] run: x (label small)",
            "  └─ [2] prompt: x (label big)",
        ]
    )


def test_yaml_words_are_texts() -> None:
    entry = load_text("steps: [{run: [echo, on, yes, 1, true]}]", "main.yaml", "main")
    work = entry.jobs["main"].work
    assert getattr(work, "do", None) == RunDo(command=["echo", "on", "yes", "1", "true"])


GIVEN: dict[str, tuple[JobInput, object, object]] = {
    "a number": (JobInput(type="number"), "3", 3),
    "a part": (JobInput(type="number"), "0.5", 0.5),
    "a list": (JobInput(type="list"), "a, b", ["a", "b"]),
    "a json list": (JobInput(type="list"), '["a,b"]', ["a,b"]),
    "yes": (JobInput(type="boolean"), "yes", True),
    "a choice": (JobInput(type="choice", choices=["a", "b"]), "b", "b"),
    "a default": (JobInput(default="x"), None, "x"),
    "nothing": (JobInput(required=False), None, ""),
    "a payload": (JobInput(pointer="/issue/tags/1"), None, "b"),
    "a wrong number": (JobInput(type="number"), "x", BadRequest),
    "a wrong choice": (JobInput(type="choice", choices=["a"]), "b", BadRequest),
    "a missing one": (JobInput(), None, BadRequest),
    "a missing payload": (JobInput(pointer="/no"), None, BadRequest),
}


@pytest.mark.parametrize(("spec", "given", "expected"), GIVEN.values(), ids=GIVEN)
def test_inputs(spec: JobInput, given: object, expected: object) -> None:
    values = {} if given is None else {"n": given}
    if expected is BadRequest:
        with pytest.raises(BadRequest):
            check_inputs({"n": spec}, values)
    else:
        assert check_inputs({"n": spec}, values, {"issue": {"tags": ["a", "b"]}}) == {"n": expected}


def test_all_wrong_inputs_are_named() -> None:
    with pytest.raises(BadRequest) as raised:
        check_inputs({"name": JobInput(), "n": JobInput(type="number")}, {"nam": "x", "n": "y"})
    assert raised.value.message == (
        "There is no input 'nam'. Did you mean 'name'? The input 'name' is missing. The input 'n' should be a number."
    )


def test_short_schemas() -> None:
    assert full_schema({"a": "string", "b": ["number"]}) == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "number"}}},
        "required": ["a", "b"],
    }
    assert full_schema({"type": "string"}) == {"type": "string"}


def test_the_reference_is_current() -> None:
    """Write it with `python -m tools.workflow_reference`."""
    assert workflow_reference.TARGET.read_text() == workflow_reference.text()


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("Do it.", "Do it."),
        ("One line\nand another", "One line"),
        ("x" * 70, "x" * 59 + "…"),
        ("a" * 50 + "{{ inputs.word }}", "a" * 50 + "…"),
        ("{{ inputs.word }} " + "a" * 50, "{{ inputs.word }} " + "a" * 41 + "…"),
    ],
    ids=["short", "lines", "long", "a cut template", "a whole template"],
)
def test_the_name_of_a_step_never_has_half_a_template(prompt: str, name: str) -> None:
    """It is rendered, and half a template would be shown as it is written."""
    text = f"inputs: {{word: {{}}}}\nsteps: [{{prompt: {json.dumps(prompt)}}}]"
    assert next(leaves_of(load_text(text, "main.yaml", "main").jobs["main"].work)).name == name  # type: ignore[union-attr]

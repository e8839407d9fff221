"""Workflows written in Python: the same tree as the same file."""

from textwrap import dedent

import pytest
from msgspec.structs import replace

from portico.features.jobs.entry import Entry
from portico.features.jobs.workflow.file import KINDS
from portico.features.jobs.workflow.files import load_text
from portico.features.jobs.workflow.problem import WorkflowError
from portico.features.jobs.workflow.write import (
    ask,
    call,
    each,
    group,
    http,
    loop,
    parallel,
    prompt,
    run,
    wait,
    workflow,
)

YAML = """
    about: All kinds of steps.
    inputs:
      only: {type: list, default: [], about: Packages}
      title: {from: /issue/title}
    agent: codex
    folder: worktree
    branch: "deps/{{ run.date }}"
    budget: {dollars: 3}
    on:
      - schedule: {cron: "0 3 * * *"}
    steps:
      - id: outdated
        run: pip list --outdated --format json
        output: json
        retry: {times: 2}
      - id: update
        each: "{{ steps.outdated.output }}"
        as: package
        name: "{{ package.name }}"
        parallel: 3
        folder: worktree
        merge: agent
        steps:
          - prompt: |
              Update {{ package.name }}
              and fix what breaks: "quotes", colons, ünïcode.
            id: work
            check:
              - run: pytest -q
              - files: {changed_only: [pyproject.toml, "src/**"]}
          - prompt: Explain it.
            session: same
      - parallel:
          - {id: look, at: "{{ steps.update.commit }}", run: [git, log]}
          - {wait: {seconds: 1}}
      - loop: {most: 4, until: "{{ steps.review.output.approved }}"}
        steps:
          - id: review
            agent: claude
            prompt: Review.
            output: {schema: {approved: boolean, findings: [string]}}
      - if: "{{ steps.review.output.approved }}"
        steps:
          - {id: decision, ask: Open it?, show: [changes], choices: ["Yes", "No"], expires: 3600}
        else:
          - {wait: {hook: go}}
      - call: other
        inputs: {x: "{{ inputs.title }}"}
      - http:
          url: https://example.org
          method: POST
          headers: {Authorization: "Bearer {{ secrets.TOKEN }}"}
          json: {a: [1, null, "{{ inputs.only }}"]}
        secrets: [TOKEN]
        if: "{{ steps.decision.answer == 'Yes' }}"
    result: {done: "{{ steps.update.output | length }}"}
    artifacts: ["*.md"]
"""


def written() -> Entry:
    return workflow(
        run("pip list --outdated --format json", id="outdated", output="json", retry={"times": 2}),
        each(
            "{{ steps.outdated.output }}",
            prompt(
                'Update {{ package.name }}\nand fix what breaks: "quotes", colons, ünïcode.\n',
                id="work",
                check=[{"run": "pytest -q"}, {"files": {"changed_only": ["pyproject.toml", "src/**"]}}],
            ),
            prompt("Explain it.", session="same"),
            id="update",
            as_="package",
            name="{{ package.name }}",
            parallel=3,
            folder="worktree",
            merge="agent",
        ),
        parallel(run(["git", "log"], id="look", at="{{ steps.update.commit }}"), wait(1)),
        loop(
            prompt(
                "Review.",
                id="review",
                agent="claude",
                output={"schema": {"approved": "boolean", "findings": ["string"]}},
            ),
            most=4,
            until="{{ steps.review.output.approved }}",
        ),
        group(
            ask("Open it?", id="decision", show=["changes"], choices=["Yes", "No"], expires=3600),
            if_="{{ steps.review.output.approved }}",
            else_=[wait(hook="go")],
        ),
        call("other", inputs={"x": "{{ inputs.title }}"}),
        http(
            "https://example.org",
            method="POST",
            headers={"Authorization": "Bearer {{ secrets.TOKEN }}"},
            json={"a": [1, None, "{{ inputs.only }}"]},
            secrets=["TOKEN"],
            if_="{{ steps.decision.answer == 'Yes' }}",
        ),
        about="All kinds of steps.",
        inputs={"only": {"type": "list", "default": [], "about": "Packages"}, "title": {"from_": "/issue/title"}},
        agent="codex",
        folder="worktree",
        branch="deps/{{ run.date }}",
        budget={"dollars": 3},
        on=[{"schedule": {"cron": "0 3 * * *"}}],
        result={"done": "{{ steps.update.output | length }}"},
        artifacts=["*.md"],
    ).entry


def tree(entry: Entry) -> Entry:
    """Without the text and the name of the file."""
    job = entry.jobs["main"]
    assert job.flow is not None
    return replace(entry, jobs={"main": replace(job, flow=replace(job.flow, source="", file=""))})


def test_python_and_a_file_give_the_same_tree() -> None:
    assert tree(written()) == tree(load_text(dedent(YAML), "main.yaml", "main"))


def test_every_kind_of_step_can_be_written() -> None:
    made = [prompt("x"), run("x"), http("https://x"), ask("x"), wait(1), call("x"), each([1]), parallel(), group()]
    made.append(loop(most=1))
    assert {next(key for key in KINDS if key in step) for step in made} == set(KINDS)


def test_the_text_is_a_file_that_gives_the_same_tree() -> None:
    shared = {"run": "pytest -q"}
    made = workflow(prompt("a", check=[shared]), prompt("b", check=[shared, shared]), job="main")
    assert "&" not in made.text  # no anchors
    assert tree(load_text(made.text, "main.yaml", "main")) == tree(made.entry)


def test_mistakes_name_their_place() -> None:
    with pytest.raises(WorkflowError) as raised:
        workflow(run("x", retyr=1), prompt("x", timeout="soon"))
    assert raised.value.message.splitlines() == [
        "<python>:3:3: steps[0].retyr: Unknown key 'retyr' in a 'run' step. Did you mean 'retry'?",
        "<python>:5:12: steps[1].timeout: Should be a number but is a text.",
    ]


def test_a_step_is_data_that_can_be_used_twice() -> None:
    step = run("make")
    assert workflow(step, step).entry.jobs["main"].work == workflow(run("make"), run("make")).entry.jobs["main"].work

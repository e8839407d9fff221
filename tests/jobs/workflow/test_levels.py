"""Settings of the file, of groups and of steps: the nearest applies. A merge by an agent has to pass the checks of its
lanes, and an agent begins at a commit."""

from pathlib import Path
from textwrap import dedent

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs.entry import leaves_of
from portico.features.jobs.step import FlowStep
from portico.features.jobs.workflow.files import load_text
from portico.kernel import events as e
from portico.kernel.events import Budget
from portico.kernel.host import Host
from portico.testing.workflow_case import read_cases, run_case
from tests.jobs.workflow.playing import finish, start, steps
from tests.jobs.workflow.test_folders import git, repository

__all__ = ["repository"]

LEVELS = """
    budget: {dollars: 9}
    timeout: 900
    label: far
    sandbox: strict
    env: {A: file, B: file}
    steps:
      - {id: file, prompt: x}
      - budget: {dollars: 2}
        timeout: 60
        label: near
        sandbox: project
        env: {A: group}
        steps:
          - {id: group, prompt: x}
          - {id: step, prompt: x, budget: {turns: 1}, timeout: 5, label: here, sandbox: "off", env: {B: step}}
          - {each: [1], steps: [{id: item, prompt: x, timeout: 6}]}
"""


def test_the_nearest_setting_applies() -> None:
    entry = load_text(dedent(LEVELS), "main.yaml", "main")
    job = entry.jobs["main"]
    found = {
        leaf.id: (leaf.budget, leaf.timeout, leaf.label, leaf.sandbox, leaf.env["A"], leaf.env["B"])
        for leaf in leaves_of(job.work)
        if isinstance(leaf, FlowStep)
    }
    assert found == {
        "file": (Budget(), None, "far", "strict", "file", "file"),
        "group": (Budget(dollars=2), 60, "near", "project", "group", "file"),
        "step": (Budget(turns=1), 5, "here", "off", "group", "step"),
        "item": (Budget(dollars=2), 6, "near", "project", "group", "file"),
    }
    assert (job.budget, job.timeout) == (Budget(dollars=9), 900)


async def test_the_budget_of_a_step_is_that_of_its_session(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    text = "steps: [{prompt: '[[say:a]]'}, {steps: [{prompt: '[[say:b]]'}], budget: {dollars: 2}}]"
    assert (await finish(jobs, await start(jobs, text, tmp_path))).status == "succeeded"
    records = await host.log.read_all(limit=1000)
    started = [record.event for record in records if isinstance(record.event, e.SessionStarted)]
    assert [each.config.get("budget") for each in started] == [None, {"dollars": 2.0}]


CONFLICT = """
folder: worktree
branch: work
steps:
  - id: work
    each: [a, b]
    folder: worktree
    merge: agent
    steps:
      - {id: one, prompt: "Write {{ item }}.", check: [{run: "grep -q {{ item }} file.txt"}]}
  - {id: all, run: cat file.txt}
result: "{{ steps.all.output }}"
"""
CASES = """
cases:
  - name: the first resolution loses the second item
    agent:
      one: [{write: {file.txt: a}}, {write: {file.txt: b}}]
      work_merge: [{write: {file.txt: a}}, {write: {file.txt: "a\\nb"}}]
    expect: {result: "a\\nb"}
  - name: no resolution has it
    agent:
      one: [{write: {file.txt: a}}, {write: {file.txt: b}}]
      work_merge: {write: {file.txt: a}}
    expect: {outcome: failed, error: "Command failed with exit code 1: grep -q b file.txt"}
"""


async def test_an_agent_that_merges_has_to_pass_the_checks_of_the_lane(tmp_path: Path) -> None:
    folder = tmp_path / ".portico/jobs/tests"
    folder.mkdir(parents=True)
    (folder.parent / "it.yaml").write_text(CONFLICT)
    (folder / "it.yaml").write_text(CASES)
    workflow, cases = read_cases(folder / "it.yaml")
    assert [(case.name, (await run_case(workflow, case)).wrong) for case in cases] == [
        (case.name, []) for case in cases
    ]


@pytest.mark.parametrize("shared", [False, True], ids=["worktree", "shared"])
async def test_an_agent_begins_at_a_commit_and_a_check_names_the_one_it_passed_for(
    host: Host, repository: Path, shared: bool
) -> None:
    text = """
        folder: worktree
        steps:
          - {id: command, run: echo x > made-by-a-command}
          - {id: agent, prompt: "[[say:ok]]", check: [{run: "git status --porcelain | wc -l | grep -qx 0"}]}
    """
    jobs = await Jobs.open(host)
    if shared:
        text = text.replace("folder: worktree", "").replace("grep -qx 0", "grep -qx 1")
    job = await start(jobs, text, repository)
    ended = await finish(jobs, job)
    assert (ended.status, ended.error) == ("succeeded", "")
    agent = (await steps(jobs, job))["agent"]
    commit = "" if shared else git(repository, "rev-parse", ended.branch).strip()
    assert (agent["commit"], [each["commit"] for each in agent["checks"]]) == (commit, [commit])

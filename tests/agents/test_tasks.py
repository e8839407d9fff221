"""The thirty tasks of `bench/tasks`: each can be failed, each can be done, and `loop` carries out what a model says."""

from functools import partial
from pathlib import Path

import pytest

from portico.agents.agent import Agent, AgentContext
from portico.agents.loop import LoopAgent
from portico.testing.model import ModelServer
from portico.testing.tasks import LONG, TASKS
from portico.testing.tasks.run import play
from portico.testing.tasks.scripted import script
from portico.testing.tasks.table import table
from portico.testing.tasks.task import BenchTask, judge, lay_out, solve


def test_there_are_thirty_of_four_kinds() -> None:
    kinds = [task.kind for task in TASKS.values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {"fix": 8, "rename": 6, "write": 9, "answer": 7}


def test_the_long_ones_take_30_to_60_steps() -> None:
    long = [task for task in LONG.values() if task.kind == "long"]
    steps = [len(script([task]).rules[0].steps) for task in long]
    assert (len(long), min(steps) >= 30, max(steps) <= 60) == (10, True, True), steps
    assert [bool(task.then) for task in LONG.values() if task.kind == "turns"] == [True] * 4


@pytest.mark.parametrize("task", (TASKS | LONG).values(), ids=lambda task: task.name)
def test_its_check_fails_before_and_passes_after(task: BenchTask, tmp_path: Path) -> None:
    lay_out(task, tmp_path)
    assert judge(task, tmp_path, "I do not know.") != ""
    solve(task, tmp_path)
    assert judge(task, tmp_path, task.said) == ""


@pytest.mark.parametrize(
    "task", [task for task in TASKS.values() if task.keep or task.answer], ids=lambda task: task.name
)
def test_what_has_to_stay_is_looked_at(task: BenchTask, tmp_path: Path) -> None:
    lay_out(task, tmp_path)
    solve(task, tmp_path)
    name = next(iter(task.keep or task.files))
    (tmp_path / name).write_text("changed")
    assert judge(task, tmp_path, task.said) == f"it changed {name}"


async def test_the_built_in_agent_carries_out_the_solutions(tmp_path: Path) -> None:
    """One of each kind, and the one that deletes a file."""
    tasks = [TASKS[name] for name in ("fix-median", "rename-module", "write-csvsum", "answer-port")]
    async with ModelServer(script(tasks)) as server:
        make = partial(_loop, tmp_path, server.url)
        played = [await play(task, make, None, 60) for task in tasks]
    assert [(each.task, each.problem) for each in played] == [(task.name, "") for task in tasks]
    assert all(each.input and each.output for each in played)
    assert [each.calls for each in played] == [2, 6, 1, 0]
    assert "4/4" in table(played)


@pytest.mark.parametrize("name", ["long-types", "turns-rename-again"])
async def test_the_built_in_agent_carries_out_long_ones_and_second_messages(name: str, tmp_path: Path) -> None:
    async with ModelServer(script([LONG[name]])) as server:
        played = await play(LONG[name], partial(_loop, tmp_path, server.url), None, 60)
    assert played.problem == ""


async def test_a_wrong_answer_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    task = TASKS["answer-port"]
    async with ModelServer(script([TASKS["fix-median"]])) as server:
        found = await play(task, partial(_loop, tmp_path, server.url), None, 60)
    assert found.problem
    assert "0/1" in table([found])


def _loop(home: Path, model: str) -> Agent:
    return LoopAgent(AgentContext(home, {}), {"OPENAI_BASE_URL": f"{model}/v1", "OPENAI_API_KEY": "k"})

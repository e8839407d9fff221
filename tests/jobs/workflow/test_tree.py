"""The tree of a workflow: it is stored and read again, every path leads to its step, and charts show all of them."""

import asyncio
from typing import Any

import msgspec
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from portico.features.jobs import events as je
from portico.features.jobs.chart import generate_chart
from portico.features.jobs.entry import Again, Entry, Flowing, If, Leaf, Over, leaves_of
from portico.features.jobs.rows import rows_of
from portico.features.jobs.state import begin, fold, plan_of
from portico.features.jobs.step import FlowStep, Retry
from portico.features.jobs.tree import draw_tree, draw_workflow
from portico.features.jobs.work import walk, work_at
from portico.features.jobs.workflow.files import load_text
from portico.kernel import events as e

Data = dict[str, Any]
LEAVES: list[Data] = [
    {"run": "true"},
    {"prompt": "x"},
    {"ask": "x", "choices": ["a"]},
    {"wait": 1},
    {"http": {"url": "https://x.example"}},
    {"call": "x"},
]


def groups(children: st.SearchStrategy[Data]) -> st.SearchStrategy[Data]:
    lists = st.lists(children, min_size=1, max_size=3)
    return st.one_of(
        lists.map(lambda steps: {"steps": steps}),
        st.builds(lambda steps, more: {"if": "{{ true }}", "steps": steps, "else": more}, lists, lists),
        st.builds(lambda step: {"if": "{{ false }}", **step}, children),
        lists.map(lambda steps: {"parallel": steps}),
        st.builds(lambda steps, many: {"each": list(range(many)), "steps": steps}, lists, st.integers(0, 3)),
        st.builds(lambda steps, most: {"loop": {"most": most}, "steps": steps}, lists, st.integers(1, 3)),
        st.builds(lambda step: {**step, "may_fail": True}, children),
    )


WORKFLOWS = st.lists(st.recursive(st.sampled_from(LEAVES), groups, max_leaves=8), min_size=1, max_size=4)


def entry_of(steps: list[Data]) -> Entry:
    return load_text(yaml.safe_dump({"steps": steps}), "main.yaml", "main")


class World:
    """Gives every lane and condition its value, and remembers the paths of steps."""

    def __init__(self, failing: frozenset[int] = frozenset()) -> None:
        self.seen: list[tuple[str, Leaf]] = []
        self.closed: dict[str, list[bool]] = {}
        self.failing = failing

    async def run(self, path: str, leaf: Leaf) -> bool:
        self.seen.append((path, leaf))
        await asyncio.sleep(0)
        return leaf.work_id_in_job not in self.failing

    async def decide(self, path: str, reason: str) -> None:
        raise AssertionError(reason)

    def choice(self, path: str, ask: object) -> int | None:
        raise AssertionError(path)

    async def items(self, path: str, each: object) -> list[str]:
        raise AssertionError(path)

    async def lanes(self, path: str, over: Over) -> int:
        return len(over.each)

    async def holds(self, path: str, flowing: Flowing, place: str) -> bool:
        assert isinstance(flowing, If | Again)
        return isinstance(flowing, If) and flowing.when == "{{ true }}"

    async def close(self, path: str, flowing: Flowing, lanes: list[bool], merged: bool = True) -> None:
        self.closed[path] = lanes


@given(WORKFLOWS)
@settings(max_examples=60, deadline=None)
def test_every_path_leads_to_its_step(steps: list[Data]) -> None:
    entry = entry_of(steps)
    work, world = entry.jobs["main"].work, World()
    assert asyncio.run(walk(work, world.run, world.decide, values=world))
    assert len({path for path, _ in world.seen}) == len(world.seen)
    assert all(work_at(work, path) == leaf for path, leaf in world.seen)


@given(WORKFLOWS)
@settings(max_examples=60, deadline=None)
def test_a_tree_is_stored_drawn_and_numbered(steps: list[Data]) -> None:
    entry = entry_of(steps)
    stored = msgspec.json.decode(msgspec.json.encode(plan_of(entry, "main")), type=Entry)
    work = stored.jobs["main"].work
    assert work == entry.jobs["main"].work
    leaves = list(leaves_of(work))
    assert [leaf.work_id_in_job for leaf in leaves] == list(range(len(leaves)))
    shown = [node.hint for node in generate_chart(work).nodes if isinstance(node.hint, tuple)]
    assert sorted(number for _, number in shown) == list(range(len(leaves)))
    assert draw_tree(work).count("[") >= len(leaves)
    assert draw_workflow(entry).startswith("Job main\n")


@given(WORKFLOWS, st.frozensets(st.integers(0, 8), max_size=3))
@settings(max_examples=60, deadline=None)
def test_a_failure_ends_the_steps_after_it(steps: list[Data], failing: frozenset[int]) -> None:
    entry = entry_of(steps)
    world = World(failing)
    passed = asyncio.run(walk(entry.jobs["main"].work, world.run, world.decide, values=world))
    failed = [leaf for _, leaf in world.seen if leaf.work_id_in_job in failing]
    if not failed:
        assert passed
    if failed and not any("may_fail" in str(step) for step in steps):
        assert not passed


async def test_the_first_failure_stops_the_other_lanes() -> None:
    entry = entry_of([{"each": [0, 1, 2], "parallel": 1, "fail": "at_once", "steps": [{"run": "x"}, {"run": "y"}]}])
    world = World(frozenset({1}))
    assert not await walk(entry.jobs["main"].work, world.run, world.decide, values=world)
    assert [path for path, _ in world.seen] == ["r*0.0", "r*0.1"]
    assert world.closed == {"r": [False, False, False]}
    entry = entry_of([{"each": [0, 1, 2], "parallel": 1, "steps": [{"run": "x"}, {"run": "y"}]}])
    world = World(frozenset({1}))
    assert not await walk(entry.jobs["main"].work, world.run, world.decide, values=world)
    assert len(world.seen) == 6


def test_waits_of_retries_grow_to_a_limit() -> None:
    retry = Retry(times=5, wait=1, backoff=3, most=10)
    assert [retry.seconds(number) for number in range(1, 6)] == [1, 3, 9, 10, 10]


def test_rows_are_those_of_steps_that_have_started() -> None:
    entry = entry_of([{"id": "a", "each": ["x", "y"], "name": "item {{ item }}", "steps": [{"id": "b", "run": "z"}]}])
    state = begin(je.JobStarted("job-1", "main", plan_of(entry, "main"), "/", "me"), 0)
    lane = '{"item":"x","name":"item x","variable":"item"}'
    result = '{"outcome":"failed","reason":"why","name":"z"}'
    happened: list[e.Event] = [
        je.JobValue("r*0", "lane", lane),
        je.WorkStarted("r*0", 0, "task-1"),
        je.WorkStarted("r*1", 0, "task-2"),
        je.JobValue("r*0", "@b", result),
        je.WorkEnded("r*0", 0, "task-1", "failed"),
    ]
    for number, event in enumerate(happened):
        fold(state, event, number)
    rows = rows_of(state)
    assert [(row.path, row.items, row.status, row.reason, row.started, row.ended) for row in rows] == [
        ("r*0", ["item x"], "failed", "why", 1, 4),
        ("r*1", [], "running", "", 2, None),
    ]
    assert [row.path for row in rows_of(state, "failed")] == ["r*0"]
    assert all(isinstance(leaf, FlowStep) for leaf in leaves_of(state.job.work))

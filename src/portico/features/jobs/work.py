"""The interpreter: one pure function over the tree of works. The caller defines how a task is run.

Every task has a path that gives its position: `.2` the third of a Seq or Par; `#3` the body in the fourth round of a
Loop, `#3<` its condition before and `#3>` its condition after; `|?` the condition of an Alt, `|1` and `|0` its
branches; `|2` the branch of the third choice of an Ask; `*3` the fourth item of an Each. In a workflow `.2`, `#3`,
`*3`, `|1` and `|0` mean the same, and `+` is the merge after lanes. The same tree, results and values give the same
paths, so a journal that is keyed by them can be replayed, and parallel branches can never swap
results.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Protocol

from portico.features.jobs.entry import (
    Again,
    Alt,
    Ask,
    Branches,
    Each,
    Flowing,
    If,
    Leaf,
    Loop,
    Over,
    Par,
    Ref,
    Seq,
    Wait,
    Work,
)
from portico.features.jobs.step import FlowStep

ROOT = "r"
LOOP_ROUNDS = 1_000
"""For a Loop without `maxIterations`: more rounds than any real job needs, and an end for one that never agrees."""

Run = Callable[[str, Leaf], Awaitable[bool]]
"""Runs the task at this path (or knows its result); raises when the task crashed, which ends the whole job."""
Decide = Callable[[str, str], Awaitable[None]]
"""Records a decision of the interpreter: the path and the reason."""


class Values(Protocol):
    """What the tree depends on besides success and failure; recorded, so that a replay sees the same."""

    def choice(self, path: str, ask: Ask) -> int | None:
        """Which choice the answer at this path was; None: none of them."""

    async def items(self, path: str, each: Each) -> list[str]:
        """The items of an Each."""

    async def lanes(self, path: str, over: Over) -> int:
        """The number of items of an Over."""

    async def holds(self, path: str, flowing: Flowing, place: str) -> bool:
        """Whether the condition of a work holds, seen from a place in it."""

    async def close(self, path: str, flowing: Flowing, lanes: list[bool], merged: bool = True) -> None:
        """Record the result of a work with an id: which of its lanes have succeeded, and whether they were merged."""


async def walk(work: Work, run: Run, decide: Decide, path: str = ROOT, values: Values | None = None) -> bool:
    """Whether the work succeeded. `values` is needed by works that ask or go over items."""
    match work:
        case Ref() | Wait():
            return await run(path, work)
        case Ask():
            return await _ask(work, run, decide, path, values)
        case Each():
            return await _each(work, run, decide, path, values)
        case Seq():
            for index, child in enumerate(work.works):
                if not await walk(child, run, decide, f"{path}.{index}", values):
                    return False
            return True
        case Par():
            return await _par(work, run, decide, path, values)
        case Loop():
            return await _loop(work, run, decide, path, values)
        case Alt():
            chosen = await walk(work.condition, run, decide, f"{path}|?", values)
            branch = work.true_work if chosen else work.false_work
            return branch is None or await walk(branch, run, decide, f"{path}|{int(chosen)}", values)
        case FlowStep():
            return await run(path, work) or work.may_fail
        case If() | Again() | Over() | Branches():
            assert values is not None
            lanes = await _flow(work, run, decide, path, values)
            if work.id:
                await values.close(path, work, lanes)
            passed = all(lanes)
            if isinstance(work, Over | Branches) and work.merge is not None and (passed or not work.at_once):
                merged = await run(f"{path}+", work.merge)
                if not merged:
                    await values.close(path, work, lanes, merged=False)
                passed = passed and merged
            return passed or work.may_fail


async def _flow(work: Flowing, run: Run, decide: Decide, path: str, values: Values) -> list[bool]:
    """Run the control flow of a workflow. Returns one element, or one for each lane."""
    match work:
        case If():
            holds = work.when is None or await values.holds(path, work, path)
            branch = work.then if holds else work.otherwise
            return [branch is None or await walk(branch, run, decide, f"{path}|{int(holds)}", values)]
        case Again():
            return [await _again(work, run, decide, path, values)]
        case Over():
            count = await values.lanes(path, work)
            bodies = [(f"{path}*{index}", work.body) for index in range(count)]
            return await _lanes(bodies, work.parallel, run, decide, values, work.at_once)
        case Branches():
            bodies = [(f"{path}.{index}", child) for index, child in enumerate(work.works)]
            return await _lanes(bodies, len(bodies), run, decide, values, work.at_once)


async def _again(work: Again, run: Run, decide: Decide, path: str, values: Values) -> bool:
    for index in range(work.most):
        if not await walk(work.body, run, decide, f"{path}#{index}", values):
            return False
        if work.until is not None and await values.holds(path, work, f"{path}#{index}"):
            return True
    if work.until is not None:
        await decide(path, f"The loop has not ended after {work.most} rounds (most), so it failed")
    return work.until is None


async def _ask(work: Ask, run: Run, decide: Decide, path: str, values: Values | None) -> bool:
    if not await run(path, work):
        return False
    assert values is not None
    chosen = values.choice(path, work)
    branch = work.choices[chosen].work if chosen is not None else None
    return branch is None or await walk(branch, run, decide, f"{path}|{chosen}", values)


async def _each(work: Each, run: Run, decide: Decide, path: str, values: Values | None) -> bool:
    assert values is not None
    items = await values.items(path, work)
    bodies = [(f"{path}*{index}", work.body) for index in range(len(items))]
    return all(await _lanes(bodies, work.concurrency, run, decide, values))


async def _par(work: Par, run: Run, decide: Decide, path: str, values: Values | None) -> bool:
    bodies = [(f"{path}.{index}", child) for index, child in enumerate(work.works)]
    return all(await _lanes(bodies, work.concurrency or len(work.works), run, decide, values))


class _LaneFailed(Exception):
    """A lane has failed, and the others are stopped."""


async def _lanes(
    bodies: list[tuple[str, Work]],
    concurrency: int,
    run: Run,
    decide: Decide,
    values: Values | None,
    at_once: bool = False,
) -> list[bool]:
    """Run all lanes concurrently, or at most a given number at a time. A crash of one stops the others; with `at_once`
    also a failure."""
    turns = asyncio.Semaphore(concurrency)
    results = [False] * len(bodies)
    stopped = False

    async def lane(index: int) -> None:
        nonlocal stopped
        path, child = bodies[index]
        async with turns:
            if stopped:
                return
            results[index] = await walk(child, run, decide, path, values)
            if at_once and not results[index]:
                stopped = True
                raise _LaneFailed

    # Not a TaskGroup: it keeps its tasks in a set and so stops them in the order of memory addresses. Temporal replays
    # the walk, and has to see the same order again: that of the tree.
    lanes = [asyncio.create_task(lane(index), name=path) for index, (path, _) in enumerate(bodies)]
    try:
        await asyncio.gather(*lanes)
    except (Exception, asyncio.CancelledError) as error:  # the end of one lane ends them all
        for each in lanes:
            each.cancel()
        for other in await asyncio.gather(*lanes, return_exceptions=True):
            if isinstance(other, Exception) and other is not error:
                error.add_note(f"Another lane ended with {other!r}")
        if not isinstance(error, _LaneFailed):
            raise
    return results


async def _loop(work: Loop, run: Run, decide: Decide, path: str, values: Values | None) -> bool:
    rounds = work.max_iterations or LOOP_ROUNDS
    for index in range(rounds):
        place = f"{path}#{index}"
        if work.pre_condition is not None:
            expected, condition = work.pre_condition
            if await walk(condition, run, decide, f"{place}<", values) is not expected:
                return True
        if not await walk(work.body, run, decide, place, values):
            return False
        if work.post_condition is None:
            return True
        expected, condition = work.post_condition
        if await walk(condition, run, decide, f"{place}>", values) is not expected:
            return True
    await decide(path, f"[LOOP] The loop has not ended after {rounds} rounds (maxIterations), so it failed")
    return False


def work_at(work: Work, path: str) -> Work:
    """The work that has this path."""
    for step in steps_of(path)[1:]:
        child: Work | None = None
        match work:
            case Over() | Branches() if step == "+":
                child = work.merge
            case Seq() | Par() | Branches():
                child = work.works[int(step[1:])]
            case Each() | Over() | Again():
                child = work.body
            case If():
                child = work.then if step == "|1" else work.otherwise
            case Ask():
                child = work.choices[int(step[1:])].work
            case Alt():
                child = work.condition if step == "|?" else work.true_work if step == "|1" else work.false_work
            case Loop():
                condition = {"<": work.pre_condition, ">": work.post_condition}.get(step[-1])
                child = work.body if condition is None else condition[1]
            case Ref() | Wait() | FlowStep():
                pass
        assert child is not None, path
        work = child
    return work


def steps_of(path: str) -> list[str]:
    return re.split(r"(?=[.|#*+])", path)


def in_condition(path: str) -> bool:
    """Whether the task at this path is part of a condition. Its failure is then a result, not an error."""
    return any(mark in path for mark in "?<>")

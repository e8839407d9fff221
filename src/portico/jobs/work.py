"""The interpreter: one pure function over the tree of works. What running a task means is up to whoever calls it.

Every task gets a path that says where it stands: `.2` the third of a Seq or Par; `#3` the body in the fourth round of a
Loop, `#3<` its condition before and `#3>` its condition after; `|?` the condition of an Alt, `|1` and `|0` its
branches. The same tree and the same results give the same paths, so a journal that is keyed by them can be
replayed, and parallel branches can never swap results.
"""

import asyncio
from collections.abc import Awaitable, Callable

from portico.jobs.entry import Alt, Loop, Par, Ref, Seq, Work

ROOT = "r"
LOOP_ROUNDS = 1_000
"""For a Loop without `maxIterations`: more rounds than any real job needs, and an end for one that never agrees."""

Run = Callable[[str, Ref], Awaitable[bool]]
"""Runs the task at this path (or knows its result); raises when the task crashed, which ends the whole job."""
Decide = Callable[[str, str], Awaitable[None]]
"""Writes down a decision of the interpreter itself: the path and the reason."""


async def walk(work: Work, run: Run, decide: Decide, path: str = ROOT) -> bool:
    """Whether the work succeeded."""
    match work:
        case Ref():
            return await run(path, work)
        case Seq():
            for index, child in enumerate(work.works):
                if not await walk(child, run, decide, f"{path}.{index}"):
                    return False
            return True
        case Par():
            return await _par(work, run, decide, path)
        case Loop():
            return await _loop(work, run, decide, path)
        case Alt():
            chosen = await walk(work.condition, run, decide, f"{path}|?")
            branch = work.true_work if chosen else work.false_work
            return branch is None or await walk(branch, run, decide, f"{path}|{int(chosen)}")


async def _par(work: Par, run: Run, decide: Decide, path: str) -> bool:
    """All at once; one that crashes stops the others."""
    turns = asyncio.Semaphore(work.concurrency or len(work.works))

    async def lane(index: int, child: Work) -> bool:
        async with turns:
            return await walk(child, run, decide, f"{path}.{index}")

    try:
        async with asyncio.TaskGroup() as group:
            lanes = [group.create_task(lane(i, child), name=f"{path}.{i}") for i, child in enumerate(work.works)]
    except BaseExceptionGroup as crashes:
        raise _first(crashes) from None
    return all(each.result() for each in lanes)


def _first(crashes: BaseExceptionGroup[BaseException]) -> BaseException:
    crash: BaseException = crashes
    while isinstance(crash, BaseExceptionGroup):
        crash = crash.exceptions[0]
    return crash


async def _loop(work: Loop, run: Run, decide: Decide, path: str) -> bool:
    rounds = work.max_iterations or LOOP_ROUNDS
    for index in range(rounds):
        place = f"{path}#{index}"
        if work.pre_condition is not None:
            expected, condition = work.pre_condition
            if await walk(condition, run, decide, f"{place}<") is not expected:
                return True
        if not await walk(work.body, run, decide, place):
            return False
        if work.post_condition is None:
            return True
        expected, condition = work.post_condition
        if await walk(condition, run, decide, f"{place}>") is not expected:
            return True
    await decide(path, f"[LOOP] The loop has not ended after {rounds} rounds (maxIterations), so it failed")
    return False


def in_condition(path: str) -> bool:
    """Does the task at this path decide something? Then its failure is an answer and not a defeat."""
    return any(mark in path for mark in "?<>")

import asyncio
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from portico.features.jobs.entry import Leaf, Work
from portico.features.jobs.load import load_entry
from portico.features.jobs.work import LOOP_ROUNDS, in_condition, walk
from tests.jobs.samples import Data, alt, entry_data, loop, par, ref, seq, works

Results = Callable[[str, Leaf], bool]


def tree(data: Data) -> Work:
    return load_entry(entry_data(data)).jobs["main"].work


async def walked(data: Data, results: Results = lambda path, ref: True) -> tuple[bool, list[str], list[str]]:
    """The result, the paths in the order they ran, and the decisions."""
    paths: list[str] = []
    decisions: list[str] = []

    async def run(path: str, ref: Leaf) -> bool:
        paths.append(path)
        await asyncio.sleep(0)
        return results(path, ref)

    async def decide(path: str, reason: str) -> None:
        decisions.append(f"{path}: {reason}")

    return await walk(tree(data), run, decide), paths, decisions


async def test_a_seq_ends_with_its_first_failure() -> None:
    assert await walked(seq(ref(), ref(), ref()), lambda path, _: path != "r.1") == (False, ["r.0", "r.1"], [])


async def test_a_par_runs_all_and_succeeds_if_all_do() -> None:
    assert await walked(par(ref(), ref()), lambda path, _: path != "r.0") == (False, ["r.0", "r.1"], [])
    assert await walked(par(ref(), ref())) == (True, ["r.0", "r.1"], [])


async def test_concurrency_bounds_a_par() -> None:
    running = most = 0

    async def run(path: str, ref: Leaf) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return True

    async def decide(path: str, reason: str) -> None:
        raise AssertionError

    assert await walk(tree(par(*[ref()] * 9, concurrency=2)), run, decide)
    assert most == 2


@pytest.mark.parametrize(
    ("work", "results", "expected", "paths"),
    [
        (loop(ref()), {}, True, ["r#0"]),
        (loop(ref()), {"r#0": False}, False, ["r#0"]),
        (loop(ref(), preCondition=[True, ref()]), {"r#0<": False}, True, ["r#0<"]),
        (loop(ref(), preCondition=[False, ref()]), {"r#0<": False}, True, ["r#0<", "r#0"]),
        (loop(ref(), postCondition=[False, ref()]), {"r#0>": False}, True, ["r#0", "r#0>", "r#1", "r#1>"]),
        (loop(ref(), postCondition=[True, ref()]), {"r#1>": False}, True, ["r#0", "r#0>", "r#1", "r#1>"]),
        (alt(ref(), trueWork=ref()), {}, True, ["r|?", "r|1"]),
        (alt(ref(), trueWork=ref()), {"r|1": False}, False, ["r|?", "r|1"]),
        (alt(ref(), trueWork=ref()), {"r|?": False}, True, ["r|?"]),
        (alt(ref(), falseWork=ref()), {"r|?": False}, True, ["r|?", "r|0"]),
    ],
)
async def test_loops_and_alternatives(work: Data, results: dict[str, bool], expected: bool, paths: list[str]) -> None:
    assert await walked(work, lambda path, _: results.get(path, True)) == (expected, paths, [])


@pytest.mark.parametrize(("more", "rounds"), [({"maxIterations": 3}, 3), ({}, LOOP_ROUNDS)])
async def test_a_loop_that_never_agrees_fails_and_says_so(more: Data, rounds: int) -> None:
    result, paths, decisions = await walked(loop(ref(), postCondition=[True, ref()], **more))
    assert (result, len(paths)) == (False, 2 * rounds)
    assert decisions == [f"r: [LOOP] The loop has not ended after {rounds} rounds (maxIterations), so it failed"]


async def test_a_crash_in_a_par_stops_the_others_and_comes_out_as_itself() -> None:
    stopped: list[str] = []

    async def run(path: str, ref: Leaf) -> bool:
        if path == "r.1.0.0":
            raise ValueError("crash")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            stopped.append(path)
        return True

    async def decide(path: str, reason: str) -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="crash"):
        await walk(tree(par(ref(), seq(par(ref(), ref())))), run, decide)
    assert sorted(stopped) == ["r.0", "r.1.0.1"]


class Enough(Exception):
    """Nested loops multiply; the first few hundred tasks tell all there is to tell."""


async def outcome(work: Work) -> tuple[bool | None, list[str]]:
    paths: list[str] = []

    async def run(path: str, ref: Leaf) -> bool:
        paths.append(path)
        if len(paths) > 300:
            raise Enough
        return zlib.crc32(path.encode()) % 3 != 0

    async def decide(path: str, reason: str) -> None:
        pass

    try:
        return await walk(work, run, decide), paths
    except Enough:
        return None, paths


@settings(max_examples=60, deadline=None)
@given(works())
def test_a_path_names_one_run_and_the_same_results_give_the_same_paths(data: Data) -> None:
    """This is what lets a journal be replayed: nothing but the results decides the way."""
    work = tree(data)
    result, paths = asyncio.run(outcome(work))
    assert len(set(paths)) == len(paths)
    assert asyncio.run(outcome(work)) == (result, paths)


def test_paths_tell_conditions_apart() -> None:
    assert [in_condition(path) for path in ("r#0<.1", "r.2|?", "r#3>", "r.1#0|1", "r")] == [
        True,
        True,
        True,
        False,
        False,
    ]

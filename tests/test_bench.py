"""The benchmarks can be named and started; how fast things are is for `make bench` alone."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


def bench(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "bench", *args], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )


def test_every_benchmark_is_listed_with_its_question() -> None:
    """`make bench` stopped at a helper module that asks no question."""
    done = bench("--list")
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert {"append", "streaming", "memory"} <= set(names)
    assert not {"fresh_host", "row", "flood", "soak", "kills"} & set(names)


@pytest.mark.parametrize("name", ["fresh_host", "nothing"])
def test_what_is_no_benchmark_is_refused_with_the_names_there_are(name: str) -> None:
    done = bench(name)
    assert (done.returncode, "choose from agents, ahp" in done.stderr) == (2, True)

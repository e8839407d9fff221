"""What `make test` says in the end."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"


def report(outcome: str, longrepr: object) -> pytest.TestReport:
    return pytest.TestReport("tests/x.py::test", ("x", 1, "test"), {}, outcome, longrepr, "call")  # type: ignore[arg-type]


def test_what_was_skipped_is_counted_by_its_reason() -> None:
    spec = importlib.util.spec_from_file_location("unit", CI / "unit.py")
    assert spec is not None
    assert spec.loader is not None
    unit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(unit)
    outcomes = unit.Outcomes()
    for _ in range(2):
        outcomes.pytest_runtest_logreport(report("skipped", ("x.py", 3, "Skipped: zsh is not installed here")))
    outcomes.pytest_runtest_logreport(report("failed", "AssertionError"))
    outcomes.pytest_runtest_logreport(report("passed", None))
    outcomes.pytest_collectreport(pytest.CollectReport("x.py", "skipped", ("x.py", 1, "Skipped: needs it"), []))
    assert outcomes.skipped == {"zsh is not installed here": 2, "needs it": 1}
    assert list(outcomes.failed) == ["tests/x.py::test"]


@pytest.mark.parametrize(("everything", "code"), [("", 0), ("1", 1)])
def test_programs_that_are_missing_are_named_and_fail_only_where_nothing_may_be_left_out(
    everything: str, code: int
) -> None:
    env = {"PATH": "/nonexistent", "PORTICO_TEST_ALL": everything}
    done = subprocess.run(
        ["/bin/bash", str(CI / "left-out")], env=env, capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, "Left out: all browser tests (chromium is not installed)." in done.stdout) == (code, True)
    assert ("make image" in done.stdout) is not bool(everything)


def test_the_scripts_of_ci_can_be_run() -> None:
    assert os.access(CI / "run", os.X_OK)
    for name in ("run", "left-out"):
        subprocess.run(["bash", "-n", str(CI / name)], check=True, timeout=30)

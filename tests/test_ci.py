"""What `make test` says in the end."""

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

CI = Path(__file__).parents[1] / ".ci"


def report(outcome: str, longrepr: object) -> pytest.TestReport:
    return pytest.TestReport("tests/x.py::test", ("x", 1, "test"), {}, outcome, longrepr, "call")  # type: ignore[arg-type]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, CI / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_was_skipped_is_counted_by_its_reason() -> None:
    outcomes = script("unit").Outcomes()
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


def test_a_release_is_newer_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """npm's newest for an old Node is older than what was installed for a new one; it was listed as newer."""
    npm = tmp_path / "npm"
    older, newer = {"current": "0.19.1", "latest": "0.1.15"}, {"current": "1.9.0", "latest": "1.10.0"}
    told = {"a": older, "b": newer, "c": {"latest": "1.0"}}
    npm.write_text(f"#!/bin/sh\necho '{json.dumps(told)}'\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = script("outdated").node_packages("web")
    assert found == [("web: b", "1.9.0", "1.10.0"), ("web: c", "not installed", "1.0")]


@pytest.mark.parametrize("failing", ["", "docs", "check", "browser-test", "unit", "image", "tests/live"])
def test_each_part_of_the_run_is_timed_and_can_fail_it(tmp_path: Path, failing: str) -> None:
    """Two parts go on beside the others: what they say and how they end must not be lost."""
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\necho "making $*"\n[ -z "$FAILING" ] || case "$*" in *"$FAILING"*) exit 2;; esac\n')
    for name in ("apt-get", "sudo", "chromium", "nginx", "buildah", "mmdebstrap"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    for each in tmp_path.iterdir():
        each.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "FAILING": failing}
    done = subprocess.run([str(CI / "run")], env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode == 0) is (not failing), done.stdout + done.stderr
    took = [line.partition(" s: make ")[2] for line in done.stdout.splitlines() if line.startswith("Took ")]
    parts = ["docs", ".venv/.dev src/portico/doors/pages/.built", "check", "web-test", "browser-test"]
    if not failing:
        assert took == [*parts, "tests/live/node_modules/.installed", "unit", "image"]
    assert not failing or any(f"making {failing}" in line for line in done.stdout.splitlines())


def test_the_scripts_of_ci_can_be_run() -> None:
    assert os.access(CI / "run", os.X_OK)
    for name in ("run", "left-out"):
        subprocess.run(["bash", "-n", str(CI / name)], check=True, timeout=30)

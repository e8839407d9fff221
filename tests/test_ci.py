"""What `make test` says in the end."""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.conftest import LONGEST, longest_first

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


def test_the_longest_files_come_first_and_each_stays_whole() -> None:
    found = ["tests/a.py::b", "tests/crash/x.py::2", "tests/crash/x.py::1", "tests/m.py::1", "tests/m.py::0"]
    items = [SimpleNamespace(nodeid=each) for each in [*found, "tests/live/y.py::1"]]
    longest_first(items)  # type: ignore[arg-type]
    assert [each.nodeid for each in items] == ["tests/live/y.py::1", *found[1:], found[0]]
    assert [name for name in LONGEST if not (CI.parent / name).exists()] == []


def test_a_worker_that_dies_fails_one_test_and_hinders_no_other(tmp_path: Path) -> None:
    """xdist gave the finished files of a dead worker to the others, and all waited for ever."""
    for number in range(12):
        (tmp_path / f"test_{number:02}.py").write_text("import os\ndef test_first(): pass\ndef test_second(): pass\n")
    dies = tmp_path / "test_10.py"
    dies.write_text(
        f"{dies.read_text()}def test_dies(): os._exit(1) if 'PYTEST_XDIST_WORKER' in os.environ else None\n"
    )
    command = [sys.executable, str(CI / "unit.py"), "-c", str(CI.parent / "pyproject.toml")]
    command += ["--rootdir", str(tmp_path), str(tmp_path)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert "1 failed, 24 passed" in done.stdout, done.stdout + done.stderr
    assert (done.returncode, done.stdout.count("test_10.py::test_dies") > 1) == (0, True), done.stdout
    assert "UNSTABLE" in done.stdout


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


def stub(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


SAYS = 'for each in one two; do echo "$0 $* $each"; [ -z "$SLOW" ] || sleep 0.2; done\n'
FAILS = '[ -z "$FAILING" ] || case "$0 $*" in *"$FAILING"*) exit 2;; esac'
PROGRAMS = ("ruff", "mypy", "python", "zensical")
MADE = (
    *("web/node_modules/.installed", "src/portico/doors/pages/.built"),
    *("tests/live/node_modules/.installed", "tests/clients/node_modules/.installed"),
)
PARTS = {
    "unit": ".ci/unit.py",
    "browser-test": "test:browser",
    "check": "mypy",
    "web-test": "web --silent test",
    "image": "build.sh",
    "docs": "zensical",
}
"""Of everything that `make test` does, a word of the last command that each part runs."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The real Makefile and scripts, where everything is installed and every program only says what it was asked."""
    for name in ("pyproject.toml", "web/package.json", "web/package-lock.json"):
        stub(tmp_path / name, "")
    for name in ("package.json", "package-lock.json"):
        stub(tmp_path / "tests" / "live" / name, "")
        stub(tmp_path / "tests" / "clients" / name, "")
    shutil.copy(CI.parent / "Makefile", tmp_path)
    shutil.copytree(CI, tmp_path / ".ci")
    stub(tmp_path / "web/browser/chromium.sh", "")
    stub(tmp_path / "tests/image/build.sh", SAYS + FAILS)
    for name in ("apt-get", "sudo", "chromium", "chromium-headless-shell", "nginx", "caddy", "buildah", "mmdebstrap"):
        stub(tmp_path / "programs" / name, "")
    stub(tmp_path / "programs" / "npm", SAYS + FAILS)
    for name in (*PROGRAMS, "pip"):
        stub(tmp_path / ".venv" / "bin" / name, SAYS + FAILS)
    for name in (*MADE, *(f".venv/{each}" for each in (".dev", ".core", ".docs", ".compiled", ".collected"))):
        stub(tmp_path / name, "")
    return tmp_path


def run(checkout: Path, *command: str, **env: str) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": f"{checkout / 'programs'}:/usr/bin:/bin", "TMPDIR": str(checkout), **env}
    return subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("failing", ["", *PARTS])
def test_each_part_of_the_run_is_timed_and_can_fail_it(checkout: Path, failing: str) -> None:
    """The parts go on beside each other: what they say and how they end must not be lost."""
    done = run(checkout, str(checkout / ".ci" / "run"), FAILING=PARTS.get(failing, ""))
    assert (done.returncode == 0) is (not failing), done.stdout + done.stderr
    ends = [re.sub(r"\d+ s: make ", "", line) for line in done.stdout.splitlines()[-len(PARTS) :]]
    assert sorted(ends) == sorted(f"FAILED after {each}" if each == failing else f"Took {each}" for each in PARTS)
    for each in PARTS.values():
        assert [line.split()[-1] for line in done.stdout.splitlines() if each in line] == ["one", "two"]


def test_what_a_part_prints_stands_together(checkout: Path) -> None:
    done = run(checkout, "make", "test", SLOW="1")
    assert done.returncode == 0, done.stdout + done.stderr
    blocks = re.split(r"^== ", done.stdout, flags=re.MULTILINE)[1:]
    assert sorted(block.split()[0] for block in blocks) == sorted(set(PARTS) - {"image", "docs"})
    for block in blocks:
        name, *lines = block.splitlines()
        found = [(part, line.split()[-1]) for line in lines for part, word in PARTS.items() if word in line]
        assert found == [(name, "one"), (name, "two")]


def test_an_interrupt_ends_all_parts(checkout: Path) -> None:
    os.mkfifo(checkout / "started")
    stub(checkout / ".venv/bin/mypy", "echo here >started; exec sleep 600")
    with subprocess.Popen(
        ["make", "test", "PARTS=check web-test"],
        cwd=checkout,
        env={"PATH": f"{checkout / 'programs'}:/usr/bin:/bin", "TMPDIR": str(checkout)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert (checkout / "started").read_text() == "here\n"
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.communicate(timeout=60)  # until nobody has it open any more
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0


def test_the_scripts_of_ci_can_be_run() -> None:
    assert os.access(CI / "run", os.X_OK)
    for name in ("run", "left-out", "part"):
        subprocess.run(["bash", "-n", str(CI / name)], check=True, timeout=30)

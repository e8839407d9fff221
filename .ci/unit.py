"""Runs pytest. A test that fails beside others is run once more, alone, with its first failure shown.

The suite drives real agents, browsers, databases and kills on machines that are busy with other work. One that passes
alone is told as unstable: the first failure stands above, and is worth a look, for it may be a race of the product.
More than six are a failure whatever they do alone.

What was skipped is told in the end, with the reason.
"""

import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from scheduler import Scheduler
    from xdist.remote import Producer

OPTIONS = ["-n", "4", "--dist", "loadfile", "--no-loadscope-reorder", "--durations", "15", "--durations-min", "10"]
"""In the order of tests/conftest.py: the longest files first."""
MOST_UNSTABLE = 6  # of 5,000: a thousandth


class Outcomes:
    """A plugin that notes what fails and what is skipped; of tests that run in other processes it hears as well."""

    def __init__(self) -> None:
        self.failed: dict[str, None] = {}
        self.skipped: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = None
        self._note_skip(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A whole file that skips itself."""
        self._note_skip(report)

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: "Producer") -> "Scheduler":
        from scheduler import Scheduler  # pytest warns when a plugin is imported before it

        return Scheduler(config, log)

    def _note_skip(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1


def main() -> int:
    # A shell without job control lets what it runs in the background ignore Ctrl-C, and so does what the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    outcomes = Outcomes()
    code = int(pytest.main([*OPTIONS, *sys.argv[1:]], plugins=[outcomes]))
    if code == pytest.ExitCode.TESTS_FAILED and 0 < len(outcomes.failed) <= MOST_UNSTABLE:
        code = run_alone(list(outcomes.failed))
    for reason, count in sorted(outcomes.skipped.items()):
        print(f"Left out: {count} test{'s' * (count != 1)} ({reason}).")
    return code


def run_alone(tests: list[str]) -> int:
    print("\nOnce more, alone:", *tests, sep="\n  ", flush=True)
    code = subprocess.call([sys.executable, "-m", "pytest", *tests])
    if code == 0:
        print("UNSTABLE (passed alone, the failure is above):", *tests, sep="\n  ")
    return code


if __name__ == "__main__":
    sys.exit(main())

"""Runs pytest. A test that fails beside others is run once more, alone, with its first failure shown.

The suite drives real agents, browsers, databases and kills on machines that are busy with other work. One that passes
alone is told as unstable: the first failure stands above, and is worth a look, for it may be a race of the product.
More than six are a failure whatever they do alone.
"""

import subprocess
import sys

import pytest

MOST_UNSTABLE = 6  # of 5,000: a thousandth


class Failures:
    """A plugin that notes what fails; of tests that run in other processes it hears as well."""

    def __init__(self) -> None:
        self.tests: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tests[report.nodeid] = None


def main() -> int:
    failures = Failures()
    code = pytest.main(["-n", "3", "--dist", "loadfile", *sys.argv[1:]], plugins=[failures])
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failures.tests) <= MOST_UNSTABLE:
        return code
    print("\nOnce more, alone:", *failures.tests, sep="\n  ", flush=True)
    code = subprocess.call([sys.executable, "-m", "pytest", *failures.tests])
    if code == 0:
        print("UNSTABLE (passed alone, the failure is above):", *failures.tests, sep="\n  ")
    return code


if __name__ == "__main__":
    sys.exit(main())

"""The short form of `workflow_driver`: every kind of step, and kills at random times. PORTICO_KILLS=N asks for N kills
and as many jobs."""

from collections import Counter
from pathlib import Path

import pytest

from portico.features.jobs import events as je
from portico.features.jobs.events import JobOutcome
from portico.features.jobs.workflow.files import load_text
from portico.kernel import events as e
from portico.kernel.events import Record
from portico.testing.temporal import TemporalServer
from tests.crash.test_jobs import KILLS
from tests.crash.workflow_driver import WORKFLOWS, Driver, Report, drive
from tests.temporal import temporal

__all__ = ["temporal"]
KINDS = len(WORKFLOWS) - 1
"""Of jobs: one is only called."""


async def test_jobs_with_every_kind_of_step_survive_kills(tmp_path: Path) -> None:
    report = await drive(tmp_path, seed=KILLS, jobs=max(KINDS, KILLS), kills=2 * KILLS)
    assert (report.errors, report.counts["kills"] > 0) == ([], True)


async def test_jobs_on_temporal_survive_kills(tmp_path: Path, temporal: TemporalServer) -> None:
    report = await drive(tmp_path, seed=KILLS, jobs=max(KINDS, KILLS), kills=KILLS, temporal=temporal.address)
    assert (report.errors, report.counts["kills"] > 0) == ([], True)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_workflows_of_the_driver_are_valid(name: str) -> None:
    load_text(WORKFLOWS[name], f"{name}.yaml", name)


# -- what the driver finds -----------------------------------------------------------------------------------------


def _job(*events: e.Event, name: str = "hooks", outcome: JobOutcome = "succeeded") -> list[e.Event]:
    started = je.JobStarted(job="job-1", name=name, entry={}, cwd="/", by="me")
    return [started, *events, je.JobEnded(job="job-1", outcome=outcome, by="host")]


LEDGERS: dict[str, tuple[list[str], str]] = {
    "each once": (["job-1 before 1", "job-1 after 1"], ""),
    "again in a new attempt": (["job-1 before 1", "job-1 before 2", "job-1 after 1"], ""),
    "twice in one attempt": (["job-1 before 1", "job-1 before 1", "job-1 after 1"], "executed its command 2 times"),
    "never": (["job-1 before 1"], "executed ['before'], not ['after', 'before']"),
    "something else": (["job-1 before 1", "job-1 after 1", "job-1 never 1"], "executed ['after', 'before', 'never']"),
    "of another job": (["job-1 before 1", "job-1 after 1", "job-10 before 1", "job-10 before 1"], ""),
}


@pytest.mark.parametrize(("lines", "words"), LEDGERS.values(), ids=LEDGERS)
def test_each_execution_of_a_command_is_counted(tmp_path: Path, lines: list[str], words: str) -> None:
    driver = Driver.__new__(Driver)
    driver.report = Report()
    driver._check_ledger("job-1", _job(), Counter(lines))
    found = driver.report.errors
    assert (len(found), words in "".join(found)) == (int(bool(words)), True), found


@pytest.mark.parametrize(("time", "errors"), [(99, 0), (100, 0), (101, 1)])
def test_a_check_that_runs_again_after_it_has_passed_is_found(time: int, errors: int) -> None:
    driver = Driver.__new__(Driver)
    driver.report = Report()
    started = je.TaskStarted(task="task-1", name="left", model="m", by="job:job-1", job="job-1")
    decided = je.TaskDecided(reason="passed", passed=True, check="check 0")
    records = [Record(1, "task/task-1", 1, 50, b"", started), Record(2, "task/task-1", 2, 100, b"", decided)]
    driver._check_checks(records, Counter([f"job-1 check {time}", "job-1 check 60"]))
    assert len(driver.report.errors) == errors

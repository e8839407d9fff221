"""The short form of `workflow_driver`: every kind of step, and kills at random times. PORTICO_KILLS=N asks for N kills
and as many jobs."""

from pathlib import Path

import pytest

from portico.features.jobs.workflow.files import load_text
from portico.testing.temporal import TemporalServer
from tests.crash.test_jobs import KILLS
from tests.crash.workflow_driver import WORKFLOWS, drive
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

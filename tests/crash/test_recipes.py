"""Every recipe runs with the built-in agent and the scripted model, on both engines, while its host is killed. The same
with a real agent is in tests/live."""

from pathlib import Path

from portico.testing.temporal import TemporalServer
from tests.crash.recipes import drive
from tests.crash.test_jobs import KILLS
from tests.temporal import temporal

__all__ = ["temporal"]


async def test_all_recipes_survive_kills(tmp_path: Path) -> None:
    report = await drive(tmp_path, seed=KILLS, kills=KILLS)
    assert (report.errors, report.counts["kills"] > 0) == ([], True)


async def test_all_recipes_on_temporal_survive_kills(tmp_path: Path, temporal: TemporalServer) -> None:
    report = await drive(tmp_path, seed=KILLS, kills=KILLS, temporal=temporal.address)
    assert (report.errors, report.counts["kills"] > 0) == ([], True)

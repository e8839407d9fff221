"""Recipes through a real ACP agent on Temporal, whose host is killed."""

from pathlib import Path

import pytest

from portico.testing.temporal import TemporalServer
from tests.crash.recipes import drive

pytestmark = pytest.mark.live


async def test_recipes_on_temporal_run_with_a_real_agent(tmp_path: Path, temporal: TemporalServer) -> None:
    report = await drive(tmp_path, seed=5, kills=1, agent="acp:goose", temporal=temporal.address, jobs=2)
    assert (report.errors, report.counts["kills"]) == ([], 1)

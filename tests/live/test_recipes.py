"""All recipes through a real ACP agent, whose host is killed."""

from pathlib import Path

import pytest

from tests.crash.recipes import drive

pytestmark = pytest.mark.live


async def test_all_recipes_run_with_a_real_agent(tmp_path: Path) -> None:
    report = await drive(tmp_path, seed=5, kills=2, agent="acp:goose")
    assert (report.errors, report.counts["kills"] > 0) == ([], True)

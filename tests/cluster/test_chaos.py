"""The short run of `tests/cluster/chaos.py`: each thing happens once."""

from tests.cluster.chaos import chaos


async def test_nothing_acknowledged_is_lost_whatever_happens() -> None:
    found = await chaos(seconds=1, seed=19)
    assert found["happened"] == {"kill": 1, "stop": 1, "pause": 1, "restart_database": 1, "cut": 1}
    assert found["acknowledged"] > 0
    assert found["seen"] > 0

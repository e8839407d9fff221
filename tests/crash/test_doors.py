"""The short run of `python -m bench.kills`: clients outside, through four doors, of a host that is killed."""

from pathlib import Path

from bench.kills import Kills


async def test_nothing_acknowledged_or_seen_is_lost_at_any_door(tmp_path: Path) -> None:
    found = await Kills(tmp_path, seed=13).run(4)
    assert (found["kills"], found["killed at a named point"]) == (4, 1)
    assert min(found[f"seen ({door})"] for door in ("rest", "portal", "anywhere", "ahp")) > 0
    assert min(found[name] for name in ("jobs", "questions of jobs", "raises")) > 0

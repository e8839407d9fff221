"""Old deltas go, whole events stay, cursors stay valid."""

import pytest

from portico.kernel.log.sqlite import database, reader
from portico.kernel.log.stored.log import StoredLog
from portico.testing.clock import FakeClock
from tests.log.conftest import LogOpener
from tests.log.events import CHANNEL, delta, ended, output, started


@pytest.fixture
async def old(open_log: LogOpener, clock: FakeClock) -> StoredLog:
    log = await open_log(clock=clock.time)
    await log.append(CHANNEL, started(), delta("a"), delta("b"), output("c"), ended("ab"))
    clock.advance(60)
    await log.append(CHANNEL, started("p2"), delta("new", "p2"))
    return log


def now(clock: FakeClock) -> int:
    return int(clock.time() * 1000)


async def test_drops_deltas_older_than_the_mark(old: StoredLog, clock: FakeClock) -> None:
    assert await old.compact(now(clock) - 30_000) == 3
    left = await old.read(CHANNEL)
    assert [(r.pos, r.event) for r in left] == [
        (1, started()),
        (5, ended("ab")),
        (6, started("p2")),
        (7, left[3].event),
    ]
    assert [r.pos for r in await old.read(CHANNEL, after=2)] == [5, 6, 7], "a cursor in the gap goes on behind it"
    assert await old.compact(now(clock) - 30_000) == 0
    await old.close()


@pytest.mark.parametrize("stretch", [0, 10, 10_000], ids=["by the index", "by either", "as they lie"])
async def test_chosen_channels_behind_any_number(
    old: StoredLog, clock: FakeClock, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also behind one whose record is gone: each channel is read from where it stood then."""
    monkeypatch.setattr(reader, "_STRETCH", stretch)
    for index in range(6):
        await old.append(f"session/{index % 3}", started(), delta("x"), ended("x"))
    clock.advance(60)
    await old.compact(now(clock) - 30_000)
    everything = await old.read_all()
    assert len(everything) < old.seq
    for chosen in ([CHANNEL], ["session/0", "session/2"], ["session/1", CHANNEL, "nowhere"]):
        for after in range(old.seq + 1):
            wanted = [record for record in everything if record.channel in chosen and record.seq > after]
            assert await old.read_all(*chosen, after=after) == wanted
            assert await old.read_all(*chosen, after=after, limit=2) == wanted[:2]
    await old.close()


@pytest.mark.parametrize("first", [6, 7], ids=["a turn's start", "a terminal's first piece"])
async def test_keeps_what_still_runs(old: StoredLog, clock: FakeClock, first: int) -> None:
    assert await old.compact(now(clock) + 1, {CHANNEL: first}) == 3
    assert [r.pos for r in await old.read(CHANNEL)] == [1, 5, 6, 7]
    assert await old.compact(now(clock) + 1, {"session/other": 1}) == 1
    await old.close()


async def test_goes_in_small_steps(old: StoredLog, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_DROP_ROWS", 1)
    assert await old.compact(now(clock) + 1) == 4
    assert [r.pos for r in await old.read(CHANNEL)] == [1, 5, 6]
    await old.close()

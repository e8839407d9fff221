"""Deltas of one part that wait for the same commit become one event; nothing else does."""

import asyncio

import pytest

from portico.kernel import limits
from portico.kernel.events import Event, ToolInput
from portico.kernel.log.stored.log import StoredLog
from tests.log.events import CHANNEL, delta, ended, output, started


async def written(log: StoredLog, *events: Event) -> list[Event]:
    log.post("x", started())  # occupies the writer, so that what follows waits for one commit
    for event in events:
        log.post(CHANNEL, event)
    await log.flush()
    return [record.event for record in await log.read(CHANNEL)]


async def test_neighbours_merge(log: StoredLog) -> None:
    assert await written(log, started(), delta("a"), delta("b"), delta("ü"), ended("abü")) == [
        started(),
        delta("abü"),
        ended("abü"),
    ]


async def test_parts_kinds_and_channels_stay_apart(log: StoredLog) -> None:
    events = [
        delta("1"),
        delta("2", "p2"),
        delta("3"),
        output("4", "p1"),
        delta("5", kind=ToolInput),
    ]
    assert await written(log, *events) == events


async def test_a_whole_event_in_between_keeps_the_order(log: StoredLog) -> None:
    events = [delta("a"), started("p2"), delta("b")]
    assert await written(log, *events) == events


async def test_another_channel_in_between_does_not_matter(log: StoredLog) -> None:
    log.post("x", started())
    log.post(CHANNEL, delta("a"))
    log.post("other", delta("-"))
    log.post(CHANNEL, delta("b"))
    await log.flush()
    assert [r.event for r in await log.read(CHANNEL)] == [delta("ab")]


async def test_a_merged_delta_is_bounded(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DELTA_BYTES", 10)
    log.post("x", started())
    for _ in range(11):
        log.post(CHANNEL, delta("."))
    await log.flush()
    assert [r.event for r in await log.read(CHANNEL)] == [delta("." * 10), delta(".")]


async def test_an_awaited_delta_is_not_merged_away(log: StoredLog) -> None:
    log.post("x", started())
    log.post(CHANNEL, delta("a"))
    assert await log.append(CHANNEL, delta("b")) == 3
    assert [r.event for r in await log.read(CHANNEL)] == [delta("a"), delta("b")]


async def test_a_fast_stream_costs_few_commits(log: StoredLog) -> None:
    async def stream(channel: str) -> None:
        for _ in range(500):
            log.post(channel, delta("x"))
            await asyncio.sleep(0)

    await asyncio.gather(*(stream(f"s{i}") for i in range(10)))
    await log.flush()
    records = [r for i in range(10) for r in await log.read(f"s{i}")]
    assert sum(len(getattr(r.event, "text", "")) for r in records) == 5000
    assert len(records) < 2500


async def test_the_first_delta_behind_an_append_waits_for_no_cadence(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first word of an answer stood 3 ms behind the commit of its turn's start."""
    monkeypatch.setattr(limits, "COMMIT_CADENCE", 60.0)
    await log.append(CHANNEL, started())
    log.post(CHANNEL, delta("a"))
    log.post(CHANNEL, delta("b"))  # in the same tick: the same event
    async for batch in log.follow(CHANNEL, after=1):
        assert [r.event for r in batch] == [delta("ab")]
        break


async def test_deltas_alone_wait_for_the_cadence_and_nothing_else_does(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "COMMIT_CADENCE", 60.0)
    log.post("x", started())
    await log.append("x", started())
    for text in "abc":
        log.post(CHANNEL, delta(text))
        await asyncio.sleep(0.001)
    assert log.commits == 1
    await log.append(CHANNEL, ended("abc"))
    assert [r.event for r in await log.read(CHANNEL)] == [delta("abc"), ended("abc")]
    assert log.commits == 2

    monkeypatch.setattr(limits, "COMMIT_CADENCE", 0.001)
    log.post(CHANNEL, delta("d"))
    async for batch in log.follow(CHANNEL, after=2):
        assert [r.event for r in batch] == [delta("d")]
        break


async def test_a_delta_that_a_person_waits_for_waits_for_no_cadence(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The echo of a key stood 3 ms behind the echo of the key before."""
    monkeypatch.setattr(limits, "COMMIT_CADENCE", 60.0)
    log.post(CHANNEL, delta("a"))
    await log.flush()
    before = log.commits
    log.post(CHANNEL, delta("b"))
    await asyncio.sleep(0.001)
    assert log.commits == before, "other deltas still wait"
    log.post(CHANNEL, delta("c"), soon=True)
    async for batch in log.follow(CHANNEL, after=1):
        assert [r.event for r in batch] == [delta("bc")]
        break
    assert log.commits == before + 1
    log.post(CHANNEL, delta("d"))
    await asyncio.sleep(0.001)
    assert log.commits == before + 1, "only the one that was posted so"

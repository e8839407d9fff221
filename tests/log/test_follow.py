"""Replay, then live: no gap, no repeat, and nobody waits for a slow reader."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import pytest

from portico.kernel import limits
from portico.kernel.errors import TooSlow
from portico.kernel.events import Record
from portico.kernel.log.feed import Follower
from portico.kernel.log.page import Page
from portico.kernel.log.stored.log import StoredLog
from tests.log.conftest import LogOpener
from tests.log.events import fact


def following(log: StoredLog, *channels: str, after: int = 0) -> aclosing[AsyncGenerator[list[Record], None]]:
    return aclosing(cast(AsyncGenerator[list[Record], None], log.follow(*channels, after=after)))


async def collect(log: StoredLog, count: int, *channels: str, after: int = 0) -> list[Record]:
    records: list[Record] = []
    async with following(log, *channels, after=after) as batches:
        async for batch in batches:
            records += batch
            if len(records) >= count:
                return records
    raise AssertionError("the stream ended")


async def test_replays_then_goes_on_live(log: StoredLog) -> None:
    await log.append("a", *(fact(i) for i in range(5)))
    task = asyncio.create_task(collect(log, 8, "a", after=2))
    for i in range(5):
        await log.append("a", fact(i))
    assert [r.pos for r in await task] == [3, 4, 5, 6, 7, 8, 9, 10]


async def test_no_gap_and_no_repeat_while_it_joins(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "READ_EVENTS", 7)  # many rounds of replay

    async def write() -> None:
        for i in range(300):
            await log.append("a", fact(i))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write())
        readers = [tasks.create_task(collect(log, 300, "a")) for _ in range(5)]
    for reader in readers:
        assert [r.pos for r in reader.result()] == list(range(1, 301))


async def test_several_channels_come_in_the_order_of_seq(log: StoredLog) -> None:
    await log.append("a", fact(0))

    async def write() -> None:
        for i in range(100):
            log.post("abc"[i % 3], fact(i))
            if i % 10 == 0:
                await asyncio.sleep(0)
        await log.flush()

    async with asyncio.TaskGroup() as tasks:
        two = tasks.create_task(collect(log, 68, "a", "b"))
        everything = tasks.create_task(collect(log, 101))
        tasks.create_task(write())
    assert [r.seq for r in everything.result()] == list(range(1, 102))
    expected = [r.seq for r in everything.result() if r.channel != "c"]
    assert [r.seq for r in two.result()] == expected


async def test_a_slow_reader_is_ended_and_comes_back_with_its_cursor(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FOLLOWER_BYTES", 1000)
    cursor = 0
    async with following(log, "a") as slow:
        await log.append("a", fact("first"))
        cursor = (await anext(slow))[-1].pos
        waiting = asyncio.ensure_future(anext(slow))
        await asyncio.sleep(0)
        fast = asyncio.create_task(collect(log, 100, "a"))
        waiting.cancel()
        await asyncio.wait({waiting})
    async with following(log, "a", after=cursor) as slow:
        joined = asyncio.ensure_future(anext(slow))
        await log.append("a", fact("joined"))
        cursor = (await joined)[-1].pos
        for i in range(98):
            await log.append("a", fact(i))  # nobody takes these: the reader is slow
        assert len(await fast) == 100, "the fast one saw everything meanwhile"
        with pytest.raises(TooSlow):
            await anext(slow)
    assert [r.pos for r in await collect(log, 98, "a", after=cursor)] == list(range(3, 101))
    assert log.followers == 0


async def test_exactly_the_bound_is_not_too_slow(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    async with following(log, "a") as reader:
        joined = asyncio.ensure_future(anext(reader))
        await log.append("a", fact("x"))
        [record] = await joined
        monkeypatch.setattr(limits, "FOLLOWER_BYTES", 2 * len(record.data))
    async with following(log, "a", after=1) as reader:
        joined = asyncio.ensure_future(anext(reader))
        await log.append("a", fact("x"))
        await joined
        await log.append("a", fact("x"))
        await log.append("a", fact("x"))
        assert len(await anext(reader)) == 2
        for _ in range(3):
            await log.append("a", fact("x"))
        with pytest.raises(TooSlow):
            await anext(reader)


async def test_one_large_batch_does_not_end_a_quick_reader(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single commit above the bound ended every reader, however quick."""
    monkeypatch.setattr(limits, "FOLLOWER_BYTES", 1000)
    async with following(log, "a") as reader:
        joined = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)
        await log.append("a", *(fact("x" * 100) for _ in range(50)))
        assert len(await joined) == 50


async def test_a_reader_far_ahead_or_of_nothing_just_waits(log: StoredLog) -> None:
    async with following(log, "nowhere", after=99) as reader:
        waiting = asyncio.ensure_future(anext(reader))
        await log.append("a", fact(1))
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait({waiting})
    assert log.followers == 0


async def test_what_was_missed_comes_in_small_pages_shared_by_all(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 1,000 readers that stood still held all it had missed: 960 MB of a log of 2 MB."""
    monkeypatch.setattr(limits, "REPLAY_BYTES", 1000)
    await log.append("a", *(fact("x" * 100) for _ in range(100)))
    first, second = (aiter(log.follow("a")) for _ in range(2))
    pages = [(await anext(first), await anext(second)) for _ in range(5)]
    assert all(one is other for one, other in pages)
    assert all(len(one) < 12 for one, _ in pages)
    assert [record.pos for one, _ in pages for record in one] == list(range(1, 1 + sum(len(one) for one, _ in pages)))
    assert pages[0][0].form("door", lambda page: object()) is pages[0][1].form("door", lambda page: object())


async def test_only_the_last_pages_are_kept_and_none_of_what_is_deleted(open_log: LogOpener) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "REPLAY_BYTES", 100)
        patch.setattr(limits, "REPLAY_PAGES", 3)
        log = await open_log()
        await log.append("a", *(fact("x" * 100) for _ in range(10)))
        reader = aiter(log.follow("a"))
        for _ in range(10):
            await anext(reader)
        assert len(log._replay._pages) == 3
        await log.delete("a")
        assert len(log._replay._pages) == 0
        await log.close()


async def test_a_follower_takes_on_channels_while_it_is_read(log: StoredLog) -> None:
    """In the replay and live, in the order of seq, and nothing of the others."""
    for name in ("a", "b", "c"):
        await log.append(name, fact(f"{name}1"))
    follower = Follower(["a"])
    pages = log.follow(after=0, follower=follower)
    seen = list(await anext(pages))
    follower.add("b")
    await log.append_all(("c", fact("c2")), ("b", fact("b2")), ("a", fact("a2")))
    seen += await anext(pages)
    joined = asyncio.ensure_future(anext(pages))
    await asyncio.sleep(0)
    follower.add("c")
    await log.append_all(("c", fact("c3")), ("d", fact("d1")), ("a", fact("a3")))
    seen += await joined
    assert [(r.channel, r.pos) for r in seen] == [("a", 1), ("b", 1), ("b", 2), ("a", 2), ("c", 3), ("a", 3)]
    await cast(AsyncGenerator[Page, None], pages).aclose()
    assert log.followers == 0


async def test_a_follower_of_nothing_yet_waits_for_its_first_channel(log: StoredLog) -> None:
    await log.append("a", fact("before"))
    follower = Follower([])
    pages = log.follow(after=0, follower=follower)
    joined = asyncio.ensure_future(anext(pages))
    await asyncio.sleep(0)
    await log.append("b", fact("of another"))
    follower.add("a")
    await log.append("a", fact("now"))
    assert [(r.channel, r.pos) for r in await joined] == [("a", 2)]
    await cast(AsyncGenerator[Page, None], pages).aclose()


async def test_an_attached_follower_gets_what_comes_until_it_leaves_or_falls_behind(log: StoredLog) -> None:
    await log.append("a", fact("before"))
    follower = Follower(["a"], limit=1)
    log.attach(follower)
    assert not follower.waiting
    await log.append("a", fact("one"))
    await log.append("b", fact("of another"))
    assert [r.pos for r in follower.drain()] == [2]
    await log.append("a", fact("two"))
    await log.append("a", fact("three"))  # over its limit: it has to come back through the log
    assert (follower.ended, follower.waiting, follower.drain()) == (True, True, [])
    follower.leave()
    follower.leave()
    assert log.followers == 0


async def test_a_reader_with_a_timeout_hears_that_nothing_has_come(log: StoredLog) -> None:
    await log.append("a", fact("before"))
    pages = log.follow("a", timeout=0.01)
    assert [[r.pos for r in await anext(pages)] for _ in range(3)] == [[1], [], []]
    await log.append("a", fact("now"))
    assert [r.pos for r in await anext(pages)] == [2]
    await cast(AsyncGenerator[Page, None], pages).aclose()
    assert log.followers == 0


@pytest.mark.parametrize("channels", [["a"], None])
async def test_all_who_are_behind_share_what_they_take(log: StoredLog, channels: list[str] | None) -> None:
    """Each joined what had come meanwhile into a page of its own."""
    followers = [Follower(channels) for _ in range(5)]
    late = Follower(channels)
    for follower in followers:
        log.attach(follower)
    for number in range(4):
        if number == 2:
            log.attach(late)
        await log.append("a", fact(number))
    pages = [await follower.take() for follower in followers]
    assert [each.pos for each in pages[0]] == [1, 2, 3, 4]
    assert all(page is pages[0] for page in pages)
    assert [each.pos for each in await late.take()] == [3, 4]
    both = Follower(["a", "b"])
    log.attach(both)
    await log.append("b", fact("x"))
    await log.append("a", fact("y"))
    assert [(each.channel, each.pos) for each in await both.take()] == [("b", 1), ("a", 5)]

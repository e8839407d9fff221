import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from portico.kernel import limits
from portico.kernel.errors import BadRequest, LogUnavailable, TooLarge
from portico.kernel.events import Audited, HistoryCopied, Record
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.log.sqlite.database import Batch
from portico.kernel.log.stored.log import StoredLog
from tests.log.conftest import LogOpener
from tests.log.events import CHANNEL, delta, fact


async def test_numbers_every_channel_and_the_whole_host(log: StoredLog) -> None:
    await log.append("a", fact(1), fact(2))
    await log.append("b", fact(3))
    assert await log.append("a", fact(4)) == 4

    assert [(r.seq, r.pos, r.event) for r in await log.read("a")] == [(1, 1, fact(1)), (2, 2, fact(2)), (4, 3, fact(4))]
    assert [(r.seq, r.channel, r.pos) for r in await log.read_all(after=1)] == [(2, "a", 2), (3, "b", 1), (4, "a", 3)]
    assert [r.seq for r in await log.read_all("b", "nowhere")] == [3]
    assert (log.seq, log.head("a"), log.head("b"), log.head("nowhere")) == (4, 3, 1, 0)
    assert log.channels("") == ["a", "b"]


async def test_everything_is_there_after_opening_again(open_log: LogOpener) -> None:
    log = await open_log()
    await log.append("a", fact(1), fact(2))
    before = await log.read("a")
    await log.close()

    log = await open_log()
    assert await log.read("a") == before
    assert await log.append("a", fact(3)) == 3
    assert log.head("a") == 3
    await log.close()


async def test_events_of_several_channels_are_written_together(log: StoredLog) -> None:
    batches: list[list[Record]] = []
    log.on_commit(lambda records: batches.append(list(records)))
    await asyncio.gather(log.append_all(("a", fact(1)), ("b", fact(2)), ("a", fact(3))), log.append("b", fact(4)))
    assert [(r.channel, r.pos, r.event) for r in batches[0][:3]] == [
        ("a", 1, fact(1)),
        ("b", 1, fact(2)),
        ("a", 2, fact(3)),
    ]
    with pytest.raises(TooLarge):
        await log.append_all(("a", fact(5)), ("b", Audited(action="x" * limits.EVENT_BYTES, by="test")))
    assert (log.head("a"), log.head("b")) == (2, 2)


async def test_many_producers_share_commits(log: StoredLog) -> None:
    await asyncio.gather(*(log.append(f"c{i % 5}", fact(i)) for i in range(500)))

    assert log.commits < 50
    assert [r.seq for r in await log.read_all(limit=1000)] == list(range(1, 501))
    for i in range(5):
        assert [r.pos for r in await log.read(f"c{i}")] == list(range(1, 101))


async def test_durable_before_visible(sqlite_log: SqliteLog, tmp_path: Path) -> None:
    """When `append` returns or a tap is called, another connection finds the event on the disk."""
    seen: list[int] = []

    def look(records: object) -> None:
        with sqlite3.connect(tmp_path / "log.db") as other:
            seen.append(other.execute("SELECT count(*) FROM events").fetchone()[0])
        other.close()

    sqlite_log.on_commit(look)
    await sqlite_log.append("a", fact(1), fact(2))
    await sqlite_log.append("a", fact(3))
    assert seen == [2, 3]


async def test_taps_come_before_followers_and_waiters(log: StoredLog) -> None:
    order: list[str] = []
    log.on_commit(lambda records: order.append("tap"))

    async def follow() -> None:
        async for _ in log.follow("a"):
            order.append("follower")
            return

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(follow())
        await asyncio.sleep(0)
        await log.append("a", fact(1))
    assert order == ["tap", "follower"]


async def test_an_append_is_one_transaction_however_large(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a batch parted the events of one append: a kill in between kept half of them."""
    monkeypatch.setattr(limits, "BATCH_EVENTS", 10)
    batches: list[list[int]] = []
    log.on_commit(lambda records: batches.append([r.seq for r in records]))
    for i in range(5):
        log.post("b", fact(i))
    await log.append("a", *(fact(i) for i in range(40)))
    assert any({*range(6, 46)} <= {*batch} for batch in batches)


async def test_a_batch_is_bounded(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BATCH_EVENTS", 10)
    sizes: list[int] = []
    log.on_commit(lambda records: sizes.append(len(records)))
    await asyncio.gather(*(log.append("a", fact(i)) for i in range(11)))
    assert max(sizes) == 10
    assert sum(sizes) == 11


async def test_the_same_event_twice_is_two_facts(log: StoredLog) -> None:
    one = fact(1)
    assert await log.append("a", one, one) == 2


async def test_append_needs_an_event(log: StoredLog) -> None:
    with pytest.raises(BadRequest):
        await log.append("a")


async def test_one_event_over_the_limit_is_refused_and_nothing_of_its_append_is_written(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EVENT_BYTES", 100)
    room = 100 - len('{"type":"audit","action":"","by":"test"}')
    await log.append("a", fact("x" * room))
    with pytest.raises(TooLarge):
        await log.append("a", fact(1), fact("x" * (room + 1)))
    with pytest.raises(TooLarge):
        log.post("a", fact("x" * (room + 1)))
    assert log.head("a") == 1


async def test_what_json_cannot_hold_is_refused_alone(log: StoredLog) -> None:
    """An event that cannot be encoded took the whole batch with it, and every append in it waited for ever."""
    others = asyncio.gather(*(log.append("b", fact(i)) for i in range(3)))
    with pytest.raises(BadRequest):
        await log.append("a", fact(1), HistoryCopied(turns=[{"thing": object()}]))
    await others
    assert log.head("a") == 0
    assert log.head("b") == 3


async def test_a_lone_surrogate_becomes_a_question_mark(log: StoredLog) -> None:
    """A program that cuts its output inside a character produced text that no encoder takes."""
    log.post("x", fact("occupies the writer"))
    log.post(CHANNEL, delta("a\ud800"))
    log.post(CHANNEL, delta("b"))
    await log.append(CHANNEL, Audited(action="\udfff", by="test", detail={"k\ud800": ["v\ud800"]}))
    first, second = [r.event for r in await log.read(CHANNEL)]
    assert first == delta("a?b")
    assert second == Audited(action="?", by="test", detail={"k?": ["v?"]})


async def test_a_cancelled_append_is_decided_before_it_returns(
    sqlite_log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller was let go before the commit: a lock that it held no longer protected what it had checked."""
    disk, write = threading.Event(), sqlite_log._database.write

    def slowly(batch: Batch) -> None:
        disk.wait(60)
        write(batch)

    monkeypatch.setattr(sqlite_log._database, "write", slowly)
    task = asyncio.create_task(sqlite_log.append("a", fact(1)))
    await asyncio.sleep(0)
    task.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    disk.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sqlite_log.head("a") == 1


async def test_settled_does_not_wait_for_what_comes_later(log: StoredLog) -> None:
    """Under a steady stream of others there is always something pending: the end of a turn never came."""

    async def stream() -> None:
        while True:
            log.post("busy", fact("x"))
            await asyncio.sleep(0)

    task = asyncio.create_task(stream())
    log.post("a", fact(1))
    await asyncio.wait_for(log.flush(), 60)
    assert log.head("a") == 1
    task.cancel()


async def test_a_closed_log_says_so(open_log: LogOpener) -> None:
    log = await open_log()
    log.post("a", fact(1))
    log.put_kv("a", "k", b"v")
    await log.close()
    await log.close()
    with pytest.raises(LogUnavailable, match="stopping"):
        await log.append("a", fact(2))
    with pytest.raises(LogUnavailable, match="stopping"):
        log.post("a", fact(2))
    log.put_kv("a", "late", b"ignored")
    await asyncio.sleep(0)

    log = await open_log()
    assert log.head("a") == 1
    assert await log.get_kv("a", "k") == b"v"
    assert await log.get_kv("a", "late") is None
    await log.close()


async def test_reads_are_bounded(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    await log.append("a", *(fact(i) for i in range(20)))
    assert [r.pos for r in await log.read("a", 5, 3)] == [6, 7, 8]
    assert await log.read("a", 20) == []
    assert await log.read("a", 999) == []
    assert await log.read("a", 0, 0) == []
    assert await log.read("a", 0, -1) == []
    assert await log.read_all(limit=-1) == []

    monkeypatch.setattr(limits, "READ_EVENTS", 10)
    assert len(await log.read("a", 0, 11)) == 10
    monkeypatch.setattr(limits, "READ_BYTES", 2 * len((await log.read("a", 0, 1))[0].data))
    assert len(await log.read("a")) == 3  # the one that passes the bound is the last


async def test_drained_holds_back_a_producer_that_is_faster_than_the_disk(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PENDING_BYTES", 10)
    log.post("a", delta("x" * 10))
    await log.wait_capacity()
    assert log.head("a") == 0, "ten bytes may wait"
    log.post("a", delta("x"))
    await log.wait_capacity()
    assert log.head("a") > 0, "the eleventh waits for the disk"


@pytest.mark.parametrize(("durability", "pragma"), [("normal", 1), ("full", 2)])
async def test_durability_is_the_synchronous_mode(tmp_path: Path, durability: str, pragma: int) -> None:
    log = await SqliteLog.open(tmp_path / "log.db", durability="full" if durability == "full" else "normal")
    assert log._database._db.execute("PRAGMA synchronous").fetchone()[0] == pragma
    assert log._database._db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    await log.append("a", fact(1))
    await log.close()


async def test_the_file_is_private(sqlite_log: SqliteLog, tmp_path: Path) -> None:
    await sqlite_log.append("a", fact(1))
    assert (tmp_path / "log.db").stat().st_mode & 0o777 == 0o600


async def test_a_record_is_encoded_once_per_door(log: StoredLog) -> None:
    await log.append("a", fact(1))
    [record] = await log.read("a")
    made: list[Record] = []

    def make(record: Record) -> bytes:
        made.append(record)
        return b"wire"

    assert record.form("door", make) == record.form("door", make) == b"wire"
    assert made == [record]

"""Two hosts on one log: each sees what the other commits, in one order, and nobody's number is given twice."""

import asyncio
from itertools import pairwise

import pytest

from portico.cluster.postgres import log as module
from portico.cluster.postgres.connect import _BOUNDS, connect
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.schema import LOCK
from portico.kernel.errors import HomeInUse, LogUnavailable, NotFound
from portico.kernel.events import HOST, Record
from portico.kernel.log.log import NotOwner
from tests.log.events import fact
from tests.log.postgres.conftest import Hosts
from tests.log.test_notes import ran


async def seen(log: PostgresLog, upto: int) -> None:
    """Returns when the log knows that number."""
    async with asyncio.timeout(20):
        while log.seq < upto:
            await log._change()


async def test_each_hears_of_the_others_commits(hosts: Hosts) -> None:
    a, b = await hosts("a"), await hosts("b")
    taps: list[tuple[str, int]] = []
    b.on_commit(lambda records: taps.extend((record.channel, record.pos) for record in records))
    follower = aiter(b.follow("session/x"))
    first = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    seq = await a.append("session/x", fact(1), fact(2))
    assert [record.event for record in await asyncio.wait_for(first, 20)] == [fact(1), fact(2)]
    assert taps == [("session/x", 1), ("session/x", 2)]
    assert (b.seq, b.head("session/x"), b.channels("session/")) == (seq, 2, ["session/x"])
    assert await b.read("session/x") == await a.read("session/x")
    assert (a.epoch, a.identity.why) == (b.epoch, "")


async def test_everybody_sees_everything_in_one_order(hosts: Hosts) -> None:
    """Three hosts write at once, to channels of their own and to the one that all of them write."""
    logs = [await hosts(name) for name in "abc"]
    told: list[list[Record]] = [[], [], []]
    for log, list_ in zip(logs, told, strict=True):
        log.on_commit(list_.extend)

    async def write(index: int, log: PostgresLog) -> None:
        for number in range(40):
            if number % 3:
                log.post(f"session/{index}", fact(number))
            else:
                await log.append_all((f"session/{index}", fact(number)), (HOST, fact(f"{index}:{number}")))
            await asyncio.sleep(0)
        await log.flush()

    await asyncio.gather(*(write(index, log) for index, log in enumerate(logs)))
    last = max(log.seq for log in logs)
    for log in logs:
        await seen(log, last)
    assert told[0] == told[1] == told[2] == await logs[0].read_all(limit=1000)
    for channel in (HOST, "session/0", "session/1", "session/2"):
        assert [r.pos for r in told[0] if r.channel == channel] == [*range(1, logs[0].head(channel) + 1)]
    assert all(one.seq < other.seq for one, other in pairwise(told[0]))


async def test_a_host_that_writes_without_a_pause_hears_of_the_others(hosts: Hosts) -> None:
    """Whoever asked it what others had done waited for a moment without a commit, and there was none."""
    a, b = await hosts("a"), await hosts("b")
    stopped = False

    async def write(log: PostgresLog, channel: str) -> None:
        while not stopped:
            await log.append(channel, fact("again"))

    writing = [asyncio.create_task(write(log, f"{name}-{i}")) for name, log in (("a", a), ("b", b)) for i in range(5)]
    try:
        for number in range(10):
            seq = await b.append("told", fact(number))
            async with asyncio.timeout(20):
                await a.catch_up()
            assert a.seq >= seq
            assert a.head("told") == number + 1
    finally:
        stopped = True
        await asyncio.gather(*writing)


async def test_many_who_ask_what_others_have_done_share_one_question(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not one that was asked before them."""
    a, b = await hosts("a"), await hosts("b")
    last, asked, began, go = a._rows.last, 0, asyncio.Event(), asyncio.Event()

    async def slow() -> int:
        nonlocal asked
        asked += 1
        found = await last()
        began.set()
        await go.wait()
        return found

    monkeypatch.setattr(a._rows, "last", slow)
    monkeypatch.setattr(a, "_look", lambda: asyncio.sleep(0))
    early = asyncio.create_task(a.catch_up())
    await began.wait()
    seq = await b.append("told", fact(1))
    many = [asyncio.create_task(a.catch_up()) for _ in range(20)]
    many.pop().cancel()
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(early, *many)
    assert (asked, a.seq >= seq, a.head("told")) == (2, True, 1)
    monkeypatch.setattr(a._rows, "last", last)
    seq = await b.append("told", fact(2))
    await a.catch_up()
    assert a.seq >= seq


async def test_a_lost_bell_costs_a_look(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    a, b = await hosts("a"), await hosts("b")
    monkeypatch.setattr(b, "_ring", lambda *_: None)
    await hosts.cut("b bell")
    await seen(b, await a.append("session/x", fact(1)))


async def test_what_was_committed_while_nobody_listened_is_read(hosts: Hosts) -> None:
    a, b = await hosts("a"), await hosts("b")
    for number in range(20):
        if number % 5 == 0:
            await hosts.cut("b")
        await a.append("session/x", fact(number))
    await seen(b, a.seq)
    assert await b.read("session/x") == await a.read("session/x")


async def test_a_channel_that_another_host_writes_is_refused_and_the_rest_is_written(hosts: Hosts) -> None:
    a, b = await hosts("a"), await hosts("b")
    await seen(b, await a.append("session/x", fact("of a")))
    b._heads["session/x"] = 0  # as if it had not heard

    async def append(number: int, *channels: str) -> int:
        b.put_kv(HOST, f"done/{number}", b"1", bound=True)
        b.put_kv(HOST, f"note/{number}", b"1")
        return await b.append_all(*((channel, fact(number + index)) for index, channel in enumerate(channels)))

    results = await asyncio.gather(
        append(1, "session/y"),
        append(2, "session/z", "session/x", HOST),
        append(5, "session/y"),
        return_exceptions=True,
    )
    notes = {
        key: await a.get_kv(HOST, key) for key in (f"{kind}/{each}" for kind in ("done", "note") for each in (1, 2, 5))
    }
    assert [key for key, value in notes.items() if value is None] == ["done/2"]
    assert [type(each) for each in results] == [int, NotOwner, int]
    assert [r.event for r in await b.read("session/y")] == [fact(1), fact(5)]
    assert (await b.read("session/z"), await b.read(HOST)) == ([], [])
    assert b._pending_bytes == 0
    await b.append("session/z", fact(6))


async def test_two_hosts_with_one_name(hosts: Hosts) -> None:
    await hosts("a")
    with pytest.raises(HomeInUse, match="runs on this log already"):
        await hosts("a", folder="elsewhere")
    again = await hosts("a")  # the same folder, whose lock only one can hold: an earlier run of ours
    assert await again.append("session/x", fact(1))


async def test_a_host_that_was_taken_over_writes_nothing_and_begins_anew(hosts: Hosts) -> None:
    a, b = await hosts("a"), await hosts("b")
    await a.append("session/x", fact("before"))
    [(owner,)] = await hosts.sql("UPDATE hosts SET epoch = epoch + 1 WHERE name = 'a' RETURNING id")
    assert owner == a.lease.host
    fenced: list[int] = []
    a.fenced.append(lambda: fenced.append(a.seq))
    await seen(b, a.seq)
    after = await b.append("session/x", fact("taken over"))
    with pytest.raises(LogUnavailable, match="taken over"):
        await a.append("session/y", fact("late"))
    await asyncio.wait_for(a.available(), 20)
    assert fenced == [after], "it has read what was done to its sessions before it may write again"
    await a.append("session/y", fact("anew"))
    assert [r.event for r in await b.read("session/x")] == [fact("before"), fact("taken over")]
    await seen(b, a.seq)
    assert [r.event for r in await b.read("session/y")] == [fact("anew")]


async def test_a_lease_is_renewed_and_given_back(hosts: Hosts) -> None:
    a = await hosts("a", lease=0.3)
    asked = asyncio.Semaphore(0)

    def info() -> str:
        asked.release()
        return "{}"

    a.info = info
    for _ in range(2):  # at the second renewal the first one is done
        await asyncio.wait_for(asked.acquire(), 30)
    valid = "SELECT expires > clock_timestamp(), state FROM hosts"
    assert tuple((await hosts.sql(valid))[0]) == (True, "up")
    await a.close()
    assert tuple((await hosts.sql(valid))[0]) == (False, "stopped")


async def test_a_stalled_program_holds_nobody_up_for_long(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiter fails as with a full disk, and goes on by itself."""
    monkeypatch.setitem(_BOUNDS, "lock_timeout", "100ms")
    a = await hosts("a")
    other = await connect(hosts.url, "stalled")
    await other.execute("SELECT pg_advisory_lock($1)", LOCK)
    with pytest.raises(LogUnavailable, match="locked"):
        await a.append("session/x", fact(1))
    await other.close()
    await asyncio.wait_for(a.available(), 20)
    await a.append("session/x", fact(2))
    assert [r.event for r in await a.read("session/x")] == [fact(2)]


async def test_a_deletion_is_everywhere(hosts: Hosts) -> None:
    a, b = await hosts("a"), await hosts("b")
    digest = await a.put_blob(b"output")
    await seen(b, await a.append("session/x", ran(digest)))
    assert await b.blob(digest) == b"output"
    await a.delete("session/x")
    assert await b.read("session/x") == []
    with pytest.raises(NotFound):
        await b.blob(digest)


async def test_a_blob_that_another_host_has_just_stored_stays(hosts: Hosts) -> None:
    a, b = await hosts("a"), await hosts("b")
    digest = await a.put_blob(b"the same output")
    await a.append("session/x", ran(digest))
    await b.put_blob(b"the same output")
    await a.delete("session/x")
    await b.append("session/y", ran(digest))
    assert await a.blob(digest) == b"the same output"


async def test_a_changed_row_is_unreadable(hosts: Hosts) -> None:
    a = await hosts("a")
    await a.append("session/x", fact(1), fact(2))
    a.put_kv("session/x", "k", b"v")
    await a.flush()
    await hosts.sql("UPDATE events SET data = 'x' || data WHERE pos = 1")
    await hosts.sql("UPDATE notes SET data = 'x' WHERE key = 'k'")
    assert [r.event.__struct_config__.tag for r in await a.read("session/x")] == ["unreadable", "audit"]
    assert await a.get_kv("session/x", "k") is None


async def test_the_number_of_a_stopped_host_is_used_again_after_a_day(hosts: Hosts) -> None:
    """Ids of sessions contain the number of a host, and there are a thousand."""
    a = await hosts("a")
    await a.append("session/x", fact(1))
    await a.append("other", fact(1))
    number, epoch = a.lease.host, a.lease.epoch
    await a.close()
    b = await hosts("b")
    assert b.lease.host != number  # it was stopped just now
    await hosts.sql("UPDATE hosts SET expires = expires - interval '2 days' WHERE name = 'a'")
    c = await hosts("c")
    assert c.lease.host not in (number, b.lease.host)  # the stopped host still owns a session
    await hosts.sql("DELETE FROM owners WHERE host = $1", number)
    one, two = await asyncio.gather(hosts("d"), hosts("e"))
    assert number in (one.lease.host, two.lease.host)
    assert one.lease.host != two.lease.host
    again = one if one.lease.host == number else two
    assert again.lease.epoch > epoch
    await again.append("session/y", fact(2))
    assert await hosts.sql("SELECT count(*) FROM hosts WHERE name = 'a'") == [(0,)]
    returned = await hosts("a")
    assert returned.lease.host not in {each.lease.host for each in (b, c, one, two)}

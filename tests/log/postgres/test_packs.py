"""What other hosts read of a commit: whole events of all sessions, and deltas only of those that a client follows."""

import asyncio
import random
from collections.abc import Callable

import pytest

from portico.cluster.postgres.log import PostgresLog
from portico.kernel.events import HOST, Event, PartDelta, Record
from tests.log.events import fact
from tests.log.postgres.conftest import Hosts
from tests.log.postgres.test_hosts import seen

X, Y = "session/x", "session/y"


def delta(number: int) -> PartDelta:
    return PartDelta(turn="t", part="p", text=f"{number} ")


def nothing(log: PostgresLog) -> PostgresLog:
    """No client follows anything at this host."""
    log.wanted = lambda: ()
    return log


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - of another connection
            await asyncio.sleep(0.001)


async def write(log: PostgresLog, channel: str, count: int) -> list[Event]:
    events = [fact(number) if number % 5 == 0 else delta(number) for number in range(count)]
    for event in events:
        await log.append(channel, event)
    return events


async def test_deltas_that_no_client_follows_are_not_delivered_and_can_be_read(hosts: Hosts) -> None:
    a, b = await hosts("a"), nothing(await hosts("b"))
    taps: list[Record] = []
    b.on_commit(taps.extend)
    await write(a, X, 13)
    await seen(b, a.seq)
    assert [record.pos for record in taps] == [1, 6, 11]
    assert (b.head(X), b.is_partial(X), a.is_partial(X)) == (13, True, False)
    assert await b.read(X) == await a.read(X)
    b.complete(X)
    assert (b.head(X), b.is_partial(X)) == (13, False)


async def test_the_deltas_of_terminals_runs_and_shared_channels_are_delivered(hosts: Hosts) -> None:
    a, b = await hosts("a"), nothing(await hosts("b"))
    taps: list[Record] = []
    b.on_commit(taps.extend)
    await a.append_all((HOST, fact(0)), ("terminal/1", delta(1)), (HOST, delta(2)), (X, delta(3)))
    await a.append_all((HOST, fact(4)), ("terminal/1", delta(5)))
    await seen(b, a.seq)
    places = [("host", 1), ("terminal/1", 1), ("host", 2), ("host", 3), ("terminal/1", 2)]
    assert [(record.channel, record.pos) for record in taps] == places
    assert [b.head(channel) for channel in (HOST, "terminal/1", X)] == [a.head(c) for c in (HOST, "terminal/1", X)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("packs", ["packs", "no packs"])
async def test_a_client_that_starts_to_follow_at_any_moment_misses_nothing(hosts: Hosts, seed: int, packs: str) -> None:
    """Clients follow while a host writes, by position and all channels by number: no gap and no repeat. Without packs,
    as when a host of an earlier version writes, the rows are read."""
    chance = random.Random(seed)
    a, b = await hosts("a"), nothing(await hosts("b"))
    writing = [asyncio.create_task(write(a, channel, 60)) for channel in (X, Y)]
    found: list[list[Record]] = []

    async def follow(*channels: str) -> None:
        got: list[Record] = []
        found.append(got)
        async for records in b.follow(*channels):
            got += records

    async def without_packs() -> None:
        while packs == "no packs" and not all(each.done() for each in writing):
            await hosts.sql("DELETE FROM packs")

    deleting = asyncio.create_task(without_packs())
    tasks: list[asyncio.Task[None]] = []
    wanted = [(X,), (Y,), (X, Y), (X,), (), (Y,)]
    for channels in wanted:
        tasks.append(asyncio.create_task(follow(*channels)))
        await asyncio.sleep(chance.random() * 0.03)
    await asyncio.gather(*writing, deleting)
    last = await a.read_all(limit=1000)
    async with asyncio.timeout(20):
        while any(
            got[-1:] != [r for r in last if not each or r.channel in each][-1:]
            for got, each in zip(found, wanted, strict=True)
        ):
            await b._change()
            await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    for got, channels in zip(found, wanted, strict=True):
        assert got == [record for record in last if not channels or record.channel in channels]


async def test_a_session_whose_id_is_not_known_here_is_followed_from_its_first_delta(hosts: Hosts) -> None:
    a, b = await hosts("a"), nothing(await hosts("b"))
    follower = aiter(b.follow(X))
    first = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    await a.append(X, delta(1))
    assert [record.event for record in await asyncio.wait_for(first, 20)] == [delta(1)]


async def test_the_next_commit_does_not_wait_until_others_are_read(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = await hosts("a"), await hosts("b")
    go, read = asyncio.Event(), a._packs.read

    async def slow(after: int, upto: int) -> object:
        await go.wait()
        return await read(after, upto)

    monkeypatch.setattr(a._packs, "read", slow)
    await b.append(Y, fact(0))
    first = asyncio.create_task(a.append(X, fact(1)))
    await until(lambda: len(a._committed) == 1)
    second = asyncio.create_task(a.append_all((X, fact(2)), (HOST, fact(3))))
    await until(lambda: len(a._committed) == 2)
    rows = await hosts.sql("SELECT count(*) FROM events")
    assert (rows[0][0], first.done(), second.done(), a.head(X)) == (4, False, False, 0)
    flushing = asyncio.create_task(a.flush())
    await asyncio.sleep(0.01)
    assert not flushing.done()
    go.set()
    assert (await first, await second) == (2, 4)
    await flushing
    assert [(r.seq, r.channel, r.pos) for r in await a.read_all()] == [
        (1, Y, 1), (2, X, 1), (3, X, 2), (4, HOST, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("joined", [True, False], ids=["the next append", "the delivery"])
async def test_what_is_pending_when_a_commit_is_durable_waits(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch, joined: bool
) -> None:
    """200 callers of one host split into groups, each with a small commit: eight hosts used 2.2 times the CPU."""
    a, b = await hosts("a"), await hosts("b")
    go, read = asyncio.Event(), a._packs.read

    async def slow(after: int, upto: int) -> object:
        await go.wait()
        return await read(after, upto)

    monkeypatch.setattr(a._packs, "read", slow)
    await b.append(Y, fact(0))
    appends = [asyncio.create_task(a.append(X, fact(1)))]
    await until(lambda: a._busy)
    appends.append(asyncio.create_task(a.append(X, fact(2))))
    await until(lambda: len(a._committed) == 1)
    assert (a._busy, len(a._pending)) == (False, 1)
    if joined:
        appends.append(asyncio.create_task(a.append(X, fact(3))))
        await until(lambda: len(a._committed) == 2)
    go.set()
    assert await asyncio.gather(*appends) == [2, 3, 4][: len(appends)]
    assert a.commits == 2


async def test_a_commit_that_is_not_delivered_when_the_log_closes_was_written(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = await hosts("a"), await hosts("b")
    monkeypatch.setattr(a._packs, "read", lambda *_: asyncio.sleep(3600))
    await b.append(Y, fact(0))
    append = asyncio.create_task(a.append(X, fact(1)))
    await until(lambda: len(a._committed) == 1)
    monkeypatch.setattr(a, "flush", lambda: asyncio.sleep(0))
    await a.close()
    assert await asyncio.wait_for(append, 5) == 2


async def test_packs_are_deleted_after_two_renewals(hosts: Hosts) -> None:
    a = await hosts("a")
    await write(a, X, 3)
    counts = []
    for _ in range(2):
        await a.renew_now()
        counts.append((await hosts.sql("SELECT count(*) FROM packs"))[0][0])
    assert counts == [3, 0]


async def test_packs_that_a_restored_backup_left_do_not_block_new_commits(hosts: Hosts) -> None:
    await hosts.sql("INSERT INTO packs VALUES (1, 1, 0, '{}', NULL, '{}', '{}', '', '')")
    a = await hosts("a")
    assert await a.append(X, fact(1)) == 1


async def test_one_notification_covers_many_commits(hosts: Hosts) -> None:
    """A notification per commit would wake every host for each of them."""
    a, b = await hosts("a"), await hosts("b")
    rung: list[str] = []
    b._bell._on_ring = rung.append
    await asyncio.gather(*(write(a, f"session/{number}", 20) for number in range(20)))
    await until(lambda: bool(rung) and int(rung[-1].rpartition(":")[2]) >= a.seq)
    assert len(rung) <= a.commits

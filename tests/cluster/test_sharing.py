"""How hosts share what they have: after a death, after an outage of the database, and when one drains."""

import asyncio

import pytest

from portico.cluster import cluster as module
from portico.kernel import commands as c
from tests.cluster.conftest import Node, Nodes
from tests.cluster.test_cluster import ADA, eventually, say
from tests.cluster.test_takeover import stop_watching


async def _expire(node: Node, *names: str) -> None:
    """The leases of these hosts have ended."""
    sql = "UPDATE hosts SET expires = clock_timestamp() WHERE name = ANY($1)"
    await node.log.run(lambda db: db.execute(sql, list(names)))


async def _owned(node: Node) -> dict[str, int]:
    joined = "owners o JOIN hosts h ON h.id = o.host WHERE o.channel LIKE 'session/%'"
    sql = f"SELECT h.name, count(*) FROM {joined} GROUP BY 1"
    return dict(await node.log.run(lambda db: db.fetch(sql)))


async def test_survivors_take_equal_shares(nodes: Nodes) -> None:
    """The first host that looked took everything: 1,002 sessions and 0."""
    a, b, d = await nodes("a"), await nodes("b"), await nodes("d")
    insert = "INSERT INTO owners SELECT 'session/other-' || n, $1, 'here' FROM generate_series(1, 1000) n"
    await a.log.run(lambda db: db.execute(insert, a.log.lease.host))
    await asyncio.gather(b.log.renew_now(), d.log.renew_now())
    await a.kill()
    await _expire(b, "a")
    async with asyncio.timeout(30):
        while "a" in (owned := await _owned(b)):
            await asyncio.gather(b.cluster.look(), d.cluster.look())
    assert set(owned) == {"b", "d"}
    assert abs(owned["b"] - owned["d"]) < 200, owned


async def test_what_a_survivor_does_not_take_is_taken_by_another(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARE_SECONDS", 0.2)
    a, b, d = await nodes("a"), await nodes("b"), await nodes("d")
    sessions = [await a.host.start(by="test", agent="play") for _ in range(8)]
    await stop_watching(d)
    await b.cluster.catch_up()
    await a.kill()
    await _expire(b, "a")
    await eventually(lambda: all(b.cluster.owns(each.channel) for each in sessions))


async def test_after_an_outage_others_get_the_time_to_renew(nodes: Nodes) -> None:
    """Every lease had ended, and the host that came back first took over all sessions of the others."""
    a, b = await nodes("a"), await nodes("b", lease=2.0)
    session = await a.host.start(by="test", agent="play")
    await stop_watching(a)
    await stop_watching(b)
    b.cluster._looked -= 3.0  # it could not ask for longer than a lease
    await _expire(b, "a")
    await b.cluster.look()
    assert (await b.cluster.roster.owner(session.channel))[0] == a.log.lease.host
    await a.log.renew_now()
    b.cluster._grace = 0.0
    await b.cluster.look()
    assert (await b.cluster.roster.owner(session.channel))[0] == a.log.lease.host
    await a.host.do(c.RenameSession(session=session.id, title="still here"), ADA)  # it was not fenced
    await _expire(b, "a")
    await b.cluster.look()
    assert (await b.cluster.roster.owner(session.channel))[0] == b.log.lease.host


async def test_the_queue_moves_with_a_drained_session(nodes: Nodes) -> None:
    """A drain ended only when every queued message was done."""
    a, b = await nodes("a"), await nodes("b")
    await asyncio.gather(a.log.renew_now(), b.log.renew_now())
    session = await a.host.start(by="test", agent="play")
    turn = await say(a, session.id, "wait")
    await a.agent.began.wait()
    for text in ("second", "third"):
        await a.host.do(c.SendMessage(session=session.id, text=text), ADA)
    await b.host.members.drain("a")
    await eventually(lambda: a.cluster.draining)
    a.agent.go.set()
    there = await b.host.get(session.id)
    async with asyncio.timeout(30):
        state = await there.wait_until(lambda state: len(state.turns) == 3 and state.active is None)
    assert [(each.message.text, each.outcome) for each in state.turns] == [
        ("wait", "completed"),
        ("second", "completed"),
        ("third", "completed"),
    ]
    assert state.turns[0].id == turn
    assert b.cluster.owns(session.channel)
    assert not a.cluster.owns(session.channel)
    assert b.agent.began.is_set()


async def test_the_queue_continues_where_no_other_host_is(nodes: Nodes) -> None:
    a = await nodes("a")
    session = await a.host.start(by="test", agent="play")
    await say(a, session.id, "wait")
    await a.host.do(c.SendMessage(session=session.id, text="second"), ADA)
    a.cluster.draining = True
    a.agent.go.set()
    async with asyncio.timeout(30):
        await session.wait_until(lambda state: len(state.turns) == 2 and state.active is None)

"""Every turn has one end, whoever gives it: what happens between two hosts in the moment of a takeover."""

import asyncio

import pytest

from portico.cluster.host_tables import Share
from portico.features.jobs import events as je
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.errors import LogUnavailable
from portico.kernel.log.log import NotOwner
from portico.kernel.session import Session
from tests.cluster.conftest import Node, Nodes
from tests.cluster.test_cluster import eventually, found, say, until
from tests.log.events import fact


async def ends(node: Node, session: Session) -> list[str]:
    records = await node.log.read(session.channel, limit=1000)
    return [record.event.outcome for record in records if isinstance(record.event, e.TurnEnded)]


async def take(node: Node, dead: Node) -> None:
    """In the database, as far as a host comes that is cut off right then."""
    async with asyncio.timeout(30):
        while not await node.cluster.roster.take_some(dead.log.lease.host):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def until_away(node: Node, dead: Node) -> None:
    async with asyncio.timeout(30):
        while any(peer.name == dead.cluster.name and peer.alive for peer in await node.cluster.roster.peers()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def stop_watching(node: Node) -> None:
    for task in node.cluster._tasks:
        task.cancel()
    await asyncio.gather(*node.cluster._tasks, return_exceptions=True)
    node.cluster._tasks = []


async def test_a_turn_that_began_here_is_not_what_a_dead_host_has_left(nodes: Nodes) -> None:
    """A command of another host may come before the ends are written: its turn was interrupted, and ended twice."""
    a = await nodes("a")
    session = await a.host.start(by="test", agent="play")
    turn = await say(a, session.id, "wait")
    await asyncio.gather(a.host.catalogue.close_open([session]), asyncio.to_thread(lambda: None))
    a.agent.go.set()
    assert (await session.wait(turn)).outcome == "completed"
    assert await ends(a, session) == ["completed"]


async def test_a_paused_host_writes_nothing_where_another_has_yet_to_write(nodes: Nodes) -> None:
    """It gave its turns an end before it had asked what is still its own; so did the other one."""
    a, b = await nodes("a", lease=1.0), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    there = await found(b, session.id)
    await say(a, session.id, "wait")
    await until(b, session.id, lambda state: state.active is not None)
    await stop_watching(b)
    await a.pause()
    await take(b, a)
    a.agent.go.set()
    await eventually(lambda: not a.host.running and a.log.down is None)
    assert await ends(b, session) == []
    with pytest.raises(NotOwner):
        await a.log.append(session.channel, fact(1))
    await b.cluster.look()
    await there.wait_until(lambda state: state.active is None)
    assert await ends(b, session) == ["interrupted"]
    again = await say(a, session.id, "and now")
    assert (await there.wait(again)).outcome == "completed"
    assert len(b.agent.openings) == 1


async def test_a_host_that_slept_forgets_nothing_that_another_has_done(nodes: Nodes) -> None:
    """It was refused, and took the receipt away which the next owner had written: asked once more, that one did it
    again."""
    a, b = await nodes("a", lease=1.0), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    there = await found(b, session.id)
    command, caller = c.SendMessage(session=session.id, text="once"), c.Caller.inside("me").asking("id-1")
    async with session.lock:  # it has looked for a receipt, and waits
        late = asyncio.create_task(a.host.commands.do_here(command, caller))
        await eventually(lambda: bool(session.lock._waiters))
        await a.pause()
        await until_away(b, a)
        await eventually(lambda: b.cluster.owns(session.channel))
        done = await b.host.do(command, caller)
    with pytest.raises(LogUnavailable):
        await late
    await a.log.available()
    await a.log.append("other", fact(1))
    assert await b.host.do(command, caller) == done
    await there.wait(done.turn)
    assert [turn.message.text for turn in there.state.turns] == ["once"]


async def test_a_takeover_that_is_cut_off_is_finished(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = await nodes("a", lease=1.0), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    there = await found(b, session.id)
    await say(a, session.id, "wait")
    await until(b, session.id, lambda state: state.active is not None)
    cut = asyncio.Event()
    whole = b.host.catalogue.close_open

    async def cut_off(sessions: list[Session]) -> None:
        if not cut.is_set():
            cut.set()
            raise LogUnavailable("The database went away.")
        await whole(sessions)

    monkeypatch.setattr(b.host.catalogue, "close_open", cut_off)
    await a.kill()
    async with asyncio.timeout(30):
        await cut.wait()
        await there.wait_until(lambda state: state.active is None)
    assert await ends(b, session) == ["interrupted"]


async def test_a_look_leaves_a_takeover_alone_that_is_under_way(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took back what an administrator's give-up was about to end, which then failed with `NotOwner`."""
    b, a = await nodes("b", place="cellar"), await nodes("a", place="attic", lease=1.0)  # the scheduler's lease is b's
    session = await a.host.start(by="test", agent="play")
    there = await found(b, session.id)
    await say(a, session.id, "wait")
    await until(b, session.id, lambda state: state.active is not None)
    await stop_watching(b)
    await a.kill()
    await until_away(b, a)
    whole = b.host.catalogue.close_open

    async def looked_at(sessions: list[Session]) -> None:
        monkeypatch.setattr(b.log, "catch_up", asyncio.Event().wait)
        async with asyncio.timeout(30):
            await b.cluster.look()
        monkeypatch.undo()
        await whole(sessions)

    monkeypatch.setattr(b.host.catalogue, "close_open", looked_at)
    assert await b.host.members.give_up("a") == 1
    await there.wait_until(lambda state: state.active is None)
    assert await ends(b, session) == ["interrupted"]


async def test_nothing_is_taken_before_the_fence(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that ended between the two steps of a takeover: its host still wrote what was another's."""
    a, b = await nodes("a"), await nodes("b")
    await a.log.append("session/kept", fact(1))
    await stop_watching(b)
    roster = b.cluster.roster
    whole = roster._value

    async def ends_behind(sql: str, *args: object) -> object:
        found = await whole(sql, *args)
        if "take_epoch" in sql:
            await whole("UPDATE hosts SET expires = clock_timestamp() WHERE id = $1", a.log.lease.host)
        return found

    monkeypatch.setattr(roster, "_value", ends_behind)
    assert await roster.take_some(a.log.lease.host) == []
    assert "session/kept" in await roster.take_some(a.log.lease.host)
    with pytest.raises(LogUnavailable):
        await a.log.append("session/kept", fact(2))


@pytest.mark.parametrize("kind", ["session", "job"])
async def test_what_a_host_took_without_hearing_of_it_is_its_own(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The connection was lost between the takeover and its answer; a job was nobody's until the next restart."""
    a, b = await nodes("a", lease=1.0), await nodes("b")
    await a.log.append(f"{kind}/left", fact(1))
    whole = b.cluster.roster.take_some

    async def cut_off(dead: int, *share: Share) -> list[str]:
        if not await whole(dead, *share):
            return []
        monkeypatch.setattr(b.cluster.roster, "take_some", whole)
        raise LogUnavailable("The connection is gone.")

    monkeypatch.setattr(b.cluster.roster, "take_some", cut_off)
    resumed = asyncio.Event()

    async def resume() -> None:
        assert b.cluster.owns(f"{kind}/left")
        resumed.set()

    b.cluster.taken.append(resume)
    await a.kill()
    await asyncio.wait_for(resumed.wait(), 30)


async def test_a_host_that_writes_nothing_notices_that_it_was_taken_for_dead(nodes: Nodes) -> None:
    """Its renewal was refused while it looked at the log, and it stayed away until somebody wrote."""
    a, b = await nodes("a", lease=1.0), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    there = await found(b, session.id)
    await a.host.log.flush()
    epoch = a.log.lease.epoch
    a.log._busy = True
    sql = "UPDATE hosts SET epoch = epoch + 1, state = 'away', expires = clock_timestamp() WHERE id = $1"
    await b.log.run(lambda connection: connection.execute(sql, a.log.lease.host))
    await eventually(lambda: a.log.down is not None)
    a.log._busy = False
    await eventually(lambda: a.log.down is None and a.log.lease.epoch > epoch)
    assert (await there.wait(await say(b, session.id, "still there?"))).outcome == "completed"


async def test_whoever_takes_up_jobs_is_asked_again(nodes: Nodes) -> None:
    """The bug: the database went away while jobs of a dead host were taken up, and nobody took them up after that."""
    a, b = await nodes("a"), await nodes("b", lease=1.0)
    await stop_watching(a)
    await b.host.start(by="test", agent="play")
    asked: list[str] = []

    async def resume() -> None:
        asked.append("again" if asked else "refused")
        if asked == ["refused"]:
            raise LogUnavailable("The database is away.")

    a.cluster.taken.append(resume)
    await b.kill()
    await until_away(a, b)
    with pytest.raises(LogUnavailable):
        await a.cluster.look()
    for _ in range(2):
        await a.cluster.look()
    assert asked == ["refused", "again"]


async def test_a_host_without_a_sign_of_life_is_taken_over_before_its_lease_ends(nodes: Nodes) -> None:
    """A work of a job restarted only after the lease of its host had expired. Without heartbeats and without a renewal
    its host is fenced earlier."""
    a, b = await nodes("a"), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    await a.log.append("task/1", je.TaskStarted(task="1", name="n", model="m", by="test"))
    await a.pause()
    await b.cluster.suspect("task/1")  # it has renewed its lease just before
    await b.cluster.look()
    assert not b.cluster.owns("task/1")
    await b.log.run(lambda db: db.execute("UPDATE hosts SET seen = seen - interval '20 seconds' WHERE name = 'a'"))
    b.cluster._grace = asyncio.get_running_loop().time() + 60  # after an outage of the database nobody is suspected
    await b.cluster.suspect("task/1")
    assert all(peer.alive for peer in await b.cluster.roster.peers())
    b.cluster._grace = 0.0
    await b.cluster.suspect("task/1")
    await eventually(lambda: b.cluster.owns("task/1") and b.cluster.owns(session.channel))
    with pytest.raises(LogUnavailable):  # fenced
        await a.log.append("task/1", je.TaskEnded(task="1", outcome="succeeded"))


async def test_a_suspected_host_that_renews_its_lease_continues(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b", place="there")
    session = await a.host.start(by="test", agent="play")
    await b.log.run(lambda db: db.execute("UPDATE hosts SET seen = seen - interval '20 seconds' WHERE name = 'a'"))
    await b.cluster.suspect(session.channel)  # of another place: not its business
    assert [peer.alive for peer in await b.cluster.roster.peers()] == [True, True]
    assert not await b.cluster.roster.expire_silent("session/none", 1.0)
    await a.log.renew_now()
    await session.rename("x", by="test")

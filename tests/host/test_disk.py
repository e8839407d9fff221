"""The disk says no while turns run: they end as failed, nothing acknowledged is lost, the host goes on."""

import asyncio

import pytest

from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.log import group_commit
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.session import Session
from portico.kernel.state import TextPart
from portico.kernel.turn import Turn
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import host_of
from tests.grants import add_grant
from tests.host.plays import allowed, hang


@pytest.fixture(autouse=True)
def _quick_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)


def writable(host: Host, yes: bool) -> None:
    assert isinstance(host.log, SqliteLog)
    host.log._database._db.execute(f"PRAGMA query_only = {'OFF' if yes else 'ON'}")


async def running(open_host: HostOpener) -> tuple[Host, Session, str]:
    host = await open_host(PlayAgent(hang), PlayAgent(allowed, "allowed"))
    session = await host.start(by="test", cwd="/")
    turn = await session.send(Message("go"), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    await host.log.flush()
    return host, session, turn


async def test_running_turns_fail_and_the_host_goes_on(open_host: HostOpener) -> None:
    host, session, turn = await running(open_host)
    other = await host.start(by="test", cwd="/", agent="allowed")
    waiting = await other.send(Message("go"), by="test")
    await other.wait_until(lambda state: state.status == "waiting")
    await session.send(Message("queued"), by="test")

    writable(host, False)
    for attempt in (
        session.rename("x", by="ada"),
        host.start(by="ada", cwd="/"),
        add_grant(host, agent="play", tool="*", allow=True, by="ada", project="/"),
        host.audit("x", "ada"),
    ):
        with pytest.raises(LogUnavailable):
            await attempt
    assert {summary.id for summary in host.list()} == {other.id, session.id}

    writable(host, True)
    ended = await asyncio.wait_for(session.wait(turn), 60)
    assert (ended.outcome, ended.error and ended.error.code) == ("failed", "log_unavailable")
    part = ended.parts[0]
    assert isinstance(part, TextPart)
    assert (part.text, part.done) == ("working", True)
    assert (await asyncio.wait_for(other.wait(waiting), 60)).outcome == "failed"
    await session.wait_until(lambda state: state.active is not None and state.active.message.text == "queued")
    assert host.grants == {}
    await session.rename("now it works", by="ada")

    host = await open_host(PlayAgent(hang))
    assert host.grants == {}, "a grant that was refused does not come back with a restart"
    session = await host.get(session.id)
    assert (session.state.title, session.state.turns[0].outcome) == ("now it works", "failed")
    records = await host.log.read(session.channel)
    assert [r.pos for r in records] == list(range(1, len(records) + 1))


async def test_a_stop_with_a_dead_disk_returns_and_the_next_start_ends_the_turn(open_host: HostOpener) -> None:
    """The end of the turn waited for the disk, and the stop waited for the end."""
    host, session, turn = await running(open_host)
    writable(host, False)
    with pytest.raises(LogUnavailable):
        await session.rename("x", by="ada")
    await asyncio.wait_for(open_host.close(), 60)
    host = await open_host(PlayAgent(hang))
    last = (await host.get(session.id)).state.turn(turn)
    assert last is not None
    assert last.outcome == "interrupted"


async def test_a_turn_whose_words_are_lost_has_not_completed(open_host: HostOpener) -> None:
    """It had said all it had to say, the commit of that failed, and it was `completed` with nothing in it."""

    async def full(message: Message, turn: Turn) -> None:
        writable(host_of(turn.session), False)
        turn.text("lost")

    host = await open_host(PlayAgent(full))
    session = await host.start(by="test", cwd="/")
    host.log.on_failure(lambda error: writable(host, True))
    ended = await session.wait(await session.send(Message("go"), by="test"))
    assert (ended.outcome, ended.error and ended.error.code, ended.parts) == ("failed", "log_unavailable", [])


async def test_words_that_are_lost_while_the_end_waits_for_the_lock(open_host: HostOpener) -> None:
    """The end goes with the last words, and those are gone: the open part gets its end, and the turn has failed."""
    talking, ended, lost = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def talk(message: Message, turn: Turn) -> None:
        turn.text("kept ")
        await turn.settled()
        talking.set()
        await ended.wait()

    host = await open_host(PlayAgent(talk))
    host.log.on_failure(lambda error: lost.set())
    session = await host.start(by="test", cwd="/")
    turn = await session.send(Message("go"), by="test")
    await talking.wait()
    async with session.lock:
        writable(host, False)
        ended.set()
        await lost.wait()
        writable(host, True)
        await host.log.available()
    found = await session.wait(turn)
    (part,) = found.parts
    assert isinstance(part, TextPart)
    assert (found.outcome, part.text, part.done) == ("failed", "kept ", True)


async def test_a_refused_deletion_does_not_happen_later(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(hang))
    session = await host.start(by="test", cwd="/")
    await session.close(by="ada")
    writable(host, False)
    with pytest.raises(LogUnavailable):
        await host.delete(session.id, by="ada")
    writable(host, True)
    await host.log.available()
    host = await open_host(PlayAgent(hang))
    assert [summary.id for summary in host.list()] == [session.id]

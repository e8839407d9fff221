"""The record of connections: one event per host and turn, totals per session, and what a crash leaves of them."""

from pathlib import Path

import pytest

from portico.agents.agent import Message, Turn
from portico.features.sandboxes import record as records
from portico.features.sandboxes.events import NetworkReached
from portico.features.sandboxes.record import NetworkRecord
from portico.features.sandboxes.shapes import HostUse
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.sandbox.network import Destination
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import feature

PYPI, EVIL = Destination("pypi.org", 443), Destination("evil.test", 443)
START = 1_700_000_000_000


class Desk:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.record: NetworkRecord
        self.hosts = 1

    async def play(self, message: Message, turn: Turn) -> None:
        session = turn.session
        self.record.opened(session, PYPI, "policy")
        self.clock.advance(1)
        self.record.moved(session, PYPI, 100, 2000)
        self.record.opened(session, PYPI, "person:ada")
        self.record.refused(session, EVIL, "person:ada")
        for number in range(self.hosts - 1):
            self.record.refused(session, Destination(f"h{number}.test", 443), "policy")
        if message.text == "live":
            self.live = await self.record.of(session.channel)

    async def open(self, opener: HostOpener) -> Host:
        host = await opener(PlayAgent(self.play), clock=self.clock)
        self.record = feature(host, NetworkRecord)
        return host


async def turn(session: Session, text: str = "go") -> None:
    await session.wait(await session.send(Message(text), by="test"))


async def written(session: Session, count: int) -> list[NetworkReached]:
    """The events of the session, once there are so many."""

    def found() -> list[NetworkReached]:
        return [record.event for record in kept if isinstance(record.event, NetworkReached)]

    async for page in session.host.log.follow(session.channel):
        kept = [*(await session.host.log.read(session.channel))]
        if page and len(found()) >= count:
            return found()
    return []


async def test_a_turn_has_one_event_per_host(tmp_path: Path, open_host: HostOpener) -> None:
    desk = Desk()
    session = await (await desk.open(open_host)).start(by="test", cwd=str(tmp_path))
    await turn(session, "live")
    assert [use.host for use in desk.live.hosts] == ["pypi.org", "evil.test"], "the running turn is listed"
    pypi, evil = await written(session, 2)
    by = ["policy", "person:ada"]
    first = session.state.turns[0].id
    assert pypi == NetworkReached(first, "pypi.org", 443, 2, 0, 100, 2000, START, START + 1000, by, [])
    assert evil == NetworkReached(first, "evil.test", 443, 0, 1, 0, 0, START + 1000, START + 1000, [], ["person:ada"])


async def test_totals_add_the_turns_and_survive_a_restart(tmp_path: Path, open_host: HostOpener) -> None:
    desk = Desk()
    session = await (await desk.open(open_host)).start(by="test", cwd=str(tmp_path))
    await turn(session)
    await turn(session)
    await written(session, 4)
    expected = HostUse("pypi.org", 443, 4, 0, 200, 4000, START, START + 2000, ["policy", "person:ada"])
    assert (await desk.record.of(session.channel)).hosts[0] == expected
    await desk.open(open_host)
    found = await desk.record.of(session.channel)
    assert [use.host for use in found.hosts] == ["pypi.org", "evil.test"]
    assert found.hosts[0] == expected
    assert (await desk.record.of(session.channel, session.channel)).hosts[0].count == 8, "of several sessions: the sum"


async def test_connections_between_turns_are_written_with_the_next_sweep(tmp_path: Path, open_host: HostOpener) -> None:
    desk = Desk()
    session = await (await desk.open(open_host)).start(by="test", cwd=str(tmp_path))
    desk.record.refused(session, EVIL, "policy")
    await desk.record.sweep()
    assert [event.turn for event in await written(session, 1)] == [""]


async def test_many_hosts_are_counted_together(
    tmp_path: Path, open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "HOSTS", 5)
    desk = Desk()
    desk.hosts = 10_000
    session = await (await desk.open(open_host)).start(by="test", cwd=str(tmp_path))
    await turn(session)
    events = await written(session, 6)
    assert [event.host for event in events] == ["pypi.org", "evil.test", "h0.test", "h1.test", "h2.test", "*"]
    assert events[-1].refused == 9_996


async def test_a_deleted_session_leaves_nothing(tmp_path: Path, open_host: HostOpener) -> None:
    desk = Desk()
    host = await desk.open(open_host)
    session = await host.start(by="test", cwd=str(tmp_path))
    desk.record.refused(session, EVIL, "policy")
    await desk.record.forget(session, "test")
    assert (await desk.record.of(session.channel)).hosts == []

"""A stored session that is not in use is only its summary in memory. Which code reads it makes no difference."""

import asyncio
import gc
import tracemalloc
import weakref
from pathlib import Path

import msgspec
import pytest

from portico.kernel import catalogue as module
from portico.kernel import session as sessions
from portico.kernel.clock import Clock
from portico.kernel.events import Message, SessionStarted
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.session import SUMMARY, Session
from portico.kernel.state import SessionState, Summary, summarise
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener

STORED = 500
BYTES = 1_400
"""Per stored session, with its entries in all indexes; it was 3,900."""


def live(host: Host) -> set[str]:
    return {each.id for each in host.catalogue.live()}


async def ended(session: Session, host: Host) -> None:
    """Return when nothing of its turns runs any more, and its conversation is released."""
    while tasks := [*host.tasks("turn "), *host.tasks("agent "), *host.tasks("capture ")]:
        await asyncio.wait(tasks)
    await session.settle()
    await session.runner.release()


@pytest.fixture(autouse=True)
def _long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that was used a moment ago counts as idle."""
    monkeypatch.setattr(sessions, "IDLE_SECONDS", -1.0)


async def test_after_a_start_sessions_are_summaries(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    top = await host.start(by="test", cwd=str(tmp_path), uri="ahp:/top")
    low = await host.start(by="test", cwd=str(tmp_path), parent=top.id)
    before = host.list()
    host = await open_host()
    assert live(host) == set()
    assert (host.list(), len(host.catalogue), host.has("ahp:/top"), host.has("none")) == (before, 2, True, False)
    assert [each.id for each in host.catalogue.descendants(top.id)] == [low.id]
    assert host.ownership.of_channel(low.channel).owner == ""
    assert live(host) == set()
    found = await host.get("ahp:/top")
    assert (found.summary, live(host)) == (before[1], {top.id})
    assert host.catalogue.root(found) is found


async def test_a_released_session_is_the_same_object_while_something_refers_to_it(host: Host, tmp_path: Path) -> None:
    session = await host.start(by="test", cwd=str(tmp_path))
    await session.wait(await session.send(Message("[[say:a]]"), by="test"))
    await ended(session, host)
    summary = session.summary
    host.catalogue.release()
    assert (live(host), host.catalogue.summary(session.id), session.loaded) == (set(), summary, False)
    await session.rename("Named", by="test")  # one that a caller has held meanwhile
    assert host.find(session.id) is session
    assert (host.list()[0].title, live(host)) == ("Named", {session.id})


async def test_a_released_session_leaves_the_memory(host: Host, tmp_path: Path) -> None:
    session = await host.start(by="test", cwd=str(tmp_path), title="Kept")
    ident, left = session.id, weakref.ref(session)
    await host.log.flush()
    host.catalogue.release()
    del session
    gc.collect()
    assert left() is None
    again = await host.get(ident)
    assert (again.state.title, again.summary.title) == ("Kept", "Kept")


async def test_what_is_in_use_stays(host: Host, tmp_path: Path) -> None:
    """One table of everything that only the memory has."""
    hanging, opened, locked, waited, resting = [await host.start(by="test", cwd=str(tmp_path)) for _ in range(5)]
    turn = await hanging.send(Message("[[hang]]"), by="test")
    await opened.wait(await opened.send(Message("[[say:a]]"), by="test"))
    await opened.settle()
    await host.start(by="test", cwd=str(tmp_path))
    waiting = asyncio.create_task(waited.wait_until(lambda state: state.title == "x"))
    await asyncio.sleep(0)
    resting.resting = 1
    async with locked.lock:
        host.catalogue.release()
        assert live(host) == {hanging.id, opened.id, locked.id, waited.id, resting.id}
    resting.resting = 0
    await waited.rename("x", by="test")
    await waiting
    await hanging.cancel(by="test", turn=turn)
    for session in (hanging, opened):
        await ended(session, host)
    host.catalogue.release()
    assert live(host) == set()


async def test_a_deleted_session_does_not_come_back(host: Host, tmp_path: Path) -> None:
    session = await host.start(by="test", cwd=str(tmp_path), uri="ahp:/gone")
    host.catalogue.release()
    await host.delete(session.id, by="test")
    assert (host.list(), host.find(session.id), host.has("ahp:/gone"), len(host.catalogue)) == ([], None, False, 0)
    host.catalogue.release()
    assert host.catalogue.summary(session.id) is None


async def test_equal_values_are_shared_and_never_changed(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    for number in range(2):
        await host.start(by="test", cwd=str(tmp_path), title=str(number))
    host = await open_host()
    one, other = host.summaries()
    assert (one.features is other.features, one.folders is other.folders, one.cwd is other.cwd) == (True, True, True)
    session = await host.get(one.id)
    await session.wait(await session.send(Message("[[say:a]]"), by="test"))
    await session.keep("mine", {"a": 1}, by="test")
    await ended(session, host)
    host.catalogue.release()
    assert Summary("", "", "", "", "", "idle", 0, 0, 0) == module._PLAIN
    assert summarise((await host.get(other.id)).state) == other


async def test_the_memory_of_a_stored_session(tmp_path: Path, clock: FakeClock) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    for number in range(1, STORED + 1):
        ident = f"session-{number}"
        started = SessionStarted(ident, agent="scripted", model="gpt-5-mini", cwd=str(tmp_path), by="t", title=ident)
        log.put_kv(f"session/{ident}", SUMMARY, msgspec.json.encode(_summary(started)))
        await log.append(f"session/{ident}", started)
    await log.close()
    log = await SqliteLog.open(tmp_path / "log.db")
    host = Host(log, [], Clock())
    gc.collect()
    tracemalloc.start()
    await host.catalogue.read()
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(host.catalogue), live(host)) == (STORED, set())
    assert used / STORED < BYTES
    await log.close()


def _summary(started: SessionStarted) -> Summary:
    state = SessionState(started.session, agent=started.agent, model=started.model, cwd=started.cwd, pos=1)
    state.title = started.title
    return summarise(state)

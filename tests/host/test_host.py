"""The catalogue: start, list, get, delete; and the order of start and stop."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from portico import limits
from portico.features.terminals.terminals import Terminals
from portico.kernel import events as e
from portico.kernel import host as module
from portico.kernel import limits as kernel_limits
from portico.kernel.clock import Clock
from portico.kernel.component import Component
from portico.kernel.errors import (
    AgentUnavailable,
    AlreadyExists,
    BadRequest,
    LogUnavailable,
    NotFound,
    RateLimited,
    SessionIsClosed,
    TooLarge,
)
from portico.kernel.events import HOST, Event, Message
from portico.kernel.host import Host
from portico.kernel.state import Summary
from portico.kernel.turn import Turn
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import feature
from tests.free import FREE
from tests.host.plays import hang, idle


async def events(host: Host, channel: str = HOST) -> list[Event]:
    return [record.event for record in await host.log.read(channel)]


async def test_a_session_starts_with_the_first_agent_and_its_first_model(host: Host, tmp_path: Path) -> None:
    session = await host.start(by="token:ada", cwd=str(tmp_path))
    assert session.id == "session-1"
    assert (session.state.agent, session.state.model) == ("scripted", "gpt-5-mini")
    assert (session.state.cwd, session.state.by, session.state.status) == (str(tmp_path), "token:ada", "idle")
    assert await events(host, session.channel) == [
        e.SessionStarted(session="session-1", agent="scripted", model="gpt-5-mini", cwd=str(tmp_path), by="token:ada")
    ]
    assert (await events(host))[-1] == e.SessionListed(session="session-1", agent="scripted", cwd=str(tmp_path))
    assert host.has("session-1")


async def test_everything_can_be_chosen(host: Host, tmp_path: Path) -> None:
    session = await host.start(
        by="client:1",
        agent="demo",
        model="demo",
        cwd=f"{tmp_path}/./",
        title="Mine",
        uri="ahp:/x",
        config={"approvals": "allow"},
    )
    assert (session.state.title, session.state.title_by_person, session.state.cwd) == ("Mine", True, str(tmp_path))
    assert await host.get("ahp:/x") is session
    with pytest.raises(AlreadyExists):
        await host.start(by="client:2", uri="ahp:/x")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"agent": "nobody"}, NotFound),
        ({"model": "nothing"}, NotFound),
        ({"parent": "session-99"}, NotFound),
        ({"cwd": "relative"}, BadRequest),
        ({"config": {"approvals": "maybe"}}, BadRequest),
        ({"config": {"approvals": ["allow"]}}, BadRequest),
        ({"cwd": "/no/such/folder"}, BadRequest),
        ({"cwd": "/etc/hostname"}, BadRequest),
        ({"cwd": "/" + "x" * 5000}, BadRequest),
        ({"cwd": "/\0"}, BadRequest),
        ({"cwd": ""}, BadRequest),
    ],
)
async def test_a_wrong_start_leaves_nothing_behind(host: Host, wrong: dict[str, str], error: type[Exception]) -> None:
    head = host.log.seq
    with pytest.raises(error):
        await host.start(by="test", **wrong)  # type: ignore[arg-type]
    assert host.list() == []
    assert host.log.seq == head


async def test_settings_that_no_event_can_hold_leave_nothing_behind(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadRequest):
        await host.start(by="test", config={"thing": object()})
    monkeypatch.setattr(kernel_limits, "EVENT_BYTES", 1000)
    with pytest.raises(TooLarge):
        await host.start(by="test", config={"thing": "x" * 1000})
    assert host.list() == []


async def test_a_missing_session(host: Host) -> None:
    with pytest.raises(NotFound, match="There is no session 'session-7'"):
        await host.get("session-7")
    with pytest.raises(NotFound):
        await host.delete("session-7", by="test")
    with pytest.raises(NotFound):
        await host.fork("session-7", by="test")
    for wrong in ("", "session-7.a1", "nonsense", "."):
        with pytest.raises(NotFound):
            host.session_of(wrong)


async def test_the_list_is_newest_first_and_can_be_narrowed(host: Host) -> None:
    one, two, three = [await host.start(by="test", cwd="/") for _ in range(3)]
    await two.archive(True, by="test")
    fork = await host.fork(one.id, by="test")
    await three.rename("newest", by="test")
    times = [(summary.modified, summary.id) for summary in host.list()]
    assert len(times) == 4
    assert [time for time, _ in times] == sorted((time for time, _ in times), reverse=True)
    assert [s.id for s in host.list(archived=True)] == [two.id]
    assert [s.id for s in host.list(parent=one.id)] == [fork.id]
    assert fork.id not in [s.id for s in host.list(children=False)]


async def test_watchers_hear_of_every_change(host: Host) -> None:
    heard: list[tuple[str, Summary | None]] = []
    end = host.watch(lambda ident, summary: heard.append((ident, summary)))
    session = await host.start(by="test", cwd="/")
    await session.rename("New", by="test")
    await host.delete(session.id, by="test")
    end()
    await host.start(by="test", cwd="/")
    assert [summary.title if summary else None for _, summary in heard] == ["", "New", "New", None]


async def test_ids_are_never_used_again(open_host: HostOpener) -> None:
    host = await open_host()
    one, two = await host.start(by="test", cwd="/", uri="mine"), await host.start(by="test", cwd="/")
    await host.delete(two.id, by="test")
    await host.delete(one.id, by="test")
    assert host.list() == []
    assert not host.has("mine")
    for _ in range(2):
        host = await open_host()
        assert host.list() == []
    assert (await host.start(by="test", cwd="/")).id == "session-3"


async def test_deleting_takes_the_children_and_the_running_turn_along(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(hang))
    parent = await host.start(by="test", cwd="/")
    child = await host.fork(parent.id, by="test")
    await child.send(Message("go"), by="test")
    await host.delete(parent.id, by="ada")
    assert host.list() == []
    assert host.running == 0
    removed = [event.session for event in await events(host) if isinstance(event, e.SessionRemoved)]
    assert removed == [child.id, parent.id]
    assert await host.log.read(parent.channel) == []
    with pytest.raises(SessionIsClosed):
        await parent.send(Message("too late"), by="test")


async def test_two_deletions_at_once_are_one(host: Host) -> None:
    """Both wrote that they had removed it."""
    session = await host.start(by="test", cwd="/")
    results = await asyncio.gather(*(host.delete(session.id, by="test") for _ in range(3)), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["NotFound", "NotFound", "str"]
    assert len([event for event in await events(host) if isinstance(event, e.SessionRemoved)]) == 1


async def test_sessions_are_bounded(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_limits, "SESSIONS", 2)
    await host.start(by="test", cwd="/")
    await host.start(by="test", cwd="/")
    with pytest.raises(RateLimited):
        await host.start(by="test", cwd="/")


async def test_running_turns_are_bounded(open_host: HostOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_limits, "LIVE_TURNS", 1)
    host = await open_host(PlayAgent(hang))
    one, two = await host.start(by="test", cwd="/"), await host.start(by="test", cwd="/")
    await one.send(Message("go"), by="test")
    with pytest.raises(RateLimited) as caught:
        await two.send(Message("go"), by="test")
    assert caught.value.retry_after
    await one.cancel(by="test")
    await two.send(Message("go"), by="test")


async def test_a_stop_interrupts_and_the_next_start_has_everything(open_host: HostOpener) -> None:
    agent = PlayAgent(hang)
    host = await open_host(agent)
    session = await host.start(by="test", cwd="/")
    turn = await session.send(Message("go"), by="test")
    queued = await session.send(Message("later"), by="test")
    await open_host.close()
    assert agent.closed == 1

    host = await open_host(PlayAgent(idle))
    session = await host.get("session-1")
    [last] = session.state.turns
    assert (last.id, last.outcome, last.error and last.error.code) == (turn, "interrupted", "interrupted")
    assert ([p.id for p in session.state.queue], session.state.queue_held) == ([queued], True)
    kinds = [type(event).__name__ for event in await events(host)]
    assert kinds == ["HostStarted", "SessionListed", "HostStopped", "HostStarted"]


async def test_a_stop_ends_what_begins_when_other_tasks_end(open_host: HostOpener) -> None:
    """A job whose log was away began to wait for its return while the host stopped, and nobody ended that."""
    host = await open_host(PlayAgent(idle))
    begun: list[asyncio.Task[None]] = []

    async def wait(again: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            if again:
                begun.append(host.own(wait(again - 1), "again"))

    host.own(wait(2), "first")
    await asyncio.sleep(0)
    await open_host.close()
    assert [task.done() for task in begun] == [True, True]


async def test_a_stopping_host_starts_nothing(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="test", cwd="/")
    host.stopping = True
    with pytest.raises(LogUnavailable, match="stopping"):
        await session.send(Message("go"), by="test")
    await session.queue.add(Message("go"), by="test")
    await session.queue.release(by="test")
    assert session.state.turns == []


async def test_an_agent_that_is_gone_after_a_restart(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(idle, "old"))
    await host.start(by="test", cwd="/")
    host = await open_host(PlayAgent(idle, "new"))
    session = await host.get("session-1")
    turn = await session.wait(await session.send(Message("hello?"), by="test"))
    assert turn.outcome == "failed"
    assert turn.error == e.ErrorInfo("not_found", "There is no agent 'old'. There are: 'new'.")


async def test_a_host_without_agents(open_host: HostOpener) -> None:
    host = Host((await open_host()).log, [], Clock())
    with pytest.raises(AgentUnavailable, match="No agent is ready"):
        await host.start(by="test", cwd="/")
    with pytest.raises(NotFound, match="There are: none"):
        await host.start(by="test", cwd="/", agent="scripted")


async def test_a_session_and_its_line_in_the_list_are_written_together(host: Host) -> None:
    """A kill between the two left a session that the host's own channel had never heard of."""
    batches: list[list[type[e.Event]]] = []
    host.log.on_commit(lambda records: batches.append([type(record.event) for record in records]))
    await host.start(by="test", cwd="/")
    assert [e.SessionListed in batch for batch in batches if e.SessionStarted in batch] == [True]


async def test_audit_records_are_on_the_hosts_channel(host: Host) -> None:
    await host.audit("token.created", "cli", name="laptop")
    assert (await events(host))[-1] == e.Audited(action="token.created", by="cli", detail={"name": "laptop"})


async def test_idle_sessions_leave_memory_and_come_back(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico.kernel.session.IDLE_SECONDS", -1.0)
    session = await host.start(by="test", cwd="/")
    await session.wait(await session.send(Message("[[say:hi]]"), by="test"))
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name().startswith("turn ")))
    before = session.state
    await host.sweep()
    assert not session.loaded
    assert (await host.get(session.id)).state == before


async def test_a_sweep_leaves_a_session_that_somebody_waits_for(open_host: HostOpener) -> None:
    host = await open_host()
    session = await host.start(by="test", cwd="/")
    waiting = asyncio.create_task(session.wait_until(lambda state: state.title == "done"))
    await asyncio.sleep(0)
    session.used_at = -1e9
    await host.sweep()
    await session.rename("done", by="test")
    assert (await asyncio.wait_for(waiting, 60)).title == "done"


async def test_whoever_gave_up_waiting_does_not_keep_a_session_in_memory(open_host: HostOpener) -> None:
    """A cancelled `wait_until` left its waiter behind, and its session was never dropped again."""
    host = await open_host()
    session = await host.start(by="test", cwd="/")
    waiting = asyncio.create_task(session.wait_until(lambda state: state.title == "never"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    session.used_at = -1e9
    await host.sweep()
    assert not session.loaded


async def test_a_sweep_compacts_finished_turns_only(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(hang))
    done, running = await host.start(by="test", cwd="/"), await host.start(by="test", cwd="/")
    for session in (done, running):
        await session.send(Message("go"), by="test")
        await session.wait_until(lambda state: bool(state.active and state.active.parts))
    await host.log.flush()
    await done.cancel(by="test")
    host.retention_hours = -1.0
    assert await host.sweep() == 1
    deltas = [type(record.event) for record in await host.log.read(running.channel)]
    assert e.PartDelta in deltas


async def test_deltas_are_kept_for_a_day(open_host: HostOpener, clock: FakeClock) -> None:
    host = await open_host(clock=clock)
    session = await host.start(by="test", cwd="/")
    await session.wait(await session.send(Message("[[reasoning:0]] [[deltas:1]]"), by="test"))
    clock.advance(kernel_limits.RETENTION_HOURS * 3600)
    assert await host.sweep() == 0
    clock.advance(1)
    assert await host.sweep() == 1


async def test_an_agent_that_will_not_stop_does_not_hold_up_the_host(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_limits, "STOP_SECONDS", 0.01)

    async def stubborn(message: Message, turn: Turn) -> None:
        turn.text("no")
        for _ in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.get_running_loop().create_future()

    host = await open_host(PlayAgent(stubborn))
    session = await host.start(by="test", cwd="/")
    await session.send(Message("go"), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    await asyncio.wait_for(open_host.close(), 60)
    session = await (await open_host(PlayAgent(idle))).get(session.id)
    assert session.state.turns[0].outcome == "interrupted"


async def test_terminals_are_bounded(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TERMINALS", 1)
    await feature(host, Terminals).start(policy=FREE, claim={}, cwd="/", by="test")
    with pytest.raises(RateLimited):
        await feature(host, Terminals).start(policy=FREE, claim={}, cwd="/", by="test")


async def test_a_part_that_fails_keeps_no_other_from_its_sweep(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    """Every sweep ended there: nothing behind it was swept, no session was unloaded and nothing compacted."""
    swept = list[str]()

    class Broken(Component):
        async def sweep(self) -> None:
            swept.append("broken")
            raise RuntimeError

    class Whole(Component):
        async def sweep(self) -> None:
            swept.append("whole")

    host.parts += [Broken(), Whole()]
    session = await host.start(by="test")
    session.used_at = -1e9
    await host.sweep()
    assert (swept, session.loaded) == (["broken", "whole"], False)
    assert "the sweep of Broken failed" in caplog.text


async def test_a_sweep_that_fails_is_not_the_last_one(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Any error but the log's own ended the sweeping for good: memory and the log then only grew."""
    swept = asyncio.Event()

    async def sweep() -> int:
        if "a bug" not in caplog.text:
            raise RuntimeError("a bug")
        swept.set()
        return 0

    monkeypatch.setattr(module, "_SWEEP_SECONDS", 0.01)
    monkeypatch.setattr(host, "sweep", sweep)
    host.own(host._sweep(), "sweep again")
    await asyncio.wait_for(swept.wait(), 60)

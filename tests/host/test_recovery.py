"""After a crash everything has its one end. A crash is an abandoned log here; tests/crash kills real processes."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.events import Event, Message
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.state import CallPart, QuestionPart, SessionState, TextPart
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import idle

STARTED = e.SessionStarted(session="session-1", agent="play", model="small", cwd="/", by="ada")
CHANNEL = "session/session-1"


async def crash(path: Path, *events: Event, channel: str = CHANNEL) -> None:
    """A log that ends with these events, as a killed host leaves it."""
    log = await SqliteLog.open(path)
    await log.append(channel, *events)
    await log.close()


async def recovered(open_host: HostOpener, *events: Event) -> tuple[Host, list[Event], SessionState]:
    await crash(open_host.path, STARTED, *events)
    host = await open_host(PlayAgent(idle))
    session = await host.get("session-1")
    return host, [r.event for r in await host.log.read(CHANNEL, after=1 + len(events))], session.state


TURN = e.TurnStarted(turn="t1", message=Message("go"), by="ada")
END = e.TurnEnded(
    turn="t1",
    outcome="interrupted",
    error=e.ErrorInfo("interrupted", "The host ended in the middle of this turn."),
    by="host",
)
ASKED = e.ApprovalAsked(
    turn="t1",
    approval="session-1.a4",
    call="c3",
    tool="shell",
    title="",
    kind="shell",
    input="{}",
    expires=0,
    options=[],
)


async def test_a_text_in_the_middle(open_host: HostOpener) -> None:
    _, closed, state = await recovered(
        open_host,
        TURN,
        e.PartStarted(turn="t1", part="p2", kind="text"),
        e.PartDelta(turn="t1", part="p2", text="Hel"),
        e.PartDelta(turn="t1", part="p2", text="lo"),
    )
    assert closed == [e.PartEnded(turn="t1", part="p2", text="Hello"), END]
    assert state.turns[0].parts == [TextPart("p2", "text", "Hello", done=True)]
    assert state.turns[0].resumable


async def test_a_call_with_an_open_approval_and_a_question(open_host: HostOpener) -> None:
    _, closed, state = await recovered(
        open_host,
        TURN,
        e.ToolStarted(turn="t1", call="c3", tool="shell"),
        e.ToolReady(turn="t1", call="c3", input="{}"),
        ASKED,
        e.QuestionAsked(turn="t1", question="session-1.q5", text="Why?"),
    )
    call, question = state.turns[0].parts
    assert isinstance(call, CallPart)
    assert isinstance(question, QuestionPart)
    assert (call.done, call.outcome, call.approvals[0].allowed, call.approvals[0].by) == (
        True,
        "interrupted",
        False,
        "host",
    )
    assert question.response == "cancel"
    assert [type(event).__name__ for event in closed] == [
        "ApprovalAnswered",
        "ToolEnded",
        "QuestionAnswered",
        "TurnEnded",
    ]


async def test_an_ended_call_whose_approval_nobody_answered(open_host: HostOpener) -> None:
    _, closed, _ = await recovered(
        open_host,
        TURN,
        e.ToolStarted(turn="t1", call="c3", tool="shell"),
        ASKED,
        e.ToolEnded(turn="t1", call="c3", ok=False),
    )
    assert [type(event).__name__ for event in closed] == ["ApprovalAnswered", "TurnEnded"]


async def test_a_summary_that_is_older_than_the_events(open_host: HostOpener) -> None:
    """A session's summary goes into the commit behind its events. Killed in between, it says that nothing runs."""
    await (await open_host(PlayAgent(idle))).start(by="ada", agent="play", cwd="/")
    await open_host.close()
    await crash(open_host.path, TURN)
    host = await open_host(PlayAgent(idle))
    assert host.list()[0].status == "idle"
    assert (await host.log.read(CHANNEL))[-1].event == END


async def test_ends_are_written_once(open_host: HostOpener) -> None:
    host, closed, state = await recovered(open_host, TURN)
    assert closed == [END]
    head = host.log.head(CHANNEL)
    host = await open_host(PlayAgent(idle))
    assert host.log.head(CHANNEL) == head
    assert (await host.get("session-1")).state == state


async def test_ids_go_on_behind_the_highest(open_host: HostOpener) -> None:
    host, _, state = await recovered(open_host, TURN, e.PartStarted(turn="t1", part="p41", kind="text"))
    session = await host.get("session-1")
    assert await session.send(Message("next"), by="ada") == "t42"
    assert state.turns[0].id == "t1"
    assert (await host.start(by="ada", cwd="/")).id == "session-2"


async def test_resume_after_a_crash(open_host: HostOpener) -> None:
    host, _, _ = await recovered(open_host, TURN)
    session = await host.get("session-1")
    await session.resume(by="ada")
    turn = await session.wait("t1")
    assert (turn.outcome, turn.resumes) == ("completed", 1)


async def test_a_snapshot_is_only_a_short_cut(open_host: HostOpener) -> None:
    host = await open_host()
    session = await host.start(by="test", cwd="/")
    for i in range(30):
        await session.wait(await session.send(Message(f"[[say:{i}]]"), by="test"))
    state = session.state
    await host.log.flush()
    data = await host.log.get_kv(session.channel, "snapshot")
    assert data is not None
    snapshot = msgspec.json.decode(data, type=SessionState)
    assert 0 < snapshot.pos < state.pos
    host = await open_host()
    assert (await host.get(session.id)).state == state
    host.log.put_kv(session.channel, "snapshot", None)
    host.log.put_kv(session.channel, "summary", None)
    host = await open_host()
    assert (await host.get(session.id)).state == state
    assert host.list()[0].turns == 30


@pytest.mark.parametrize("step", ["begun", "erased"])
async def test_a_kill_in_the_middle_of_a_deletion(open_host: HostOpener, step: str) -> None:
    """After the last step but one the session came back, empty and without an agent."""
    await crash(open_host.path, STARTED, TURN)
    log = await SqliteLog.open(open_host.path)
    if step == "begun":
        log.put_kv(CHANNEL, "deleted", b"begun")
    else:
        await log.delete(CHANNEL)
    await log.close()
    for _ in range(2):
        host = await open_host(PlayAgent(idle))
        assert host.list() == []
        assert await host.log.read(CHANNEL) == []
    assert (await host.start(by="ada", cwd="/")).id == "session-2"


async def test_events_of_a_newer_portico_do_no_harm(open_host: HostOpener) -> None:
    log = await SqliteLog.open(open_host.path)
    await log.append(CHANNEL, STARTED, e.SessionRenamed(title="x", by="ada"))
    log._database._db.execute("UPDATE events SET data = CAST(? AS BLOB) WHERE seq = 2", ('{"type":"session.sang"}',))
    await log.close()
    host = await open_host(PlayAgent(idle))
    session = await host.get("session-1")
    assert (session.state.title, session.state.pos) == ("", 2)


async def test_a_command_that_waits_while_ends_are_written_finds_its_session_loaded(open_host: HostOpener) -> None:
    """Another host's sessions are closed while commands for them arrive: the state was let go between the two."""
    host, _, _ = await recovered(
        open_host, e.QueueAdded(pending="q1", kind="queue", message=Message("later"), by="ada")
    )
    session = await host.get("session-1")
    async with session.lock:
        closing = asyncio.create_task(host.catalogue.close_open([session]))
        await asyncio.sleep(0)
        releasing = asyncio.create_task(host.do(c.ReleaseQueue(session="session-1"), c.Caller.inside("ada")))
        await asyncio.sleep(0.05)  # both wait for the lock, in this order
    await asyncio.gather(closing, releasing)
    assert not session.state.queue_held

"""The commands of one session that are plain facts: names, models, settings, flags, closing, truncating."""

import asyncio
import contextlib
from collections.abc import Awaitable
from pathlib import Path

import pytest

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.errors import BadRequest, Conflict, NotFound, SessionIsClosed, TooLarge
from portico.kernel.events import Event, Message
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.turn import Turn
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import hang, idle


async def events(session: Session) -> list[Event]:
    return [record.event for record in await session.host.log.read(session.channel)]


async def test_facts_survive_a_restart(open_host: HostOpener, tmp_path: Path) -> None:
    session = await (await open_host()).start(by="test", cwd=str(tmp_path))
    await session.rename("  My work ", by="ada")
    await session.do(c.SetModel(session=session.id, model="gpt-4.1"), "ada")
    await session.do(c.ConfigureSession(session=session.id, values={"a": 1, "b": 2}), "ada")
    await session.do(c.ConfigureSession(session=session.id, values={"b": 3}), "ada")
    await session.archive(True, by="ada")
    await session.do(c.MarkRead(session=session.id, read=False), "ada")

    session = await (await open_host()).get(session.id)
    state = session.state
    assert (state.title, state.title_by_person, state.model, state.config) == (
        "My work",
        True,
        "gpt-4.1",
        {"a": 1, "b": 3},
    )
    assert (state.archived, state.read) == (True, False)
    summary = session.summary
    assert (summary.title, summary.model, summary.archived, summary.read) == ("My work", "gpt-4.1", True, False)

    await session.do(c.ConfigureSession(session=session.id, values={"c": 4}, replace=True), "ada")
    await session.archive(False, by="ada")
    await session.do(c.MarkRead(session=session.id, read=True), "ada")
    assert (session.state.config, session.state.archived, session.state.read) == ({"c": 4}, False, True)


async def test_the_read_mark_is_written_once(session: Session) -> None:
    await session.do(c.MarkRead(session=session.id, read=True), "ada")
    assert not any(isinstance(event, e.SessionRead) for event in await events(session))
    await session.wait(await session.send(Message("[[say:hi]]"), by="test"))
    assert not session.state.read
    await session.do(c.MarkRead(session=session.id, read=True), "ada")
    await session.do(c.MarkRead(session=session.id, read=True), "bob")
    assert [event.by for event in await events(session) if isinstance(event, e.SessionRead)] == ["ada"]


@pytest.mark.parametrize("title", ["", "   ", "x" * (limits.TITLE_CHARS + 1)])
async def test_a_title_has_bounds(session: Session, title: str) -> None:
    with pytest.raises(BadRequest) as caught:
        await session.rename(title, by="test")
    assert caught.value.field == "title"
    await session.rename("x" * limits.TITLE_CHARS, by="test")


async def test_an_unknown_model(session: Session) -> None:
    with pytest.raises(NotFound, match="Scripted has: 'gpt-5-mini'"):
        await session.do(c.SetModel(session=session.id, model="gpt-99"), "test")
    with pytest.raises(NotFound):
        await session.send(Message("hi", model="gpt-99"), by="test")
    assert session.state.turns == []


async def test_the_model_of_the_next_turn(open_host: HostOpener) -> None:
    agent = PlayAgent(idle)
    host = await open_host(agent)
    session = await host.start(by="test", cwd="/")
    for message in (Message("one"), Message("two"), Message("three", model="large"), Message("four")):
        await session.wait(await session.send(message, by="test"))
    await session.do(c.SetModel(session=session.id, model="large"), "test")
    await session.wait(await session.send(Message("five"), by="test"))
    assert [opening.model for opening in agent.openings] == ["small", "large", "small", "large"]


async def test_a_title_comes_from_the_first_message_until_somebody_knows_better(host: Host) -> None:
    session = await host.start(by="test", cwd="/")
    await session.wait(await session.send(Message("\n\n  Fix the door [[reasoning:0]] \nplease"), by="test"))
    assert (session.state.title, session.state.title_by_person) == ("Fix the door [[reasoning:0]]", False)
    long = await host.start(by="test", cwd="/")
    await long.wait(await long.send(Message("word " * 100), by="test"))
    assert len(long.state.title) <= 80
    assert long.state.title.endswith("…")


async def test_an_agents_title_gives_way_to_a_persons(open_host: HostOpener) -> None:
    async def play(message: Message, turn: Turn) -> None:
        turn.title(message.text)

    session = await (await open_host(PlayAgent(play))).start(by="test", cwd="/")
    await session.wait(await session.send(Message("from the agent"), by="test"))
    assert session.state.title == "from the agent"
    await session.wait(await session.send(Message("x" * 500), by="test"))
    assert session.state.title == "x" * limits.TITLE_CHARS
    await session.rename("mine", by="ada")
    await session.wait(await session.send(Message("again"), by="test"))
    assert session.state.title == "mine"


async def test_a_closed_session_refuses_and_reopens(session: Session) -> None:
    await session.wait(await session.send(Message("[[say:hi]]"), by="test"))
    await session.close(by="ada", reason="done")
    await session.close(by="ada")
    assert session.summary.closed
    for attempt in (
        session.send(Message("hi"), by="test"),
        session.resume(by="test"),
        session.queue.add(Message("hi"), by="test"),
        session.queue.steer(Message("hi"), by="test"),
    ):
        with pytest.raises(SessionIsClosed, match="reopen it first"):
            await attempt
    await session.do(c.ReopenSession(session=session.id), "ada")
    await session.do(c.ReopenSession(session=session.id), "ada")
    assert (await session.wait(await session.send(Message("[[say:hi]]"), by="test"))).outcome == "completed"
    closes = [event for event in await events(session) if isinstance(event, e.SessionClosed | e.SessionReopened)]
    assert closes == [e.SessionClosed(by="ada", reason="done"), e.SessionReopened(by="ada")]


async def test_closing_a_session_with_a_queue_starts_nothing(open_host: HostOpener) -> None:
    """The end of the cancelled turn let the next of the queue start, in a session that was closed then."""
    agent = PlayAgent(hang)
    session = await (await open_host(agent)).start(by="test", cwd="/")
    await session.send(Message("one"), by="test")
    await session.send(Message("two"), by="test")
    await session.close(by="ada")
    assert [turn.outcome for turn in session.state.turns] == ["cancelled"]
    assert [pending.message.text for pending in session.state.queue] == ["two"]
    assert session.running is None
    assert agent.closed == 1

    await session.do(c.ReopenSession(session=session.id), "ada")
    await session.queue.release(by="ada")
    assert session.state.active is not None


async def test_truncating_forgets_what_came_after(open_host: HostOpener) -> None:
    agent = PlayAgent(idle)
    session = await (await open_host(agent)).start(by="test", cwd="/")
    turns = [await session.send(Message(text), by="test") for text in ("one",)]
    for text in ("two", "three"):
        await session.wait(turns[-1])
        turns.append(await session.send(Message(text), by="test"))
    await session.wait(turns[-1])
    await session.do(c.TruncateSession(session=session.id, turn=turns[0]), "ada")
    assert [turn.id for turn in session.state.turns] == [turns[0]]

    await session.wait(await session.send(Message("four"), by="test"))
    assert [turn.id for turn in agent.openings[-1].history] == [turns[0]], "the agent starts from the shorter history"
    assert agent.openings[-1].vendor is None
    with pytest.raises(NotFound):
        await session.do(c.TruncateSession(session=session.id, turn=turns[2]), "ada")
    await session.do(c.TruncateSession(session=session.id, turn=None), "ada")
    assert session.state.turns == []


async def test_truncating_ends_the_running_turn_and_then_the_queue_goes_on(open_host: HostOpener) -> None:
    """The next of the queue started before the cut, was cut off with it, and never got an end."""
    session = await (await open_host(PlayAgent(hang))).start(by="test", cwd="/")
    await session.send(Message("one"), by="test")
    await session.send(Message("two"), by="test")
    await session.do(c.TruncateSession(session=session.id, turn=None), "ada")
    state = await session.wait_until(lambda state: state.active is not None)
    assert [turn.message.text for turn in state.turns] == ["two"]
    found = await events(session)
    begun = [event.turn for event in found if isinstance(event, e.TurnStarted)]
    ended = [event.turn for event in found if isinstance(event, e.TurnEnded)]
    assert begun == [*ended, begun[-1]]


@pytest.mark.parametrize("text", ["", " \n "])
async def test_an_empty_message(session: Session, text: str) -> None:
    for attempt in (
        session.send(Message(text), by="test"),
        session.queue.add(Message(text), by="test"),
        session.queue.steer(Message(text), by="test"),
    ):
        with pytest.raises(BadRequest) as caught:
            await attempt
        assert caught.value.field == "text"
    assert (await session.wait(await session.send(Message("", attachments=[{"type": "file"}]), by="test"))).outcome


async def test_a_message_is_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MESSAGE_BYTES", 100)
    room = 100 - len('{"text":""}')
    await session.wait(await session.send(Message("x" * room), by="test"))
    with pytest.raises(TooLarge):
        await session.send(Message("x" * (room + 1)), by="test")


@pytest.mark.parametrize("message", [Message("\ud800"), Message("x", attachments=[{"a": object()}])])
async def test_a_message_that_json_cannot_hold(session: Session, message: Message) -> None:
    with pytest.raises(BadRequest):
        await session.send(message, by="test")


async def test_waiting_for_a_turn_that_is_not_there(session: Session) -> None:
    """It waited for ever."""
    with pytest.raises(NotFound):
        await session.wait("t99")


async def test_ids_that_a_client_chose_are_not_given_twice(session: Session) -> None:
    """The client's own turn id looked like one of ours, and a later turn got the same."""
    for i in range(1, 60, 6):
        if session.state.turn(f"t{i}") is None:
            await session.wait(await session.send(Message("[[say:x]]"), by="test", turn=f"t{i}"))
        await session.wait(await session.send(Message("[[say:x]]"), by="test"))
    idents = [turn.id for turn in session.state.turns]
    assert len(set(idents)) == len(idents)
    with pytest.raises(Conflict):
        await session.send(Message("x"), by="test", turn=idents[0])


async def test_concurrent_messages_are_one_turn_and_a_queue(open_host: HostOpener) -> None:
    session = await (await open_host(PlayAgent(hang))).start(by="test", cwd="/")
    await asyncio.gather(*(session.send(Message(str(i)), by="test") for i in range(10)))
    assert len(session.state.turns) == 1
    assert len(session.state.queue) == 9
    assert len({session.state.turns[0].message.text, *(p.message.text for p in session.state.queue)}) == 10


async def test_concurrent_commands_of_every_kind_leave_one_story(host: Host, tmp_path: Path) -> None:
    session = await host.start(by="test", cwd=str(tmp_path))

    async def try_(command: Awaitable[object]) -> None:
        with contextlib.suppress(Conflict, NotFound):
            await command

    async with asyncio.TaskGroup() as tasks:
        for i in range(8):
            tasks.create_task(try_(session.send(Message(f"[[deltas:20]] {i}"), by="a")))
            tasks.create_task(try_(session.queue.steer(Message(f"[[say:{i}]]"), by="b")))
            tasks.create_task(try_(session.cancel(by="c")))
            tasks.create_task(try_(session.rename(f"title {i}", by="d")))
            tasks.create_task(try_(session.do(c.TruncateSession(session=session.id, turn=None), "e")))
            tasks.create_task(try_(session.resume(by="f")))
    await session.wait_until(lambda state: state.active is None and not state.queue)
    open_: str | None = None
    for event in await events(session):
        if isinstance(event, e.TurnStarted | e.TurnResumed):
            assert open_ is None, "one turn at a time"
            open_ = event.turn
        if isinstance(event, e.TurnEnded):
            assert open_ == event.turn
            open_ = None
    assert open_ is None


async def test_a_caller_who_goes_away_leaves_no_orphan(open_host: HostOpener) -> None:
    """The client was cancelled between the turn's first event and its start: it ran for ever, without an agent."""
    session = await (await open_host(PlayAgent(idle))).start(by="test", cwd="/")
    for steps in range(6):
        task = asyncio.create_task(session.send(Message("go"), by="test"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        await asyncio.wait_for(session.wait_until(lambda state: state.active is None and not state.queue), 60)
    assert all(turn.outcome == "completed" for turn in session.state.turns)


async def test_a_cancel_is_not_lost_while_the_agent_is_released(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job went on after its host had been told to stop: wait_for forgets a cancel that comes when it is done."""
    entered, released = asyncio.Event(), asyncio.Event()

    class Conversation:
        async def close(self) -> None:
            entered.set()
            await released.wait()

    monkeypatch.setattr(session.runner, "_conversation", Conversation())
    closing = asyncio.ensure_future(session.close(by="test"))
    await entered.wait()
    await asyncio.sleep(0)
    released.set()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing


async def test_whoever_gives_up_waiting_does_not_keep_the_session_in_memory(session: Session) -> None:
    waiting = asyncio.ensure_future(session.wait_until(lambda state: state.closed))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    session.used_at = -1e9
    session.unload()
    assert not session.loaded


async def test_a_command_that_waits_for_the_lock_finds_its_session_loaded(session: Session) -> None:
    """A takeover unloaded what it had ended, in the moment between two holders of the lock: "is not loaded"."""
    async with session.lock:
        renaming = asyncio.ensure_future(session.queue.release(by="test"))
        async with asyncio.timeout(30):
            while not session.lock._waiters:  # noqa: ASYNC110
                await asyncio.sleep(0)
    session.unload()
    await renaming
    assert session.loaded

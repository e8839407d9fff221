"""Messages that wait on the server: add, edit, reorder, remove, steer, hold, release."""

import asyncio

import pytest

from portico.agents.agent import Message, Opening, Turn
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.errors import Conflict, NotFound
from portico.kernel.session import Session
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent, PlayConversation
from tests.host.commands import edit, reorder
from tests.host.plays import hang, idle


async def busy(open_host: HostOpener, *texts: str, steer: bool = False) -> tuple[Session, list[str]]:
    """A session with a turn that hangs and these messages behind it."""
    session = await (await open_host(PlayAgent(hang, steer=steer))).start(by="test", cwd="/")
    await session.send(Message("running"), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    return session, [await session.send(Message(text), by="test") for text in texts]


def waiting(session: Session) -> list[str]:
    return [pending.message.text for pending in session.state.queue]


async def test_messages_become_turns_in_their_order(open_host: HostOpener) -> None:
    done: list[str] = []

    async def play(message: Message, turn: Turn) -> None:
        done.append(message.text)

    session = await (await open_host(PlayAgent(play))).start(by="test", cwd="/")
    for text in "abcde":
        await session.send(Message(text), by="test")
    await session.wait_until(lambda state: not state.queue and state.active is None)
    assert done == list("abcde")
    started = [r.event for r in await session.host.log.read(session.channel) if isinstance(r.event, e.TurnStarted)]
    assert started[0].pending is None
    assert len({event.pending for event in started[1:]}) == 4


async def test_the_queue_can_be_edited(open_host: HostOpener) -> None:
    session, [a, b, c] = await busy(open_host, "a", "b", "c")
    assert session.summary.queued == 3
    await edit(session, b, Message("B"), by="ada")
    await reorder(session, [c, "nonsense", a], by="ada")
    assert waiting(session) == ["c", "a", "B"]
    await reorder(session, [b, b, a], by="ada")
    assert waiting(session) == ["B", "a", "c"]
    await session.queue.remove(a, by="ada")
    await reorder(session, [], by="ada")
    assert waiting(session) == ["B", "c"]

    await session.cancel(by="ada")
    state = await session.wait_until(lambda state: state.active is not None and len(state.turns) == 2)
    assert state.turns[-1].message.text == "B"
    assert waiting(session) == ["c"]


async def test_what_is_not_in_the_queue(open_host: HostOpener) -> None:
    session, [a] = await busy(open_host, "a")
    await session.queue.remove(a, by="ada")
    for attempt in (
        session.queue.remove(a, by="ada"),
        edit(session, a, Message("x"), by="ada"),
        session.queue.steer_now(a, by="ada"),
    ):
        with pytest.raises(NotFound, match="queued message"):
            await attempt


async def test_a_clients_own_ids(open_host: HostOpener) -> None:
    session, _ = await busy(open_host)
    assert await session.queue.add(Message("x"), by="ada", id="mine") == "mine"
    with pytest.raises(Conflict):
        await session.queue.add(Message("y"), by="ada", id="mine")


async def test_a_queue_is_bounded(open_host: HostOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "QUEUE_LENGTH", 2)
    session, _ = await busy(open_host, "a", "b")
    with pytest.raises(Conflict, match="full"):
        await session.send(Message("c"), by="test")


async def test_steering_an_agent_that_takes_it(open_host: HostOpener) -> None:
    session, [a] = await busy(open_host, "a", steer=True)
    assert await session.queue.steer(Message("left"), by="ada")
    assert await session.queue.steer_now(a, by="ada")
    agent = session.host.agents["play"]
    assert isinstance(agent, PlayAgent)
    assert agent.steered == ["left", "a"]
    assert waiting(session) == []
    removed = [r.event for r in await session.host.log.read(session.channel) if isinstance(r.event, e.QueueRemoved)]
    assert [event.reason for event in removed] == ["steered", "steered"]


async def test_steering_an_agent_that_does_not_makes_it_the_next(open_host: HostOpener) -> None:
    session, [_, b] = await busy(open_host, "a", "b")
    assert not await session.queue.steer(Message("soon"), by="ada")
    assert waiting(session) == ["soon", "a", "b"]
    assert not await session.queue.steer_now(b, by="ada")
    assert waiting(session) == ["b", "soon", "a"]


async def test_steering_an_idle_session_starts_a_turn(open_host: HostOpener) -> None:
    session = await (await open_host(PlayAgent(idle))).start(by="test", cwd="/")
    assert not await session.queue.steer(Message("go"), by="ada")
    state = await session.wait_until(lambda state: bool(state.turns) and state.active is None)
    assert [turn.message.text for turn in state.turns] == ["go"]
    assert state.queue == []


async def test_steering_races_with_the_end_of_the_turn(open_host: HostOpener) -> None:
    """The message became a turn between its two steps, and the caller was told that it did not exist."""
    session = await (await open_host(PlayAgent(idle, steer=True))).start(by="test", cwd="/")
    for i in range(20):
        await asyncio.gather(session.send(Message("go"), by="test"), session.queue.steer(Message(str(i)), by="ada"))
    await session.wait_until(lambda state: state.active is None and not state.queue)


async def test_adding_to_an_idle_session_waits_for_release(open_host: HostOpener) -> None:
    session = await (await open_host(PlayAgent(idle))).start(by="test", cwd="/")
    await session.queue.add(Message("a"), by="ada")
    assert session.state.turns == []
    await session.queue.release(by="ada")
    state = await session.wait_until(lambda state: bool(state.turns) and state.active is None)
    assert len(state.turns) == 1


@pytest.mark.parametrize("way", ["release", "send", "resume", "steer"])
async def test_after_a_crash_the_queue_waits_for_a_person(open_host: HostOpener, way: str) -> None:
    await busy(open_host, "a", "b")
    await open_host.close()
    session = await (await open_host(PlayAgent(idle))).get("session-1")
    assert session.state.queue_held
    assert waiting(session) == ["a", "b"]
    assert session.state.active is None
    if way == "release":
        await session.queue.release(by="ada")
    elif way == "send":
        await session.send(Message("c"), by="ada")
    elif way == "resume":
        await session.resume(by="ada")
    else:
        await session.queue.steer(Message("c"), by="ada")
    state = await session.wait_until(lambda state: not state.queue and state.active is None)
    assert not state.queue_held
    texts = [turn.message.text for turn in state.turns[1:]]
    assert texts == {"steer": ["c", "a", "b"], "send": ["a", "b", "c"]}.get(way, ["a", "b"])


async def test_a_queue_left_between_two_turns_is_held_too(open_host: HostOpener) -> None:
    """Killed between the end of one turn and the start of the next, the queue was neither running nor held."""
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="test", cwd="/")
    await session.queue.add(Message("a"), by="ada")
    session = await (await open_host(PlayAgent(idle))).get(session.id)
    assert (session.state.queue_held, waiting(session)) == (True, ["a"])


async def test_a_held_queue_waits_for_a_person_and_nothing_else(open_host: HostOpener) -> None:
    """Cutting the history is no word about what waits."""
    session, _ = await busy(open_host, "a")
    await open_host.close()
    session = await (await open_host(PlayAgent(idle))).get(session.id)
    await session.do(c.TruncateSession(session=session.id, turn=None), "ada")
    assert (session.state.queue_held, waiting(session), session.state.turns) == (True, ["a"], [])


async def test_a_message_meant_for_steering_goes_first(open_host: HostOpener) -> None:
    session, _ = await busy(open_host, "a")
    await session.queue.add(Message("left"), by="ada", kind="steer")
    await session.cancel(by="ada")
    state = await session.wait_until(lambda state: state.active is not None and len(state.turns) == 2)
    assert (state.turns[-1].message.text, waiting(session)) == ("left", ["a"])


async def test_a_held_queue_that_was_emptied_is_held_no_more(open_host: HostOpener) -> None:
    """Found by a kill: whoever removed the last message left an empty queue that the next message waited in."""
    host = await open_host()
    session = await host.start(by="test", cwd="/")
    await session.queue.add(Message("a"), by="test", id="a")
    await open_host.close()
    session = await (await open_host()).get(session.id)
    assert (session.state.queue_held, waiting(session)) == (True, ["a"])
    await session.queue.remove("a", by="test")
    assert (session.state.queue_held, waiting(session)) == (False, [])


class DeafAgent(PlayAgent):
    """Its conversations never answer whether they take a message."""

    async def open(self, opening: Opening) -> "DeafConversation":
        return DeafConversation(self)


class DeafConversation(PlayConversation):
    async def steer(self, message: Message) -> bool:
        await asyncio.get_running_loop().create_future()
        return True


async def deaf(open_host: HostOpener) -> Session:
    session = await (await open_host(DeafAgent(hang))).start(by="test", cwd="/")
    await session.send(Message("running"), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    return session


async def test_a_turn_is_cancelled_while_its_agent_does_not_answer_to_steering(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`steer` held the session's lock without a bound, and `cancel` hung with it."""
    monkeypatch.setattr(limits, "STEER_SECONDS", 3600)
    session = await deaf(open_host)
    steering = asyncio.ensure_future(session.queue.steer(Message("left"), by="ada"))
    await session.wait_until(lambda state: bool(state.queue))
    async with asyncio.timeout(60):
        await session.cancel(by="ada")
        assert not await steering
    state = await session.wait_until(lambda state: len(state.turns) == 2)
    assert (state.turns[0].outcome, state.turns[1].message.text) == ("cancelled", "left")


async def test_a_message_that_the_agent_does_not_take_in_time_is_the_next(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STEER_SECONDS", 0.01)
    session = await deaf(open_host)
    assert not await session.queue.steer(Message("left"), by="ada")
    assert waiting(session) == ["left"]

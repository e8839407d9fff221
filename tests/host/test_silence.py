"""An agent that says nothing: a person is told for how long, and what is known about why."""

import asyncio

import pytest

from portico.agents.agent import Message, Opening, Turn
from portico.kernel import limits
from portico.kernel.session import Session
from portico.kernel.state import TextPart, TurnState
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import Play, PlayAgent, PlayConversation


async def quiet(open_host: HostOpener, clock: FakeClock, before: Play) -> tuple[Session, str, asyncio.Event]:
    """A turn that says nothing after `before`, until the event is set."""
    silent, go_on = asyncio.Event(), asyncio.Event()

    async def play(message: Message, turn: Turn) -> None:
        await before(message, turn)
        silent.set()
        await go_on.wait()

    host = await open_host(PlayAgent(play), clock=clock)
    session = await host.start(by="test", model="small")
    turn = await session.send(Message("go"), by="test")
    await silent.wait()
    await asyncio.sleep(0)
    return session, turn, go_on


def notices(turn: TurnState | None) -> list[str]:
    parts = turn.parts if turn is not None else []
    return [part.text for part in parts if isinstance(part, TextPart) and part.kind == "notice" and part.done]


async def told(session: Session, count: int) -> list[str]:
    async with asyncio.timeout(60):
        state = await session.wait_until(lambda state: len(notices(state.active)) >= count)
    return notices(state.active)


async def nothing(message: Message, turn: Turn) -> None:
    pass


async def running(message: Message, turn: Turn) -> None:
    turn.tool("bash", '{"command": "make"}', title="make all")


async def retrying(message: Message, turn: Turn) -> None:
    turn.activity = "retrying after 429"


async def answered(message: Message, turn: Turn) -> None:
    turn.activity = "retrying after 429"
    turn.text("Yes.")


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (nothing, "waiting for play (small) to answer"),
        (running, "'make all' is still running"),
        (retrying, "retrying after 429"),
        (answered, "waiting for play (small) to answer"),
    ],
)
async def test_silence_is_explained(open_host: HostOpener, before: Play, words: str) -> None:
    clock = FakeClock()
    session, turn, go_on = await quiet(open_host, clock, before)
    clock.advance(limits.SILENCE_SECONDS[0])
    assert await told(session, 1) == [f"Nothing heard for 20 seconds: {words}."]
    go_on.set()
    assert (await session.wait(turn)).outcome == "completed"


async def test_it_is_told_again_when_it_takes_much_longer_and_counts_as_no_word(open_host: HostOpener) -> None:
    clock = FakeClock()
    session, turn, _ = await quiet(open_host, clock, nothing)
    heard = 0.0
    for count, seconds in enumerate(limits.SILENCE_SECONDS, 1):
        clock.advance(seconds - heard)
        heard = seconds
        assert f"Nothing heard for {seconds:.0f} seconds" in (await told(session, count))[-1]
    clock.advance(session.host.turn_idle_timeout - heard)
    ended = await session.wait(turn)
    assert ended.error is not None
    assert (ended.error.code, len(notices(ended))) == ("agent_died", 3)


async def test_a_person_who_is_asked_is_no_silence(open_host: HostOpener) -> None:
    clock = FakeClock()

    async def play(message: Message, turn: Turn) -> None:
        await turn.ask("Which?")

    host = await open_host(PlayAgent(play), clock=clock)
    session = await host.start(by="test")
    turn = await session.send(Message("go"), by="test")
    state = await session.wait_until(lambda state: state.status == "waiting")
    clock.advance(60)
    await asyncio.sleep(0.01)
    assert notices(state.active) == []
    await session.cancel(by="test")
    await session.wait(turn)


async def test_a_sub_agent_that_speaks_is_no_silence(open_host: HostOpener) -> None:
    clock = FakeClock()
    children: list[Turn] = []

    async def spawning(message: Message, turn: Turn) -> None:
        children.append(await turn.spawn("help"))

    session, turn, go_on = await quiet(open_host, clock, spawning)
    for _ in range(3):
        clock.advance(limits.SILENCE_SECONDS[0] - 1)
        children[0].text("still here ")
        await asyncio.sleep(0.01)
    assert notices(session.state.active) == []
    await children[0].finish()
    go_on.set()
    assert (await session.wait(turn)).outcome == "completed"


async def test_a_slow_start_is_told_once_and_with_what_it_waits_for(open_host: HostOpener) -> None:
    """Not again when the conversation is open at last."""
    opening, opened, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Slow(PlayAgent):
        async def open(self, wanted: Opening) -> PlayConversation:
            wanted.tell("Waiting for a free agent: all are busy.")
            opening.set()
            await opened.wait()
            return await super().open(wanted)

    async def play(message: Message, turn: Turn) -> None:
        await go_on.wait()

    clock = FakeClock()
    host = await open_host(Slow(play), clock=clock)
    session = await host.start(by="test")
    turn = await session.send(Message("go"), by="test")
    await opening.wait()
    clock.advance(limits.SILENCE_SECONDS[0])
    words = ["Waiting for a free agent: all are busy."]
    words.append("Nothing heard for 20 seconds: waiting for a free agent: all are busy.")
    assert await told(session, 2) == words
    opened.set()
    clock.advance(1)
    go_on.set()
    assert notices(await session.wait(turn)) == words

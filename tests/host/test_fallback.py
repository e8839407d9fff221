"""When an agent cannot answer, the next of the session's list does, and the log says so."""

from functools import partial
from pathlib import Path

import pytest

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.agent import Opening
from portico.kernel.errors import AgentDied, AgentError, AgentUnavailable, BadRequest, NotFound
from portico.kernel.events import Message
from portico.kernel.session import Session
from portico.kernel.state import TextPart, TurnState
from portico.kernel.turn import Turn
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent, PlayConversation


async def fine(message: Message, turn: Turn) -> None:
    turn.text(f"{turn.session.state.agent} answers")


async def dead_model(message: Message, turn: Turn) -> None:
    raise AgentError("the model is dead")


async def dies_late(message: Message, turn: Turn) -> None:
    turn.text("half an answer")
    raise AgentDied("dead")


class Closed(PlayAgent):
    async def open(self, opening: Opening) -> PlayConversation:
        raise AgentUnavailable("not installed")


async def start(open_host: HostOpener, tmp_path: Path, first: PlayAgent, *fallback: str) -> Session:
    host = await open_host(first, Closed(fine, "closed"), PlayAgent(fine, "second"), PlayAgent(fine, "third"))
    return await host.start(by="test", agent=first.id, cwd=str(tmp_path), config={"fallback": list(fallback)})


async def turn_of(session: Session, text: str = "hello") -> TurnState:
    return await session.wait(await session.send(Message(text), by="test"))


def told(turn: TurnState) -> list[tuple[str, str]]:
    return [(part.kind, part.text) for part in turn.parts if isinstance(part, TextPart)]


async def test_the_next_takes_over_and_the_log_says_why(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path, PlayAgent(dead_model, "first"), "closed", "missing", "second/large")
    turn = await turn_of(session)
    assert turn.outcome == "completed"
    assert told(turn) == [
        ("notice", "'first' cannot answer: the model is dead 'closed' takes over."),
        ("notice", "'closed' cannot answer: not installed 'missing' takes over."),
        ("notice", told(turn)[2][1]),
        ("text", "second answers"),
    ]
    assert (session.state.agent, session.state.model) == ("second", "large")
    events = [record.event for record in await session.host.log.read(session.channel)]
    taken = [(event.agent, event.reason) for event in events if isinstance(event, e.SessionModel)]
    assert taken[0] == ("closed", "fallback: the model is dead")
    assert [agent for agent, _ in taken] == ["closed", "missing", "second"]


async def test_an_agent_that_is_not_there_at_all_is_taken_over_from(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(PlayAgent(fine, "second"))
    start = partial(host.start, by="test", agent="copilot", model="gpt-4.1", cwd=str(tmp_path))
    with pytest.raises(NotFound, match="copilot"):
        await start()
    session = await start(config={"fallback": ["second"]})
    turn = await turn_of(session)
    assert (turn.outcome, told(turn)[-1]) == ("completed", ("text", "second answers"))
    assert "There is no agent 'copilot'" in told(turn)[0][1]


@pytest.mark.parametrize("wrong", ["second", [1], ["/model"], {"second": 1}])
async def test_a_fallback_is_a_list_of_agents(open_host: HostOpener, tmp_path: Path, wrong: object) -> None:
    host = await open_host(PlayAgent(fine, "first"))
    with pytest.raises(BadRequest, match=r"config\.fallback: Should be a list of agents"):
        await host.start(by="test", cwd=str(tmp_path), config={"fallback": wrong})
    session = await host.start(by="test", cwd=str(tmp_path))
    with pytest.raises(BadRequest, match=r"config\.fallback"):
        await session.do(c.ConfigureSession(session=session.id, values={"fallback": wrong}), "test")


async def test_the_one_that_took_over_stays(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path, Closed(fine, "first"), "second", "third")
    await turn_of(session)
    assert told(await turn_of(session)) == [("text", "second answers")]


async def test_what_was_begun_is_not_done_again(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path, PlayAgent(dies_late, "first"), "second")
    turn = await turn_of(session)
    assert (turn.outcome, told(turn), session.state.agent) == ("failed", [("text", "half an answer")], "first")


async def test_without_anybody_left_the_last_failure_is_told(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path, PlayAgent(dead_model, "first"), "closed")
    turn = await turn_of(session)
    assert turn.error is not None
    assert (turn.outcome, turn.error.code) == ("failed", "agent_unavailable")
    session = await start(open_host, tmp_path, PlayAgent(dead_model, "first"))
    assert (await turn_of(session)).outcome == "failed"

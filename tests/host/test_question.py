"""Questions: drafts merge, one completion wins."""

import asyncio

import pytest

from portico.agents.agent import Message, Turn
from portico.kernel import events as e
from portico.kernel.errors import AlreadyAnswered, BadRequest, NotFound
from portico.kernel.events import Json
from portico.kernel.session import Session
from portico.kernel.state import QuestionPart, TextPart
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import host_of
from tests.host.commands import draft

FIELDS: list[Json] = [{"id": "name", "kind": "text", "required": True}, {"id": "note", "kind": "text"}]


async def ask(open_host: HostOpener, fields: list[Json] | None = None) -> tuple[Session, str]:
    async def play(message: Message, turn: Turn) -> None:
        answer = await turn.ask("Who?", fields)
        turn.text(f"{answer.response} {answer.text} {sorted(answer.answers)} {answer.by}")

    session = await (await open_host(PlayAgent(play))).start(by="test", cwd="/")
    await session.send(Message("go"), by="test")
    state = await session.wait_until(lambda state: state.status == "waiting")
    assert state.active is not None
    return session, state.active.parts[0].id


async def said(session: Session) -> str:
    turn = await asyncio.wait_for(session.wait(session.state.turns[-1].id), 60)
    part = turn.parts[-1]
    assert isinstance(part, TextPart)
    return part.text


async def test_a_plain_question(open_host: HostOpener) -> None:
    session, ident = await ask(open_host)
    assert host_of(session).session_of(ident) == session.id
    await session.questions.answer(ident, "accept", {"answer": "Ada"}, by="client:1")
    assert await said(session) == "accept Ada ['answer'] client:1"


async def test_drafts_of_several_clients_merge_into_the_answer(open_host: HostOpener) -> None:
    session, ident = await ask(open_host, FIELDS)
    await draft(session, ident, "name", {"value": "A"}, by="client:1")
    await draft(session, ident, "note", {"value": "draft"}, by="client:2")
    await draft(session, ident, "note", None, by="client:2")
    await draft(session, ident, "name", {"value": "Ada"}, by="client:2")
    question = session.state.turns[-1].parts[0]
    assert isinstance(question, QuestionPart)
    assert question.answers == {"name": {"value": "Ada"}}
    await session.questions.answer(ident, "accept", {"note": {"value": "n"}}, by="client:1")
    assert await said(session) == "accept  ['name', 'note'] client:1"


async def test_what_is_required_must_be_there(open_host: HostOpener) -> None:
    session, ident = await ask(open_host, FIELDS)
    for answers in ({}, {"note": "x"}, {"name": {"state": "skipped"}}):
        with pytest.raises(BadRequest) as caught:
            await session.questions.answer(ident, "accept", answers, by="ada")
        assert caught.value.field == "name"
    with pytest.raises(BadRequest):
        await draft(session, ident, "age", {"value": 3}, by="ada")
    await session.questions.answer(ident, "decline", by="ada")
    assert (await said(session)).startswith("decline")


async def test_one_completion_wins(open_host: HostOpener) -> None:
    session, ident = await ask(open_host)
    results = await asyncio.gather(
        *(session.questions.answer(ident, "accept", {"answer": str(i)}, by=f"client:{i}") for i in range(4)),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [type(None), AlreadyAnswered, AlreadyAnswered, AlreadyAnswered]
    assert await said(session) == "accept 0 ['answer'] client:0"
    with pytest.raises(AlreadyAnswered):
        await draft(session, ident, "answer", {"value": "late"}, by="ada")
    with pytest.raises(NotFound):
        await session.questions.answer("session-1.q99", "accept", by="ada")


async def test_an_answer_whose_caller_went_away_counts(open_host: HostOpener) -> None:
    """The answer was in the log, but the agent never heard of it."""
    session, ident = await ask(open_host)
    task = asyncio.create_task(session.questions.answer(ident, "accept", {"answer": "x"}, by="ada"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert await said(session) == "accept x ['answer'] ada"


async def test_a_turn_takes_its_questions_with_it(open_host: HostOpener) -> None:
    session, ident = await ask(open_host)
    await session.cancel(by="ada")
    answers = [r.event for r in await session.host.log.read(session.channel) if isinstance(r.event, e.QuestionAnswered)]
    assert answers == [e.QuestionAnswered(turn="t1", question=ident, response="cancel", by="ada")]


CHOICE: list[Json] = [
    {
        "id": "answer",
        "kind": "single-select",
        "required": True,
        "options": [{"id": "raise", "label": "Raise to $2"}, {"id": "stop", "label": "Stop"}],
    },
    {"id": "why", "kind": "text"},
]
MANY: list[Json] = [{**CHOICE[0], "kind": "multi-select"}]
FREE: list[Json] = [{**CHOICE[0], "allowFreeformInput": True}]


@pytest.mark.parametrize(
    ("fields", "given", "kept"),
    [
        (CHOICE, "raise", "raise"),
        (CHOICE, "Raise to $2", "raise"),
        (CHOICE, " raise TO $2 ", "raise"),
        (CHOICE, "STOP", "stop"),
        (CHOICE, {"value": "Stop"}, {"value": "stop"}),
        (CHOICE, {"value": {"kind": "selected", "value": "Stop"}}, {"value": {"kind": "selected", "value": "stop"}}),
        (MANY, ["Stop", "raise"], ["stop", "raise"]),
        (FREE, "something else", "something else"),
        (CHOICE, "yes", None),
        (CHOICE, "", None),
        (CHOICE, {"value": "yes"}, None),
        (MANY, ["stop", "yes"], None),
    ],
)
async def test_an_option_is_named_by_id_or_label(
    open_host: HostOpener, fields: list[Json], given: object, kept: object
) -> None:
    """A budget's question took its own label for Stop, and a person check took `Yes` for no."""
    session, ident = await ask(open_host, fields)
    if kept is None:
        with pytest.raises(BadRequest, match=r"is none of the options: 'Raise to \$2', 'Stop'\."):
            await session.questions.answer(ident, "accept", {"answer": given}, by="ada")
        with pytest.raises(BadRequest, match="is none of the options"):
            await draft(session, ident, "answer", {"value": "yes"}, by="ada")
        return
    await session.questions.answer(ident, "accept", {"answer": given}, by="ada")
    part = session.state.turns[-1].parts[0]
    assert isinstance(part, QuestionPart)
    assert part.answers == {"answer": kept}

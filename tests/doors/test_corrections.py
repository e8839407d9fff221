"""What was streamed turns out to be wrong: readers of all doors end with the same text."""

import json
from collections.abc import Callable

import msgspec
import pytest

from portico.agents.agent import Message, Turn
from portico.cli.show import Printer
from portico.client.record import RemoteRecord
from portico.doors.ahp.view import snapshots, translate
from portico.doors.ahp.wire.versions import Dialect
from portico.doors.anywhere.translate import Watched, frames
from portico.doors.portal.callbacks import session_elements
from portico.kernel import events as e
from portico.kernel.events import Json, Record
from portico.kernel.fold import fold
from portico.kernel.state import SessionState, TextPart, TurnState
from portico.testing.ahp import reducer
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent

TRUTH = "The answer is 42."
LONG = "x" * 200_000


async def doubled(message: Message, turn: Turn) -> None:
    """As the Copilot CLI does under a flood: some deltas come twice, and the message has the truth."""
    for piece in ("The ", "answer ", "answer ", "is ", "42.", "42."):
        turn.text(piece, "m1")
    turn.correct("m1", TRUTH)


async def retried(message: Message, turn: Turn) -> None:
    """The stream broke off in the middle, and the model was asked again."""
    turn.reasoning("Hm, ", "try1")
    turn.text("The answer is 4", "try1")
    turn.retract("try1")
    turn.reasoning("Hm.", "try2")
    turn.text(TRUTH, "try2")
    turn.correct("try2", TRUTH)


async def unstreamed(message: Message, turn: Turn) -> None:
    turn.correct("m1", TRUTH)


async def right(message: Message, turn: Turn) -> None:
    turn.text(TRUTH, "m1")
    turn.correct("m1", TRUTH)


async def between_calls(message: Message, turn: Turn) -> None:
    turn.text("Firrst.", "m1")
    turn.correct("m1", "The answer ")
    call = turn.tool("look", "{}")
    await call.end(output="seen")
    turn.text("is is 42.", "m2")
    turn.correct("m2", "is 42.")


async def folded(records: list[Record]) -> str:
    state = SessionState("s1")
    for record in records:
        fold(state, record)
    return "".join(part.text for part in state.turns[0].parts if isinstance(part, TextPart) and part.kind == "text")


async def over_ahp(records: list[Record], version: str = "1.0.0") -> str:
    state, dialect = SessionState("s1"), Dialect(version, lambda: 0)
    fold(state, records[0])
    shown: Json = snapshots.chat(state, dialect)
    for record in records[1:]:
        fold(state, record)
        for said in translate.conversation(record, state, False):
            if said.before is None:
                shown = reducer.reduce("chat", shown, {"type": f"chat/{said.name}", **said.fields}, dialect)
    return "".join(part["content"] for part in shown["turns"][0]["responseParts"] if part["kind"] == "markdown")


async def over_anywhere(records: list[Record]) -> str:
    started = next(each.event for each in records if isinstance(each.event, e.TurnStarted))
    watched = Watched.of("p", "i", "m", TurnState(started.turn, started.message, "x", 0, 1))
    said = ""
    for record in records:
        for frame in frames(record, watched):
            fields = dict(line.split(b": ", 1) for line in frame.strip().split(b"\n"))
            data = json.loads(fields[b"data"])
            if fields[b"event"] == b"fragment":
                said = said[: len(said) - data.get("replaces", 0)] + data["fragment"]
    return said


async def over_portal(records: list[Record]) -> str:
    open_parts: dict[str, str] = {}
    elements = [each for record in records for each in session_elements(record.event, open_parts)]
    return "".join(str(each["completeContent"]) for each in elements if each["callback"] == "onEndMessage")


DOORS = [folded, over_ahp, over_anywhere, over_portal]
PLAYS = [doubled, retried, unstreamed, right, between_calls]


@pytest.mark.parametrize("play", PLAYS)
async def test_readers_of_all_doors_end_with_the_truth(open_host: HostOpener, play: Callable[..., object]) -> None:
    host = await open_host(PlayAgent(play))  # type: ignore[arg-type]
    session = await host.start(by="test")
    await session.wait(await session.send(Message("go"), by="test"))
    records = await host.log.read(session.channel)
    assert {read.__name__: await read(records) for read in DOORS} == {read.__name__: TRUTH for read in DOORS}


async def test_a_correction_of_many_frames_takes_back_once(open_host: HostOpener) -> None:
    async def play(message: Message, turn: Turn) -> None:
        turn.text("y" * 70_000, "m1")
        turn.correct("m1", LONG)

    host = await open_host(PlayAgent(play))
    session = await host.start(by="test")
    await session.wait(await session.send(Message("go"), by="test"))
    records = await host.log.read(session.channel)
    assert await over_anywhere(records) == LONG


async def test_a_terminal_cannot_take_back_and_says_so(
    open_host: HostOpener, capsys: pytest.CaptureFixture[str]
) -> None:
    host = await open_host(PlayAgent(retried))
    session = await host.start(by="test")
    await session.wait(await session.send(Message("go"), by="test"))
    printer = Printer(prompts=False)
    for record in await host.log.read(session.channel):
        raw = msgspec.Raw(e.encode(record.event))
        printer.show(RemoteRecord(record.seq, record.channel, record.pos, record.time, raw))
    assert capsys.readouterr().out == f"Hm, \nThe answer is 4\n[taken back]\n[taken back]\nHm.\n{TRUTH}\n"

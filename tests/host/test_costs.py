"""What a commit and a deletion look at does not grow with the turn or with the host. Counted, not timed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from portico.doors.ahp.view import card, parts, snapshots
from portico.features.board.activity import activity, waiting_of
from portico.kernel import events as e
from portico.kernel.catalogue import Catalogue
from portico.kernel.events import Message
from portico.kernel.fold import fold
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import CallPart, Part, QuestionPart, SessionState, Summary, TurnState, summarise, waiting
from portico.testing.fixtures import HostOpener


class Counted(list[Any]):
    """A list that counts which of its items are looked at."""

    seen = 0

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            self.seen += 1
            yield each

    def __reversed__(self) -> Iterator[Any]:
        for each in super().__reversed__():
            self.seen += 1
            yield each


def record(event: e.Event, pos: int) -> e.Record:
    return e.Record(pos, "session/s", pos, pos, e.encode(event))


def folded(*events: e.Event) -> SessionState:
    state = SessionState("s")
    beginning = [e.SessionStarted(session="s", agent="a", model="m", cwd="/", by="t")]
    for pos, event in enumerate([*beginning, e.TurnStarted(turn="t", message=Message("x"), by="t"), *events], 1):
        state = fold(state, record(event, pos))
    return state


def parts_of(count: int) -> list[e.Event]:
    """A plan that stays open, then calls and texts that end."""
    found: list[e.Event] = [e.ToolStarted(turn="t", call="plan", tool="plan")]
    for number in range(count // 2):
        found += [
            e.ToolStarted(turn="t", call=f"c{number}", tool="read"),
            e.ToolEnded(turn="t", call=f"c{number}", ok=True, outcome="completed"),
            e.PartStarted(turn="t", part=f"p{number}", kind="text"),
            e.PartEnded(turn="t", part=f"p{number}", text="x"),
        ]
    return found


READERS = {
    "the summary": summarise,
    "the board": lambda state: activity(state, waiting_of(state)),
    "AHP: what waits": snapshots.input_needed,
    "AHP: questions": parts.open_questions,
    "AHP: activity": card.activity,
}


@pytest.mark.parametrize("reader", READERS)
def test_what_is_read_with_every_commit(reader: str) -> None:
    """A summary walked all parts of the running turn: 690 microseconds at 4,000 parts, and the AHP view again."""
    seen: list[int] = []
    for count in (100, 4000):
        state = folded(*parts_of(count))
        turn = state.active
        assert turn is not None
        turn.parts = counted = Counted(turn.parts)
        for number in range(3):
            state = fold(state, record(e.PartStarted(turn="t", part=f"new{number}", kind="text"), 9000 + number))
            READERS[reader](state)
        seen.append(counted.seen)
    assert seen[0] == seen[1]
    assert seen[1] <= 12


# -- what is open --------------------------------------------------------------------------------------------------


def _expected(turn: TurnState) -> list[Part]:
    found: list[Part] = []
    for part in turn.parts:
        asked = isinstance(part, CallPart) and (part.approval is not None or part.sign_in is not None)
        if not part.done or asked or (isinstance(part, QuestionPart) and part.response is None):
            found.append(part)
    return found


CALL = e.ToolStarted(turn="t", call="c", tool="x")
ASKED = e.ApprovalAsked(
    turn="t", call="c", approval="a", tool="x", title="", kind="other", input="{}", expires=0, options=[]
)
YES = e.ApprovalAnswered(turn="t", approval="a", allowed=True, by="t")
ENDED = e.ToolEnded(turn="t", call="c", ok=True, outcome="completed")
SIGN_IN = e.SignInAsked(turn="t", call="c", resource={})
SIGNED_IN = e.SignInSettled(turn="t", call="c", given=True, by="t")
QUESTION = e.QuestionAsked(turn="t", question="q", text="?")
ANSWER = e.QuestionAnswered(turn="t", question="q", response="accept", by="t")
AGAIN = [e.TurnEnded(turn="t", outcome="interrupted"), e.TurnResumed(turn="t", by="t")]
STORIES: dict[str, tuple[list[e.Event], bool]] = {
    "an approval": ([CALL, ASKED], True),
    "an answered one": ([CALL, ASKED, YES], False),
    "a call that ended before its answer": ([CALL, ASKED, ENDED], True),
    "the answer after the end": ([CALL, ASKED, ENDED, YES], False),
    "a sign-in": ([CALL, SIGN_IN], True),
    "a settled one": ([CALL, SIGN_IN, SIGNED_IN], False),
    "a sign-in that ended with its call": ([CALL, SIGN_IN, ENDED], False),
    "a question": ([QUESTION], True),
    "an answered question": ([QUESTION, ANSWER], False),
    "two, one answered": ([CALL, ASKED, QUESTION, ANSWER], True),
    "the same id twice": ([CALL, ENDED, CALL], False),
    "the same id twice, ended": ([CALL, CALL, ENDED], False),
    "over a resume": ([CALL, ASKED, *AGAIN], True),
    "answered after a resume": ([CALL, ASKED, *AGAIN, YES], False),
}


@pytest.mark.parametrize("story", STORIES)
def test_open_parts_are_those_that_a_walk_finds(story: str) -> None:
    events, waits = STORIES[story]
    state = SessionState("s")
    beginning = [e.SessionStarted(session="s", agent="a", model="m", cwd="/", by="t")]
    for pos, event in enumerate([*beginning, e.TurnStarted(turn="t", message=Message("x"), by="t"), *events], 1):
        state = fold(state, record(event, pos))
        if state.turns:
            assert [id(each) for each in state.turns[-1].open] == [id(each) for each in _expected(state.turns[-1])]
    assert waiting(state.turns[-1]) is waits


# -- children --------------------------------------------------------------------------------------------------------


def brute(host: Host) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for session in host.summaries():
        if session.parent is not None:
            found.setdefault(session.parent, set()).add(session.id)
    return found


def indexed(host: Host) -> dict[str, set[str]]:
    return {
        session.id: {each.id for each in below}
        for session in host.summaries()
        if (below := host.catalogue.children(session.id))
    }


async def test_the_index_of_children(open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over starts, deletions and a restart; and a deletion walks no other session."""
    host = await open_host()

    async def start(parent: Session | None = None) -> Session:
        return await host.start(by="t", cwd=str(tmp_path), parent=parent.id if parent else None)

    top, other = await start(), await start()
    low = await start(await start(top))
    await start(top)
    await start(other)
    assert indexed(host) == brute(host)
    assert [each.id for each in host.catalogue.descendants(top.id)] == [f"session-{number}" for number in (3, 4, 5)]
    assert low.id in {each.id for each in host.catalogue.descendants(top.id)}
    walked: list[str] = []
    walk = Catalogue.summaries

    def counted(catalogue: Catalogue) -> Sequence[Summary]:
        walked.extend(each.id for each in walk(catalogue))
        return walk(catalogue)

    monkeypatch.setattr(Catalogue, "summaries", counted)
    await host.delete(top.id, by="t")
    assert walked == [], "a deletion looks at its own children only"
    monkeypatch.setattr(Catalogue, "summaries", walk)
    assert {each.id for each in host.summaries()} == {other.id, "session-6"}
    assert indexed(host) == brute(host) == {other.id: {"session-6"}}
    host = await open_host()
    assert indexed(host) == brute(host) == {other.id: {"session-6"}}

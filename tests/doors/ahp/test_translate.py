"""Snapshots and actions are two ways to the same state: `fold(snapshot(n), actions(n..m)) = snapshot(m)`."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from portico.doors.ahp.connection.lifecycle import corrects
from portico.doors.ahp.view import snapshots, translate
from portico.doors.ahp.wire.actions import knows
from portico.doors.ahp.wire.versions import Dialect
from portico.kernel import events as e
from portico.kernel.closing import closing
from portico.kernel.decide.approval import OPTIONS
from portico.kernel.events import ErrorInfo, Event, Message, Record
from portico.kernel.fold import fold
from portico.kernel.state import CallPart, QuestionPart, SessionState, TextPart, TurnState
from portico.testing.ahp import reducer

Json = dict[str, Any]
VERSIONS = ["1", "0.5.1", "0.7.0", "0.9.0", "1.0.0"]


class Story:
    """Makes up a history that a host could have written."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.state = SessionState("session-1")
        self.records: list[Record] = []
        self.count = 0
        self.add(e.SessionStarted(session="session-1", agent="a", model="m", cwd="/w", by="x", uri="a:/1"))

    def add(self, *events: Event) -> None:
        for event in events:
            at = len(self.records) + 1
            record = Record(at, "session/session-1", at, 1000 * at, e.encode(event), event)
            self.records.append(record)
            fold(self.state, record)

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def pick(self, items: list[Any]) -> Any:
        return self.draw(st.sampled_from(items))

    def step(self) -> None:
        turn = self.state.active
        moves = [self.idle_move, self.queue_move] if turn is None else [self.turn_move] * 5 + [self.queue_move]
        self.pick([*moves, self.fact])()

    def fact(self) -> None:
        events: list[Event] = [
            e.SessionRenamed(title="T", by="x"),
            e.SessionRead(read=True, by="x"),
            e.SessionRead(read=False, by="x"),
            e.SessionArchived(archived=True, by="x"),
            e.SessionConfigured(values={"k": self.count}, by="x"),
            e.SessionModel(model="n", by="x"),
            e.ClientJoined(client="c1", tools=[]),
            e.ClientJoined(client="c2", tools=[]),
            e.ClientLeft(client="c1"),
            e.ClientKept(key="draft", by="x", value={"text": "d", "origin": {"kind": "user"}}),
            e.ClientKept(key="draft", by="x"),
        ]
        self.add(self.pick(events))

    def idle_move(self) -> None:
        last = self.state.turns[-1] if self.state.turns else None
        choice = self.pick(["start", "start", "resume", "cut"])
        if choice == "resume" and last is not None and last.resumable and not self.state.history_cut:
            self.add(e.TurnResumed(turn=last.id, by="x"))
        elif choice == "cut" and last is not None:
            self.add(e.SessionTruncated(turn=self.pick([None, last.id, self.state.turns[0].id]), by="x"))
        else:
            pending = self.pick([None, *(each.id for each in self.state.queue)])
            self.add(e.TurnStarted(turn=self.new("t"), message=Message("hi"), by="x", pending=pending))

    def imported(self) -> TurnState:
        """A turn of the agent's own program, as an import adds it."""
        began = 1000 * len(self.records)
        turn = TurnState(self.new("t"), Message("typed elsewhere"), "imported", began, 0)
        turn.parts = [
            TextPart(self.new("p"), self.pick(["text", "reasoning", "notice"]), "said", done=True),
            CallPart(self.new("c"), "bash", kind="execute", ready=True, input='{"command":"ls"}'),
        ]
        call = turn.parts[1]
        assert isinstance(call, CallPart)
        call.done, call.outcome = True, self.pick(["completed", "failed", "interrupted"])
        call.ok, call.output = call.outcome == "completed", "a.txt"
        turn.ended, turn.outcome = began + 500, "completed"
        return turn

    def queue_move(self) -> None:
        waiting = [each.id for each in self.state.queue]
        choice = self.pick(["add", "steer", "edit", "remove", "order"])
        if choice in ("add", "steer") or not waiting:
            kind: Any = "steer" if choice == "steer" else "queue"
            self.add(e.QueueAdded(pending=self.new("m"), kind=kind, message=Message("later"), by="x"))
            return
        ident = self.pick(waiting)
        pending = self.state.pending(ident)
        assert pending is not None
        if choice == "edit":
            self.add(e.QueueEdited(pending=ident, message=Message("other"), by="x", kind=pending.kind))
        elif choice == "remove":
            self.add(e.QueueRemoved(pending=ident, by="x", kind=pending.kind))
        else:
            self.add(e.QueueReordered(order=[ident, "nonsense"], by="x"))

    def turn_move(self) -> None:
        turn = self.state.active
        assert turn is not None
        parts = [part for part in turn.parts if not part.done]
        if not any(isinstance(part, TextPart | QuestionPart) for part in parts) and not self.draw(st.integers(0, 4)):
            self.correct(turn)
            return
        if parts and self.draw(st.integers(0, 3)):
            part = self.pick(parts)
            if isinstance(part, TextPart):
                self.text_move(turn.id, part)
            elif isinstance(part, CallPart):
                self.call_move(turn.id, part)
            else:
                self.question_move(turn.id, part)
            return
        self.pick([self.open_text, self.open_call, self.open_question, self.usage, self.end])(turn.id)

    def open_text(self, turn: str) -> None:
        kind: Any = self.pick(["text", "reasoning", "notice"])
        part = self.new("p")
        self.add(e.PartStarted(turn=turn, part=part, kind=kind), e.PartDelta(turn=turn, part=part, text="x"))
        if kind == "notice":
            self.add(e.PartEnded(turn=turn, part=part, text="x"))

    def text_move(self, turn: str, part: TextPart) -> None:
        others = [each for each in self.state.turns[-1].parts if not each.done and isinstance(each, TextPart)]
        if self.draw(st.booleans()):
            self.add(e.PartDelta(turn=turn, part=part.id, text="more"))
        elif len(others) == 1 and self.draw(st.booleans()) and not self._asks():
            self.add(e.PartEnded(turn=turn, part=part.id, text="truth", replaces=len(part.text)))
        else:
            self.add(e.PartEnded(turn=turn, part=part.id, text=part.text))

    def _asks(self) -> bool:
        return any(isinstance(part, QuestionPart) and not part.done for part in self.state.turns[-1].parts)

    def correct(self, turn: TurnState) -> None:
        """A part that has ended said something else, or nothing: not while another one grows."""
        texts = [part for part in turn.parts if isinstance(part, TextPart) and part.kind != "notice" and part.text]
        if texts:
            part = self.pick(texts[-2:])
            text = self.pick(["", "truth"])
            self.add(e.PartEnded(turn=turn.id, part=part.id, text=text, replaces=len(part.text)))

    def open_call(self, turn: str) -> None:
        owner, kind = self.pick([None, "c1"]), self.pick(["other", "execute", "read"])
        self.add(e.ToolStarted(turn=turn, call=self.new("c"), tool="tool", owner=owner, kind=kind))

    def call_move(self, turn: str, call: CallPart) -> None:
        if call.approval is not None:
            self.answer(turn, call)
            return
        choices = ["output", "content", "end", "ask", "decide", "result"] if call.ready else ["input", "ready", "end"]
        match self.pick(choices):
            case "input":
                self.add(e.ToolInput(turn=turn, part=call.id, text="{}"))
            case "ready":
                given = self.pick(['{"a":1}', '{"command":"ls"}', '{"cmd":["rm","\u200b*"]}', ""])
                ready = e.ToolReady(turn=turn, call=call.id, input=given, title=self.pick(["", "Title"]))
                self.pick([lambda: self.add(ready), lambda: self.ask(turn, call, ready)])()
            case "output":
                text = self.pick(["out", "long" * 1500])
                self.add(e.ToolOutput(turn=turn, part=call.id, text=text))
            case "content":
                self.add(
                    e.ToolContent(
                        turn=turn, call=call.id, content=[{"type": "terminal", "resource": "x:/t", "title": "t"}]
                    )
                )
            case "ask":
                self.ask(turn, call)
            case "result":
                self.ask(turn, call, result=True)
            case "decide":
                allowed = self.draw(st.booleans())
                self.add(e.ToolDecided(turn=turn, call=call.id, allowed=allowed, by="policy", rule="r"))
                if not allowed:
                    self.refused(turn, call)
            case "end":
                outcome: Any = self.pick(["completed", "failed", "cancelled"])
                error = None if outcome == "completed" else ErrorInfo("x", "y")
                ended = e.ToolEnded(
                    turn=turn, call=call.id, ok=outcome == "completed", output=call.output, error=error, outcome=outcome
                )
                self.add(ended)

    def ask(self, turn: str, call: CallPart, *before: Event, result: bool = False) -> None:
        ready = [event.input for event in before if isinstance(event, e.ToolReady)]
        kind = self.pick(["write", "shell", "other"])
        asked = e.ApprovalAsked(
            turn=turn,
            approval=self.new("a"),
            call=call.id,
            tool="tool",
            title="May I?",
            kind=kind,
            command=self.pick([None, "ls", "l\u200bs"]) if kind == "shell" else None,
            path=self.pick([None, "/w/a*b"]),
            input=ready[0] if ready else call.input,
            expires=0,
            options=OPTIONS,
            editable=True,
            result=result,
        )
        self.add(*before, asked)

    def answer(self, turn: str, call: CallPart) -> None:
        approval = call.approval
        assert approval is not None
        allowed = self.draw(st.booleans())
        option = "allow-once" if allowed else "deny"
        edited = self.pick([None, '{"b":2}', '{"command":"pwd"}']) if allowed and not approval.result else None
        answered = e.ApprovalAnswered(
            turn=turn, approval=approval.id, allowed=allowed, by="x", option=option, input=edited
        )
        self.add(answered)
        if approval.result:
            outcome: Any = "completed" if allowed else "cancelled"
            self.add(e.ToolEnded(turn=turn, call=call.id, ok=allowed, output=call.output, outcome=outcome))
        elif not allowed:
            self.refused(turn, call)

    def refused(self, turn: str, call: CallPart) -> None:
        error = ErrorInfo("denied", "no")
        self.add(e.ToolEnded(turn=turn, call=call.id, ok=False, error=error, outcome="cancelled"))

    def open_question(self, turn: str) -> None:
        self.add(e.QuestionAsked(turn=turn, question=self.new("q"), text="Which?"))

    def question_move(self, turn: str, part: QuestionPart) -> None:
        answer = {"state": "draft", "value": {"kind": "text", "value": "z"}}
        choice = self.pick(["draft", "undraft", "answer"])
        if choice == "answer":
            response: Any = self.pick(["accept", "decline"])
            self.add(e.QuestionAnswered(turn=turn, question=part.id, response=response, by="x", answers={}))
        else:
            given = answer if choice == "draft" else None
            self.add(e.QuestionDrafted(turn=turn, question=part.id, field="answer", by="x", answer=given))

    def usage(self, turn: str) -> None:
        self.add(e.UsageReported(turn=turn, input=1, output=2, model="m"))

    def end(self, turn: str) -> None:
        outcome: Any = self.pick(["completed", "failed", "cancelled", "interrupted"])
        error = ErrorInfo("x", "broken") if outcome in ("failed", "interrupted") else None
        self.add(*closing(self.state, outcome, "x"), e.TurnEnded(turn=turn, outcome=outcome, error=error, by="x"))


@st.composite
def histories(draw: Any) -> list[list[Record]]:
    """A history in the batches it was committed in; what one `append` wrote stays together."""
    story = Story(draw)
    batches = []
    for _ in range(draw(st.integers(1, 25))):
        before = len(story.records)
        story.step()
        batches.append(story.records[before:])
    return [story.records[:1], *batches]


def snapshot(state: SessionState, dialect: Dialect) -> Json:
    config = {"schema": {"type": "object", "properties": {}}, "values": state.config}
    if dialect.seed:
        return snapshots.seed_session(state, [], config, dialect)
    return snapshots.chat(state, dialect)


def play(shown: Json, records: list[Record], state: SessionState, dialect: Dialect) -> Json:
    kind: Any = "session" if dialect.seed else "chat"
    for record in records:
        for said in translate.conversation(record, state, dialect.seed):
            action = {"type": f"{kind}/{said.name}", **said.fields}
            older = said.before is None or not dialect.since(said.before)
            if knows(dialect, action["type"]) and older:
                shown = reducer.reduce(kind, shown, action, dialect)
    return shown


def comparable(shown: Json) -> Json:
    """Without what actions cannot carry: up to 0.8 times are the reader's own; titles are in the session's list."""
    copied = copy.deepcopy({key: value for key, value in shown.items() if key not in ("modifiedAt", "title")})
    copied.get("summary", {}).pop("modifiedAt", None)
    return copied


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_live(version: str, data: Any) -> None:
    """A client that hears every batch as it is committed."""
    batches = data.draw(histories())
    dialect = Dialect(version, lambda: 0)
    state = SessionState("session-1")
    start = data.draw(st.integers(1, len(batches)))
    shown: Json = {}
    for index, batch in enumerate(batches):
        for record in batch:
            fold(state, record)
        if index + 1 == start:
            shown = copy.deepcopy(snapshot(state, dialect))
        elif index + 1 > start:
            shown = play(shown, batch, state, dialect)
            assert comparable(shown) == comparable(snapshot(state, dialect)), [r.event for r in batch]


@pytest.mark.parametrize("version", ["0.9.0", "1.0.0"])
@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_replay(version: str, data: Any) -> None:
    """A client that was away hears old records with today's state, and ends there all the same."""
    batches = data.draw(histories())
    dialect = Dialect(version, lambda: 0)
    state = SessionState("session-1")
    start = data.draw(st.integers(1, len(batches)))
    for batch in batches[:start]:
        for record in batch:
            fold(state, record)
    shown = copy.deepcopy(snapshot(state, dialect))
    missed = [record for batch in batches[start:] for record in batch]
    assume(not any(map(corrects, missed)))  # these clients get a snapshot
    for record in missed:
        fold(state, record)
    assert comparable(play(shown, missed, state, dialect)) == comparable(snapshot(state, dialect))


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_imported_turns(version: str, read: bool, data: Any) -> None:
    """A client that shows the session missed the turns that were imported from the agent's own program."""
    story, dialect = Story(data.draw), Dialect(version, lambda: 0)
    story.add(
        e.TurnStarted(turn="t-first", message=Message("hi"), by="x"), e.TurnEnded(turn="t-first", outcome="completed")
    )
    story.add(e.SessionRead(read=read, by="x"))
    shown, known = copy.deepcopy(snapshot(story.state, dialect)), len(story.records)
    story.add(e.HistoryCopied(turns=[msgspec.to_builtins(story.imported()) for _ in range(2)]))
    live = play(copy.deepcopy(shown), story.records[known:], story.state, dialect)
    assert comparable(live) == comparable(snapshot(story.state, dialect))
    story.add(e.TurnStarted(turn="t9", message=Message("and here"), by="x"))
    later = play(shown, story.records[known:], story.state, dialect)
    assert comparable(later) == comparable(snapshot(story.state, dialect))

"""All decisions about a session as one machine, without a host: random commands are decided, their events folded, and
after each the promises are checked. A decision changes nothing by itself; a refusal leaves no trace; one turn runs at a
time; no message is lost or doubled; the same events give the same state again."""

import itertools
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from portico.features.folders.commands import AddFolder, RemoveFolder
from portico.features.people.commands import ShareSession, UnshareSession
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.closing import closing
from portico.kernel.command_turn import command_line
from portico.kernel.decide import decide
from portico.kernel.decide.decision import Context, Outcome
from portico.kernel.decide.turn import start_next
from portico.kernel.errors import (
    BadRequest,
    Conflict,
    LogUnavailable,
    NotFound,
    PorticoError,
    SessionIsClosed,
    TurnInProgress,
)
from portico.kernel.events import Message, Record
from portico.kernel.fold import fold
from portico.kernel.state import SessionState

S = "s"
ADA = c.Caller("token-1", "ada", frozenset(c.SCOPES))
IDS = st.sampled_from(["t1", "t2", "t9", "m1", "m2", "m9", "mine"])
FOLDERS = st.sampled_from(["/work", "/lib"])
TEXTS = st.sampled_from(["hello", "fix it", "a\nb", "why?", " "])
TROUBLE = st.sampled_from(["", "", "", "", "full", "stopping"])


def again(records: list[e.Event]) -> SessionState:
    """The state that these events give to a reader who comes later."""
    state = SessionState(S)
    for pos, event in enumerate(records, 1):
        fold(state, Record(pos, "session/s", pos, pos, e.encode(event), event))
    return state


def shown(state: SessionState) -> bytes:
    return msgspec.json.encode(state)


class Decisions(RuleBasedStateMachine):
    queued = Bundle("queued")

    @initialize()
    def begin(self) -> None:
        self.events: list[e.Event] = []
        self.state = SessionState(S)
        self.numbers = itertools.count(1)
        self.said: dict[str, str] = {}
        """Every message that was accepted, by what it said: where it has to be."""
        self.take(e.SessionStarted(session=S, agent="play", model="", cwd="/work", by="ada"))

    def take(self, *events: e.Event) -> None:
        for event in events:
            self.events.append(event)
            pos = len(self.events)
            fold(self.state, Record(pos, "session/s", pos, pos, e.encode(event), event))

    def new_id(self, prefix: str) -> str:
        return f"{prefix}-{next(self.numbers)}"

    def do(self, command: c.Command, **given: Any) -> Outcome | PorticoError:
        """Decides, and folds what was decided; either way the decision itself changes nothing."""
        before = shown(self.state)
        try:
            outcome = decide(self.state, command, Context(ADA, self.new_id, **given))
        except PorticoError as error:
            assert shown(self.state) == before
            return error
        assert shown(self.state) == before
        self.take(*outcome.events)
        return outcome

    # -- messages ----------------------------------------------------------------------------------------------

    @rule(text=TEXTS, busy=st.sampled_from(["queue", "refuse", "steer"]), trouble=TROUBLE)
    def send(self, text: str, busy: Any, trouble: str) -> None:
        idle, waits, closed = self.state.active is None, bool(self.state.queue), self.state.closed
        unique = f"{text} {next(self.numbers)}" if text.strip() else text
        given = {"found": {}, "full": trouble if trouble == "full" else "", "stopping": trouble == "stopping"}
        done = self.do(c.SendMessage(session=S, text=unique, busy=busy), **given)
        if not text.strip():
            assert isinstance(done, BadRequest)
        elif closed:
            assert isinstance(done, SessionIsClosed)
        elif idle and (busy != "queue" or not waits):
            assert isinstance(done, LogUnavailable) is bool(trouble)
        elif busy == "refuse":
            assert isinstance(done, TurnInProgress)
        if isinstance(done, Outcome):
            assert isinstance(done.answer, c.TurnBegun | c.Queued)
            self.said[unique] = "somewhere"
            if isinstance(done.answer, c.Queued):
                assert self.state.queue[done.answer.position - 1].id == done.answer.pending
            if idle and waits and busy == "queue":
                assert isinstance(done.answer, c.Queued), "it does not overtake what waits"

    @rule(target=queued, text=TEXTS, kind=st.sampled_from(["queue", "steer"]))
    def queue(self, text: str, kind: Any) -> str:
        unique = f"{text} {next(self.numbers)}"
        done = self.do(c.QueueMessage(session=S, message=Message(unique), kind=kind), found={})
        if self.state.closed:
            assert isinstance(done, SessionIsClosed)
            return "nothing"
        assert isinstance(done, Outcome)
        self.said[unique] = "somewhere"
        assert self.state.queue[-1].id == done.answer.pending
        return str(done.answer.pending)

    @rule(ident=queued | IDS, text=TEXTS)
    def edit(self, ident: str, text: str) -> None:
        was = self.state.pending(ident)
        old = was.message.text if was is not None else ""
        unique = f"{text} {next(self.numbers)}"
        done = self.do(c.EditQueued(session=S, pending=ident, text=unique), found={})
        if was is None:
            assert isinstance(done, NotFound)
        else:
            assert isinstance(done, Outcome)
            self.said.pop(old)
            self.said[unique] = "somewhere"

    @rule(ident=queued | IDS)
    def remove(self, ident: str) -> None:
        was = self.state.pending(ident)
        done = self.do(c.RemoveQueued(session=S, pending=ident))
        if was is None:
            assert isinstance(done, NotFound)
        else:
            self.said.pop(was.message.text)
            assert self.state.pending(ident) is None

    @rule(order=st.lists(queued | IDS, max_size=4), lenient=st.booleans())
    def reorder(self, order: list[str], lenient: bool) -> None:
        before = [each.id for each in self.state.queue]
        done = self.do(c.ReorderQueue(session=S, order=order, lenient=lenient))
        after = [each.id for each in self.state.queue]
        assert sorted(before) == sorted(after)
        if isinstance(done, NotFound):
            assert not lenient
            assert not set(order) <= set(before)
            assert before == after
        else:
            named = [ident for ident in dict.fromkeys(order) if ident in before]
            assert after[: len(named)] == named

    # -- turns -------------------------------------------------------------------------------------------------

    @rule(outcome=st.sampled_from(["completed", "failed", "cancelled", "interrupted"]))
    def end(self, outcome: Any) -> None:
        if self.state.active is None:
            return
        turn = self.state.active.id
        self.take(*closing(self.state, outcome, "host"), e.TurnEnded(turn=turn, outcome=outcome))
        assert self.state.active is None

    @rule(trouble=TROUBLE)
    def next_of_the_queue(self, trouble: str) -> None:
        stopping = trouble == "stopping"
        waits, active, closed, held = len(self.state.queue), self.state.active, self.state.closed, self.state.queue_held
        steering = [each.id for each in self.state.queue if each.kind == "steer"]
        first = (steering or [each.id for each in self.state.queue] or [""])[0]
        outcome = start_next(self.state, Context(ADA, self.new_id, stopping=stopping))
        self.take(*outcome.events)
        begins = bool(waits) and active is None and not (closed or held or stopping)
        assert bool(outcome.events) is begins
        assert len(self.state.queue) == waits - begins
        assert not begins or self.state.pending(first) is None, "what was meant for steering goes first"

    @rule()
    def crash(self) -> None:
        """What the next start writes down: the turn was interrupted, and what waits is held until somebody looks."""
        self.end("interrupted")
        if self.state.queue:
            self.take(e.QueueHeld(held=True, by="host"))

    @rule()
    def release(self) -> None:
        self.do(c.ReleaseQueue(session=S))
        assert not self.state.queue_held

    @rule(turn=st.none() | IDS)
    def resume(self, turn: str | None) -> None:
        last = self.state.turns[-1] if self.state.turns else None
        can = last is not None and last.resumable and turn in (None, last.id) and command_line(last.message) is None
        done = self.do(c.ResumeTurn(session=S, turn=turn))
        if self.state.closed:
            assert isinstance(done, SessionIsClosed)
        else:
            assert isinstance(done, Outcome if can else Conflict)

    @rule(line=st.sampled_from(["make", " "]))
    def run(self, line: str) -> None:
        busy, closed = self.state.active is not None, self.state.closed
        done = self.do(c.RunCommand(session=S, line=line))
        if not line.strip():
            assert isinstance(done, BadRequest)
        elif closed or busy:
            assert isinstance(done, SessionIsClosed if closed else TurnInProgress)
        else:
            assert isinstance(done, Outcome)

    # -- the session -------------------------------------------------------------------------------------------

    @rule(title=st.sampled_from(["", " ", "New name ", "x" * 600]))
    def rename(self, title: str) -> None:
        done = self.do(c.RenameSession(session=S, title=title))
        if isinstance(done, Outcome):
            assert self.state.title == title.strip()
        else:
            assert isinstance(done, BadRequest)

    @rule()
    def close(self) -> None:
        if self.state.active is None:  # `do` cancels a running turn first
            self.do(c.CloseSession(session=S))
            assert self.state.closed

    @rule()
    def reopen(self) -> None:
        self.do(c.ReopenSession(session=S))
        assert not self.state.closed

    @rule(folder=FOLDERS)
    def add_folder(self, folder: str) -> None:
        self.do(AddFolder(session=S, folder=folder), found=folder)
        assert folder in (self.state.cwd, *self.state.folders)

    @rule(folder=FOLDERS, replacement=st.none() | FOLDERS)
    def remove_folder(self, folder: str, replacement: str | None) -> None:
        first, busy = self.state.cwd, self.state.active is not None
        command = RemoveFolder(session=S, folder=folder, replacement=replacement)
        done = self.do(command, found=(replacement, []))
        if folder == first and (replacement is None or busy):
            assert isinstance(done, Conflict)
            assert self.state.cwd == first
        else:
            assert isinstance(done, Outcome)
            assert folder not in self.state.folders or folder == replacement

    @rule(person=st.sampled_from(["bob", "*"]), rights=st.lists(st.sampled_from(["read", "drive"]), max_size=2))
    def share_and_unshare(self, person: str, rights: Any) -> None:
        done = self.do(ShareSession(session=S, person=person, rights=rights))
        if rights:
            assert self.state.shares[person] == list(dict.fromkeys(rights))
        else:
            assert isinstance(done, BadRequest)
            self.do(UnshareSession(session=S, person=person))
            assert person not in self.state.shares

    @rule(client=st.sampled_from(["editor", "page"]), stays=st.booleans())
    def join_and_leave(self, client: str, stays: bool) -> None:
        assert isinstance(self.do(c.JoinSession(session=S, client=client)), Outcome)
        assert [each.id for each in self.state.clients].count(client) == 1
        if not stays:
            self.do(c.LeaveSession(session=S, client=client))
            assert all(each.id != client for each in self.state.clients)

    # -- what always holds -------------------------------------------------------------------------------------

    @invariant()
    def one_turn_at_a_time(self) -> None:
        running = [turn for turn in self.state.turns if turn.outcome is None]
        assert running == ([self.state.active] if self.state.active is not None else [])

    @invariant()
    def no_message_is_lost_or_doubled(self) -> None:
        places = [turn.message.text for turn in self.state.turns] + [each.message.text for each in self.state.queue]
        for text in self.said:
            assert places.count(text) == 1, text

    @invariant()
    def ids_are_never_given_twice(self) -> None:
        turns = [turn.id for turn in self.state.turns]
        waiting = [each.id for each in self.state.queue]
        assert len(set(turns)) == len(turns)
        assert len(set(waiting)) == len(waiting)

    def teardown(self) -> None:
        """The same events give the same state to whoever reads them later."""
        assert shown(again(self.events)) == shown(self.state)


TestDecisions = Decisions.TestCase
TestDecisions.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)

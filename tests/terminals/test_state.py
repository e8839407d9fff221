"""What is known of a terminal from its events: its size, its folder, whose it is, and what it has shown."""

from typing import Any

import pytest

from portico.features.terminals import events as te
from portico.features.terminals.state import TerminalState
from portico.kernel.events import Event, Json, Record
from portico.workspace.scrollback import Scrollback, ShellCommand

CLIENT: Json = {"kind": "client", "clientId": "c1"}
SESSION: Json = {"kind": "session", "session": "x:/1"}


def terminal(*events: Event, claim: Json = CLIENT, cwd: str = "/w", **more: Any) -> TerminalState:
    started = te.TerminalStarted(terminal="t1", title="zsh", cwd=cwd, claim=claim, by="me", **more)
    known = TerminalState(started)
    for pos, event in enumerate((started, *events), 1):
        known.apply(Record(pos, known.channel, pos, pos * 1000, b"", event))
    return known


def data(text: str) -> Event:
    return te.TerminalData(turn="", part="t1", text=text)


AFTER: dict[str, tuple[Event, dict[str, Any]]] = {
    "another size": (te.TerminalResized(cols=100, rows=30, by="me"), {"cols": 100, "rows": 30}),
    "another title": (te.TerminalTitled(title="make", by="me"), {"title": "make"}),
    "another folder": (te.TerminalMoved(cwd="/x"), {"cwd": "/x"}),
    "commands are known": (te.TerminalDetects(), {"detects": True}),
    "its end": (te.TerminalExited(code=3), {"exited": True, "exit_code": 3}),
    "its end by a signal": (te.TerminalExited(code=None), {"exited": True, "exit_code": None}),
}


@pytest.mark.parametrize(("event", "fields"), AFTER.values(), ids=AFTER)
def test_what_an_event_changes(event: Event, fields: dict[str, Any]) -> None:
    before, after = vars(terminal()), vars(terminal(event))
    changed = {name for name in after if after[name] != before[name] and name not in ("pos", "shown")}
    assert {name: after[name] for name in changed} == {
        name: value for name, value in fields.items() if before[name] != value
    }
    assert after["pos"] == 2


def test_whoever_shows_it_goes_on_from_its_position() -> None:
    known = terminal(data("a"), data("b"))
    assert (known.pos, known.started, known.since, known.shown.text()) == (3, 1000, 2000, "ab")


@pytest.mark.parametrize(
    ("before", "claim", "session", "after"),
    [
        (CLIENT, CLIENT, None, "session-1"),
        (CLIENT, SESSION, "session-2", "session-2"),
        (SESSION, CLIENT, None, None),
        (SESSION, SESSION, "session-2", "session-2"),
    ],
    ids=["from a client to another", "a session takes it", "a session gives it up", "another session takes it"],
)
def test_a_claim_moves_it_between_sessions(before: Json, claim: Json, session: str | None, after: str | None) -> None:
    """One that was only opened from a session still ends with it."""
    known = terminal(te.TerminalClaimed(claim=claim, session=session, by="me"), claim=before, session="session-1")
    assert (known.claim, known.session) == (claim, after)


def test_what_was_cleared_is_gone() -> None:
    assert terminal(data("a"), te.TerminalCleared(by="me"), data("b")).shown.text() == "b"


@pytest.mark.parametrize(
    ("upto", "kept", "since"),
    [(3, 3, None), (2, 2, 4000)],
    ids=["all of it", "all but the last piece"],
)
def test_what_a_whole_event_holds_may_go(upto: int, kept: int, since: int | None) -> None:
    known = terminal(data("a"), data("b"), te.TerminalShown(upto=upto, text="ab"))
    assert (known.kept, known.since) == (kept, since)


def command(ident: str, line: str = "ls") -> Event:
    return te.TerminalCommand(command=ident, line=line)


def ended(ident: str, code: int = 0) -> Event:
    return te.TerminalCommandEnded(command=ident, code=code, milliseconds=1500)


def test_output_belongs_to_the_command_that_runs() -> None:
    known = terminal(data("$ "), command("1"), data("a"), ended("1", 2), data("$ "), command("2"), data("b"))
    first, one, between, two = known.shown.parts
    assert isinstance(one, ShellCommand)
    assert isinstance(two, ShellCommand)
    assert (one.output, one.complete, one.exit_code, one.seconds) == ("a", True, 2, 1.5)
    assert (two.output, two.complete, two.exit_code) == ("b", False, None)
    assert [getattr(each, "value", None) for each in (first, between)] == ["$ ", "$ "]


def test_the_end_of_a_command_that_nobody_knows_changes_nothing() -> None:
    known = terminal(command("1"), ended("9"))
    (one,) = known.shown.parts
    assert isinstance(one, ShellCommand)
    assert not one.complete


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["a" * 10], "a" * 10),
        (["a" * 6, "b" * 5], "a" * 6 + "b" * 5),
        (["a" * 6, "b" * 6], "a" * 4 + "b" * 6),
        (["a" * 12], "a" * 10),
        (["a" * 3, "b" * 20], "b" * 10),
        ([f"{number % 10}" for number in range(30)], "0123456789"),
    ],
    ids=[
        "as much as there is room for",
        "a tenth more",
        "the oldest goes",
        "a piece too long",
        "all but the newest",
        "bit by bit",
    ],
)
def test_the_oldest_of_a_long_output_goes_first(pieces: list[str], text: str) -> None:
    """In steps of a tenth."""
    shown = Scrollback(limit=10)
    for piece in pieces:
        shown.add(piece)
    assert shown.text().endswith(text[-5:])
    assert shown.size == len(shown.text()) <= 11
    assert "".join(pieces).endswith(shown.text())


def test_old_commands_go_whole_and_the_newest_stays() -> None:
    shown = Scrollback(limit=10)
    for number in range(9):
        shown.start(ShellCommand(str(number), "make", 0.0))
        shown.add("done")
    found = [each for each in shown.parts if isinstance(each, ShellCommand)]
    assert [each.command_id for each in found] in (["8"], ["7", "8"])
    assert (found[-1].line, found[-1].output) == ("make", "done")

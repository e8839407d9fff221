"""Who may do what with a terminal: every command x every holder x every caller, without a host."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico import limits
from portico.features.terminals import events as te
from portico.features.terminals.commands import (
    ClaimTerminal,
    ClearTerminal,
    CloseTerminal,
    RenameTerminal,
    ResizeTerminal,
    TypeInput,
)
from portico.features.terminals.decide import DECISIONS, TerminalContext, check_new, decide
from portico.features.terminals.state import TerminalState
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits as kernel_limits
from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, Forbidden, PorticoError, RateLimited
from portico.kernel.events import Json, Record, encode
from portico.workspace.terminal import INPUT_MAX, SIDE_MAX

SCOPES = frozenset(c.SCOPES)
CALLERS = {
    "token": c.Caller("token-1", "ada", SCOPES),
    "editor": c.Caller("token-1", "ada", SCOPES, client="editor"),
    "other": c.Caller("token-2", "bob", SCOPES, client="other"),
    "host": c.Caller.inside("host"),
}
HOLDERS: dict[str, Json] = {
    "token": {"kind": "client", "clientId": "token:ada"},
    "editor": {"kind": "client", "clientId": "editor"},
    "session": {"kind": "session", "session": "session-1"},
    "nobody": {},
}
COMMANDS: list[c.Command] = [
    TypeInput(terminal="t", data="ls"),
    ResizeTerminal(terminal="t", cols=100, rows=30),
    ClaimTerminal(terminal="t", claim={"kind": "client", "clientId": "x"}),
    RenameTerminal(terminal="t", title="x"),
    ClearTerminal(terminal="t"),
    CloseTerminal(terminal="t"),
]


def started(**given: object) -> te.TerminalStarted:
    return te.TerminalStarted(terminal="t", **{"title": "sh", "cwd": "/", "claim": {}, "by": "ada", **given})  # type: ignore[arg-type]


def test_the_table_has_every_decision() -> None:
    assert {type(each) for each in COMMANDS} == set(DECISIONS)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("name", CALLERS)
def test_only_who_holds_it_uses_it(command: c.Command, holder: str, connected: bool, name: str) -> None:
    caller = CALLERS[name]
    state = TerminalState(started(claim=HOLDERS[holder]))
    closes, hands_on = isinstance(command, CloseTerminal), isinstance(command, ClaimTerminal)
    if holder != "editor" or name == "editor":
        free = True
    elif caller.client:
        free = not connected
    else:
        free = closes or (name == "host" and hands_on)
    context = TerminalContext(caller, {"editor", "other"} if connected else {"other"})
    if free:
        assert all(event.by == caller.by for event in decide(state, command, context).events)  # type: ignore[attr-defined]
    else:
        with pytest.raises(Forbidden):
            decide(state, command, context)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("name", ["token", "editor", "other"])
def test_what_an_agent_runs_is_watched_and_closed(command: c.Command, name: str) -> None:
    state = TerminalState(started(command=["make"]))
    if isinstance(command, CloseTerminal):
        assert not decide(state, command, TerminalContext(CALLERS[name])).events
        return
    with pytest.raises(Forbidden):
        decide(state, command, TerminalContext(CALLERS[name]))


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (ResizeTerminal(terminal="t", cols=0, rows=9), BadRequest),
        (ResizeTerminal(terminal="t", cols=9, rows=SIDE_MAX + 1), BadRequest),
        (RenameTerminal(terminal="t", title="  "), BadRequest),
        (TypeInput(terminal="t", data="x" * (INPUT_MAX + 1)), BadRequest),
    ],
)
def test_refusals(command: c.Command, error: type[PorticoError]) -> None:
    with pytest.raises(error):
        decide(TerminalState(started()), command, TerminalContext(CALLERS["token"]))


def test_nothing_is_typed_into_what_has_ended() -> None:
    state = TerminalState(started())
    fold(state, te.TerminalExited(code=0))
    with pytest.raises(Conflict):
        decide(state, COMMANDS[0], TerminalContext(CALLERS["token"]))


@pytest.mark.parametrize(
    ("count", "names", "given", "error"),
    [
        (0, [], {}, None),
        (1, ["t:/1"], {"uri": "t:/1"}, AlreadyExists),
        (limits.TERMINALS, [], {}, RateLimited),
        (0, [], {"title": "x" * (kernel_limits.TITLE_CHARS + 1)}, BadRequest),
        (0, [], {"cols": 0}, BadRequest),
    ],
)
def test_one_more(count: int, names: list[str], given: Json, error: type[PorticoError] | None) -> None:
    if error is None:
        check_new(count, names, started(**given))
        return
    with pytest.raises(error):
        check_new(count, names, started(**given))


def fold(state: TerminalState, event: e.Event) -> None:
    state.apply(Record(state.pos + 1, "terminal/t", state.pos + 1, 0, encode(event), event))


@given(st.lists(st.tuples(st.integers(1, SIDE_MAX), st.integers(1, SIDE_MAX))))
def test_a_resize_is_written_down_when_it_is_news(sizes: list[tuple[int, int]]) -> None:
    state = TerminalState(started())
    for cols, rows in sizes:
        before = (state.cols, state.rows)
        decision = decide(state, ResizeTerminal(terminal="t", cols=cols, rows=rows), TerminalContext(CALLERS["token"]))
        assert bool(decision.events) is (before != (cols, rows))
        for event in decision.events:
            fold(state, event)
        assert (state.cols, state.rows) == (cols, rows)

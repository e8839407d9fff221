"""Who may use a terminal, and what a command about one becomes: pure functions of state, command and caller.

A terminal belongs to whom it is claimed for. An editor that is connected and holds one is the only one to type into
it, to resize, rename, clear or hand it on. While it is away another editor may; a token can watch it and close it. A
terminal that a session or a token holds is everybody's who has the scope. What an agent runs in a terminal can be
watched and closed, by anybody with the scope. The host itself, when an editor has left for good, hands on what it held.
"""

from collections.abc import Callable, Collection, Container
from typing import Any

from msgspec import Struct

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
from portico.features.terminals.state import TerminalState
from portico.kernel import commands as c
from portico.kernel import limits as kernel_limits
from portico.kernel.decide.decision import Outcome
from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, Forbidden, RateLimited
from portico.workspace.terminal import INPUT_MAX, check_size


class TerminalContext(Struct, frozen=True):
    caller: c.Caller
    connected: Container[str] = ()
    """The clients that are connected, by their own ids."""

    @property
    def by(self) -> str:
        return self.caller.by


def decide(state: TerminalState, command: c.Command, context: TerminalContext) -> Outcome:
    return DECISIONS[type(command)](state, command, context)


def check_new(count: int, names: Collection[str], started: te.TerminalStarted) -> None:
    """Check whether one more terminal may start in addition to `count` others with these names."""
    if started.uri is not None and started.uri in names:
        raise AlreadyExists(f"There is a terminal {started.uri!r} already.")
    if count >= limits.TERMINALS:
        raise RateLimited(f"There are {limits.TERMINALS} terminals; close some.")
    if len(started.title) > kernel_limits.TITLE_CHARS:
        raise BadRequest(f"A title has at most {kernel_limits.TITLE_CHARS} characters.", field="title")
    check_size(started.cols, started.rows)


def _resize(state: TerminalState, command: ResizeTerminal, context: TerminalContext) -> Outcome:
    _check_free(state, context)
    check_size(command.cols, command.rows)
    if (command.cols, command.rows) == (state.cols, state.rows):
        return Outcome()
    return Outcome([te.TerminalResized(cols=command.cols, rows=command.rows, by=context.by)])


def _claim(state: TerminalState, command: ClaimTerminal, context: TerminalContext) -> Outcome:
    if context.caller.outside:
        _check_free(state, context)
    return Outcome([te.TerminalClaimed(claim=command.claim, by=context.by, session=command.session)])


def _rename(state: TerminalState, command: RenameTerminal, context: TerminalContext) -> Outcome:
    _check_free(state, context)
    if not command.title.strip():
        raise BadRequest("A title has at least one character.", field="title")
    return Outcome([te.TerminalTitled(title=command.title[: kernel_limits.TITLE_CHARS], by=context.by)])


def _clear(state: TerminalState, command: ClearTerminal, context: TerminalContext) -> Outcome:
    _check_free(state, context)
    return Outcome([te.TerminalCleared(by=context.by)])


def _type(state: TerminalState, command: TypeInput, context: TerminalContext) -> Outcome:
    """Input is not recorded: it may be a password."""
    _check_free(state, context)
    if state.exited:
        raise Conflict(f"The terminal {state.id!r} has ended; open another one.")
    if len(command.data) > INPUT_MAX:
        raise BadRequest("That is too much to type at once.", field="data")
    return Outcome(answer=c.Done())


def _close(state: TerminalState, command: CloseTerminal, context: TerminalContext) -> Outcome:
    """Close a terminal, also one that an agent uses. Another editor cannot close one that a connected editor holds."""
    if context.caller.client and not state.command:
        _check_free(state, context)
    return Outcome(answer=c.Done())


def holder(state: TerminalState, client: str, connected: Container[str]) -> str | None:
    """Return who prevents this client (none: a token) from using the terminal."""
    if state.command:
        return "An agent"
    owner = str(state.claim.get("clientId")) if state.claim.get("kind") == "client" else ""
    editor = owner not in ("", client) and not owner.startswith("token:")
    if not editor or (client and owner not in connected):
        return None
    return "Another client" if client else "An editor"


def _check_free(state: TerminalState, context: TerminalContext) -> None:
    client = context.caller.client
    who = holder(state, client, context.connected)
    if who is not None and state.command and client:
        raise Forbidden("An agent runs a command in this terminal: it can be watched and closed.")
    if who is not None:
        raise Forbidden(f"{who} holds the terminal {state.id!r}: watch it here, or open another one.")


DecidedCommand = TypeInput | ResizeTerminal | ClaimTerminal | RenameTerminal | ClearTerminal | CloseTerminal
DECISIONS: dict[type[c.Command], Callable[[TerminalState, Any, TerminalContext], Outcome]] = {
    TypeInput: _type,
    ResizeTerminal: _resize,
    ClaimTerminal: _claim,
    RenameTerminal: _rename,
    ClearTerminal: _clear,
    CloseTerminal: _close,
}

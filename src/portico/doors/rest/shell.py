"""One terminal as this door shows it, and what a person may do to it.

A terminal that an editor holds, or in which an agent runs a command, can be watched and closed from here, but not typed
into: what one owns, no other answers for.
"""

from msgspec import Struct

from portico.errors import Conflict, Forbidden
from portico.events import Json
from portico.host.terminals import OpenTerminal

OURS = "token:"
"""How the claims of terminals opened here begin: with the name of the token."""


class TerminalInfo(Struct, omit_defaults=True):
    """What a list shows."""

    id: str
    title: str
    cwd: str
    cols: int
    rows: int
    pos: int
    session: str | None = None
    held: bool = False
    """An editor or an agent holds it: it can be watched here, and closed."""
    exited: bool = False
    code: int | None = None


class TerminalScreen(TerminalInfo, omit_defaults=True):
    """And what it has shown so far, as the program wrote it: escape sequences included."""

    shown: str = ""


def held(terminal: OpenTerminal) -> bool:
    return _holder(terminal) is not None


def _holder(terminal: OpenTerminal) -> str | None:
    if terminal.command:
        return "An agent"
    claim = terminal.claim
    ours = claim.get("kind") != "client" or str(claim.get("clientId")).startswith(OURS)
    return None if ours else "An editor"


def info(terminal: OpenTerminal) -> TerminalInfo:
    return TerminalInfo(**_facts(terminal))


def screen(terminal: OpenTerminal) -> TerminalScreen:
    return TerminalScreen(**_facts(terminal), shown=terminal.shown.text())


def _facts(of: OpenTerminal) -> Json:
    return {
        "id": of.id,
        "title": of.title,
        "cwd": of.cwd,
        "cols": of.cols,
        "rows": of.rows,
        "pos": of.pos,
        "session": of.session,
        "held": held(of),
        "exited": of.exited,
        "code": of.exit_code,
    }


def type_into(terminal: OpenTerminal, data: str) -> None:
    _check_free(terminal)
    if terminal.exited:
        raise Conflict(f"The terminal {terminal.id!r} has ended; open another one.")
    terminal.input(data)


async def resize(terminal: OpenTerminal, cols: int, rows: int, by: str) -> None:
    _check_free(terminal)
    if (cols, rows) != (terminal.cols, terminal.rows):
        await terminal.resize(cols, rows, by=by)


def _check_free(terminal: OpenTerminal) -> None:
    if (holder := _holder(terminal)) is not None:
        raise Forbidden(f"{holder} holds the terminal {terminal.id!r}: watch it here, or open another one.")

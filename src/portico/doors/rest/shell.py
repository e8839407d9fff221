"""One terminal as this door shows it."""

from collections.abc import Container

from msgspec import Struct

from portico.features.terminals.decide import holder
from portico.features.terminals.state import TerminalState
from portico.kernel.events import Json


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


def info(terminal: TerminalState, connected: Container[str]) -> TerminalInfo:
    return TerminalInfo(**_fields(terminal, connected))


def screen(terminal: TerminalState, connected: Container[str]) -> TerminalScreen:
    return TerminalScreen(**_fields(terminal, connected), shown=terminal.shown.text())


def _fields(of: TerminalState, connected: Container[str]) -> Json:
    return {
        "id": of.id,
        "title": of.title,
        "cwd": of.cwd,
        "cols": of.cols,
        "rows": of.rows,
        "pos": of.pos,
        "session": of.session,
        "held": holder(of, "", connected) is not None,
        "exited": of.exited,
        "code": of.exit_code,
    }

"""Commands about terminals: shells of the host that clients open, watch and reconnect to."""

from typing import ClassVar

from portico.kernel.commands import Command, Done, Http, Lock, NoLock, register
from portico.kernel.events import Json

_ONE = "/v1/terminals/{id}"


class AboutTerminal(Command, frozen=True):
    about = "terminal"
    lock: ClassVar[Lock | NoLock] = "feature"

    terminal: str


class OpenTerminal(Command, frozen=True, tag="terminal.open"):
    """Open a terminal."""

    scope = "terminal"
    lock = NoLock("Ids and names are reserved without an await.")
    shows = "terminal"
    limited = True
    http = Http("POST", "/v1/terminals", 201)
    errors = ("not_found", "conflict", "quota_exceeded")
    private = frozenset({"uri", "claim"})

    cwd: str | None = None
    """Inside a workspace or the session's folder; the first of them, when none is named."""
    session: str | None = None
    title: str = ""
    cols: int = 80
    rows: int = 24
    uri: str | None = None
    """What its client calls it."""
    claim: Json = {}
    """Who holds it: a client or a session; the caller, when nothing is said."""


class TypeInput(AboutTerminal, frozen=True, tag="terminal.input"):
    """Type into a terminal."""

    scope = "terminal"
    lock = NoLock("Nothing is awaited between the check and the input.")
    shows = "terminal"
    gives = Done
    http = Http("POST", f"{_ONE}/input", 204)

    data: str


class ResizeTerminal(AboutTerminal, frozen=True, tag="terminal.resize"):
    """Change a terminal's size."""

    scope = "terminal"
    shows = "terminal"
    http = Http("POST", f"{_ONE}/resize")

    cols: int
    rows: int


class ClaimTerminal(AboutTerminal, frozen=True, tag="terminal.claim"):
    """Hand a terminal to a client or a session."""

    scope = "terminal"
    shows = "terminal"

    claim: Json
    session: str | None = None


class RenameTerminal(AboutTerminal, frozen=True, tag="terminal.rename"):
    """Give a terminal another title."""

    scope = "terminal"
    shows = "terminal"

    title: str


class ClearTerminal(AboutTerminal, frozen=True, tag="terminal.clear"):
    """Forget what a terminal has shown."""

    scope = "terminal"
    shows = "terminal"


class CloseTerminal(AboutTerminal, frozen=True, tag="terminal.close"):
    """End the shell and all it started."""

    scope = "terminal"
    lock = NoLock("It ends the program first, which happens once; others are refused meanwhile.")
    shows = "terminal"
    gives = Done
    http = Http("DELETE", _ONE, 204)


register(OpenTerminal, TypeInput, ResizeTerminal, ClaimTerminal, RenameTerminal, ClearTerminal, CloseTerminal)

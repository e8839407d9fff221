"""Events of terminals."""

from portico.kernel.events import Delta, Event, Json, register_events


class TerminalStarted(Event, frozen=True, tag="terminal.started"):
    terminal: str
    title: str
    cwd: str
    claim: Json
    """Who owns it: `{"kind": "client", "clientId": ...}` or `{"kind": "session", "session": ID, ...}`."""
    by: str
    cols: int = 80
    rows: int = 24
    uri: str | None = None
    session: str | None = None
    """The session from which it was opened."""
    command: list[str] = []
    """Program and arguments that an agent runs in it, in place of a shell for people: it is there to be watched."""
    owner: str = ""
    """The person whose terminal this is. Empty: everybody's."""


class TerminalData(Delta, frozen=True, tag="terminal.data"):
    """What the terminal shows, without the shell's own signs. `turn` is empty, `part` is the terminal's id."""


class TerminalShown(Event, frozen=True, tag="terminal.shown"):
    """What the terminal shows up to the position `upto`, as much as its scrollback holds: written before old output is
    compacted, and at the end. Output behind `upto` follows it, or came just before."""

    piece_of = "part"

    upto: int
    text: str
    part: str = ""
    """The terminal's id while it runs: the next one takes this one's place, and it goes with the output before it."""


class TerminalCommand(Event, frozen=True, tag="terminal.command"):
    """The shell began to run a line."""

    command: str
    line: str


class TerminalCommandEnded(Event, frozen=True, tag="terminal.command_ended"):
    command: str
    code: int | None = None
    milliseconds: int = 0


class TerminalDetects(Event, frozen=True, tag="terminal.detects"):
    """The shell reports its commands from now on."""


class TerminalResized(Event, frozen=True, tag="terminal.resized"):
    cols: int
    rows: int
    by: str


class TerminalClaimed(Event, frozen=True, tag="terminal.claimed"):
    claim: Json
    by: str
    session: str | None = None
    """The session it is claimed for, with which it ends."""


class TerminalTitled(Event, frozen=True, tag="terminal.titled"):
    title: str
    by: str


class TerminalMoved(Event, frozen=True, tag="terminal.moved"):
    cwd: str


class TerminalCleared(Event, frozen=True, tag="terminal.cleared"):
    by: str


class TerminalExited(Event, frozen=True, tag="terminal.exited"):
    code: int | None = None


class TerminalRemoved(Event, frozen=True, tag="terminal.removed"):
    by: str


EVENTS: tuple[type[Event], ...] = (
    TerminalStarted,
    TerminalData,
    TerminalShown,
    TerminalCommand,
    TerminalCommandEnded,
    TerminalDetects,
    TerminalResized,
    TerminalClaimed,
    TerminalTitled,
    TerminalMoved,
    TerminalCleared,
    TerminalExited,
    TerminalRemoved,
)
register_events(*EVENTS)

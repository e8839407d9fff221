"""What is known of a terminal, from the events of its channel: while it is there, and when it is gone."""

from portico import events as e
from portico.events import Record
from portico.workspace.scrollback import Command, Scrollback


class KnownTerminal:
    def __init__(self, ident: str, started: e.TerminalStarted) -> None:
        self.id = ident
        self.channel = f"terminal/{ident}"
        self.uri = started.uri
        self.title = started.title
        self.cwd = started.cwd
        self.cols, self.rows = started.cols, started.rows
        self.claim = started.claim
        self.session = started.session
        self.command = started.command
        """What an agent runs in it; empty for a shell, into which people type."""
        self.pos = 0
        """Of the last record that is part of what is known here: whoever shows it goes on from there."""
        self.shown = Scrollback()
        self.detects = False
        self.exit_code: int | None = None
        self.exited = False

    def apply(self, record: Record) -> None:
        """What is known of a terminal follows from the log, as with sessions: nobody sees what a crash forgets."""
        self.pos = record.pos
        match record.event:
            case e.TerminalData(text=text):
                self.shown.add(text)
            case e.TerminalCommand(command=command, line=line):
                self.shown.start(Command(command, line, record.time / 1000))
            case e.TerminalCommandEnded(command=command, code=code, milliseconds=spent):
                self._complete(command, code, spent / 1000)
            case e.TerminalDetects():
                self.detects = True
            case e.TerminalMoved(cwd=cwd):
                self.cwd = cwd
            case e.TerminalTitled(title=title):
                self.title = title
            case e.TerminalResized(cols=cols, rows=rows):
                self.cols, self.rows = cols, rows
            case e.TerminalClaimed(claim=claim, session=session):
                if "session" in (claim.get("kind"), self.claim.get("kind")):
                    self.session = session  # one that was only opened from a session still ends with it
                self.claim = claim
            case e.TerminalCleared():
                self.shown.clear()
            case e.TerminalExited(code=code):
                self.exited, self.exit_code = True, code

    def replay(self, record: Record) -> None:
        """The same for one that is gone: what was shown may be left in one event, and its program has ended."""
        self.apply(record)
        if isinstance(record.event, e.TerminalShown) and not self.shown.size:
            show(self.shown, record.event)
        elif isinstance(record.event, e.TerminalRemoved):
            self.exited = True

    def _complete(self, command: str, code: int | None, seconds: float) -> None:
        for part in reversed(self.shown.parts):
            if isinstance(part, Command) and part.command_id == command:
                part.complete, part.exit_code, part.seconds = True, code, seconds
                return


def show(shown: Scrollback, event: e.Event) -> None:
    match event:
        case e.TerminalData(text=text):
            shown.add(text)
        case e.TerminalShown(text=text):
            shown.clear()
            shown.add(text)
        case e.TerminalCleared():
            shown.clear()

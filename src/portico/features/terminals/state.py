"""State of a terminal, derived from its records only, so clients never see state that a crash would lose."""

from portico.features.terminals import events as te
from portico.kernel.events import Record
from portico.workspace.scrollback import Scrollback, ShellCommand


class TerminalState:
    def __init__(self, started: te.TerminalStarted) -> None:
        self.id = started.terminal
        self.channel = f"terminal/{self.id}"
        self.uri = started.uri
        self.title = started.title
        self.cwd = started.cwd
        self.cols, self.rows = started.cols, started.rows
        self.claim = started.claim
        self.session = started.session
        self.command = started.command
        """The command that an agent runs in it; empty for an interactive shell."""
        self.owner = started.owner
        self.started = 0
        """When, in milliseconds."""
        self.pos = 0
        """Position of the last applied record: clients that show this state continue from there."""
        self.shown = Scrollback()
        self.detects = False
        self.exit_code: int | None = None
        self.exited = False
        self.kept = 0
        """The position up to which one event contains the screen: the pieces before it may be deleted."""
        self.since: int | None = None
        """Time of the first piece after that position."""

    def apply(self, record: Record) -> None:
        self.pos = record.pos
        match record.event:
            case te.TerminalStarted():
                self.started = record.time
            case te.TerminalData() as event:
                self.shown.add(event.text)
                self.since = self.since or record.time
            case te.TerminalShown(upto=upto):
                self.kept, self.since = upto, record.time if record.pos > upto + 1 else None
            case te.TerminalCommand(command=command, line=line):
                self.shown.start(ShellCommand(command, line, record.time / 1000))
            case te.TerminalCommandEnded(command=command, code=code, milliseconds=spent):
                self._complete(command, code, spent / 1000)
            case te.TerminalDetects():
                self.detects = True
            case te.TerminalMoved(cwd=cwd):
                self.cwd = cwd
            case te.TerminalTitled(title=title):
                self.title = title
            case te.TerminalResized(cols=cols, rows=rows):
                self.cols, self.rows = cols, rows
            case te.TerminalClaimed(claim=claim, session=session):
                if "session" in (claim.get("kind"), self.claim.get("kind")):
                    self.session = session  # one that was only opened from a session still ends with it
                self.claim = claim
            case te.TerminalCleared():
                self.shown.clear()
            case te.TerminalExited(code=code):
                self.exited, self.exit_code = True, code

    def _complete(self, command: str, code: int | None, seconds: float) -> None:
        for part in reversed(self.shown.parts):
            if isinstance(part, ShellCommand) and part.command_id == command:
                part.complete, part.exit_code, part.seconds = True, code, seconds
                return

"""Terminals of the host: they outlive the client that opened them, and their history is in the log.

Each has a channel `terminal/ID`. The program is a child of this process, so a restart ends it: at start, terminals
that a crash left open are recorded as exited. A bounded scrollback is kept in memory for clients that connect later.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from portico import limits
from portico.features.terminals import command_turn
from portico.features.terminals import events as te
from portico.features.terminals.commands import AboutTerminal, CloseTerminal, OpenTerminal
from portico.features.terminals.decide import DecidedCommand, check_new
from portico.features.terminals.handlers import TerminalHandlers
from portico.features.terminals.state import TerminalState
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits as kernel_limits
from portico.kernel.component import HostTerminals
from portico.kernel.errors import Conflict, LogUnavailable, NotFound, PorticoError
from portico.kernel.events import HOST, Channel, Json, Record, number_of
from portico.kernel.feature import Feature, receive
from portico.kernel.log.listeners import Listeners
from portico.kernel.log.log import NotOwner
from portico.kernel.ownership import Access
from portico.kernel.session import Session
from portico.locks import KeyedLocks
from portico.sandbox.policy import Confinement
from portico.workspace import terminal as pty
from portico.workspace.process import environment
from portico.workspace.scrollback import Scrollback

if TYPE_CHECKING:
    from portico.kernel.host import Host

OPEN = "terminal"
"""The note of a channel whose terminal was running."""
CLOSED = "terminal.closed"
"""The note of the channel of a closed terminal without a session."""
OF_SESSION = "terminals"
"""The note of a session's channel: the terminals that were opened from it, including closed ones."""
_AHEAD_BYTES = 1024 * 1024
"""Output that may be unwritten before the program is paused: a fifth of a second at full speed."""

_PIECES_BYTES = 256 * kernel_limits.KIB
"""Maximum output of a closed terminal that is kept in pieces until the retention deletes it. If there is more, only the
last screen is kept: a loop that opens and closes terminals filled the disk."""

_LISTED = (te.TerminalStarted, te.TerminalTitled, te.TerminalClaimed, te.TerminalExited)
"""Events that change the entry of a terminal in a list."""

Watcher = Callable[[], None]
Pace = Callable[[str], Awaitable[None]]
"""Returns when at least one watcher of the terminal keeps up with it, or when there is no watcher."""
Listener = Callable[[pty.Event], None]


class LiveTerminal(TerminalState):
    """One terminal with its program. Requests take effect when they are committed (`apply`)."""

    def __init__(
        self,
        terminals: "Terminals",
        started: te.TerminalStarted,
        env: Mapping[str, str],
        listener: Listener | None,
        policy: Confinement,
    ) -> None:
        super().__init__(started)
        self._terminals = terminals
        self._listener = listener
        self._ahead = 0
        self.stored = 0
        """Bytes of output that the log holds in pieces."""
        self._holding = False
        self._typed = False
        """A person typed, and waits for the echo: the next output is committed immediately, at most once per input."""
        self.pty = pty.Terminal(
            self._heard,
            policy=policy,
            command=started.command or (os.environ.get("SHELL") or "/bin/sh",),
            cwd=Path(started.cwd),
            env=environment(**env),
            cols=started.cols,
            rows=started.rows,
            scrollback=0,
            typed=not started.command,
        )

    def apply(self, record: Record) -> None:
        super().apply(record)
        match record.event:
            case te.TerminalData():
                self.stored += len(record.data)
                if self.stored > limits.TERMINAL_BYTES:
                    self.stored = 0
                    self._terminals.host.own(self._trim(), f"trim {self.channel}")
            case te.TerminalResized(cols=cols, rows=rows):
                self.pty.resize(cols, rows)

    # -- what the program does ---------------------------------------------------------------------------------

    def _heard(self, event: pty.Event) -> None:
        if self._listener is not None:
            self._listener(event)
        match event:
            case pty.Data(text):
                for start in range(0, len(text), kernel_limits.DELTA_BYTES):
                    self._post(
                        te.TerminalData(turn="", part=self.id, text=text[start : start + kernel_limits.DELTA_BYTES])
                    )
                self._hold_up(len(text))
            case pty.DetectionAvailable():
                self._post(te.TerminalDetects())
            case pty.CommandStarted(command, line, _):
                self._post(te.TerminalCommand(command=command, line=line))
            case pty.CommandFinished(command, code, seconds):
                self._post(te.TerminalCommandEnded(command=command, code=code, milliseconds=int(seconds * 1000)))
            case pty.CwdChanged(cwd):
                self._post(te.TerminalMoved(cwd=cwd))
            case pty.TitleChanged(title):
                if title:
                    self._post(te.TerminalTitled(title=title, by="program"))
            case pty.Exited(code):
                self._post(te.TerminalExited(code=code))

    def _post(self, event: e.Event) -> None:
        soon, self._typed = self._typed, False
        try:
            self._terminals.host.log.post(self.channel, event, soon=soon)
        except (LogUnavailable, NotOwner):
            # The disk is full: the terminal continues, and clients that connect later see the output in its scrollback.
            self._terminals.host.logger.warning("terminal %s: the log cannot write", self.id)

    def _hold_up(self, size: int) -> None:
        self._ahead += size
        if self._ahead > _AHEAD_BYTES and not self._holding:
            self._holding = True
            self.pty.pause()
            self._terminals.host.own(self._catch_up(), f"hold {self.channel}")

    async def _catch_up(self) -> None:
        """Wait for the disk, and for a watcher that keeps up."""
        try:
            with contextlib.suppress(LogUnavailable):  # the terminal continues without its history
                await self._terminals.host.log.flush()
            for pace in self._terminals.paces:
                await pace(self.id)
        finally:
            self._ahead = 0
            self._holding = False
            self.pty.resume()

    async def _trim(self) -> None:
        """Replace the pieces by one event with the current screen, so a program that prints forever cannot fill the
        disk."""
        if not self.exited:
            await self.keep()
            await self.drop_pieces()

    async def drop_pieces(self) -> None:
        await self._terminals.host.log.compact_channel(self.channel, self.kept + 1)

    # -- what people do ----------------------------------------------------------------------------------------

    def input(self, text: str) -> None:
        self._typed = True
        self.pty.input(text)

    async def kill(self) -> None:
        """End the program and all processes it started; its output is kept."""
        await self.pty.dispose()

    async def close(self, *, by: str) -> None:
        """Ends it for good."""
        await self._terminals.dispose(self.id, by=by)

    async def keep(self, *events: e.Event) -> None:
        """Writes down in one event what is shown now, for good if its end (`events`) comes behind it."""
        shown = te.TerminalShown(upto=self.pos, text=self.shown.text(), part="" if events else self.id)
        await self._append(*([shown] if shown.text else []), *events)

    async def _append(self, *events: e.Event) -> None:
        await self._terminals.host.log.append(self.channel, *events)


class Terminals(Feature, HostTerminals):
    name = "terminals"
    commands = (OpenTerminal, *get_args(DecidedCommand))
    events = te.EVENTS

    def __init__(self, host: "Host") -> None:
        self.host = host
        super().__init__(host, handlers=[TerminalHandlers(self)])
        self._locks = KeyedLocks()
        host.terminals = self
        host.run_command = command_turn.run
        host.ownership.finders["terminal"] = self._access
        host.ownership.on_start(te.TerminalStarted, lambda event: Access(event.owner))
        self._open: dict[str, LiveTerminal] = {}
        """Terminals whose programs are children of this process."""
        self._elsewhere: dict[str, TerminalState] = {}
        """Terminals of other hosts, according to their records."""
        self._running: dict[str, asyncio.Task[int]] = {}
        self._closed: list[Channel] = []
        """Closed terminals without a session whose last screen is kept, the oldest first."""
        self._noting = asyncio.Lock()
        self._watchers = Listeners[[]]("terminal")
        self.paces: list[Pace] = []
        """A program that prints faster than any of its watchers reads is paused, as by a real terminal."""
        self._next = 1
        host.commands.subject("terminal", self.get)

    def lock_of(self, command: AboutTerminal) -> asyncio.Lock:
        """Return the lock of one terminal."""
        terminal = self.find(command.terminal)
        return self._locks.of(terminal.id if terminal is not None else "")

    def _access(self, ident: str) -> Access | None:
        """A terminal with an agent's command belongs to its session; a shell to the person who opened it."""
        terminal = self.find(ident)
        if terminal is None:
            return None
        session = self.host.find(terminal.session) if terminal.command and terminal.session else None
        return self.host.ownership.of_session(session) if session is not None else Access(terminal.owner)

    async def recover(self) -> None:
        """Record the exit of terminals that a crash left open."""
        names = self.host.log.channels("terminal/")
        last = max([0, *(number_of(name) for name in names)]) + self.host.log.identity.lost
        self._next = self.host.members.number_after(last)
        self._closed = sorted(filter(self.host.members.owns, await self.host.log.list_kv(CLOSED)), key=number_of)
        for channel in await self.host.log.list_kv(OPEN):
            if self.host.members.owns(channel):
                await self._close_story(channel)
            elif (found := await self.past(channel.removeprefix("terminal/"))) is not None:
                self._elsewhere[found.id] = found

    async def take_over(self, channels: Collection[Channel]) -> None:
        for channel in await self.host.log.list_kv(OPEN):
            if channel in channels and channel.removeprefix("terminal/") not in self._open:
                await self._close_story(channel)

    async def let_go(self, channels: Collection[Channel]) -> None:
        """End their programs; the host that has taken them over records the exit."""
        for terminal in [each for each in self._open.values() if each.channel in channels]:
            del self._open[terminal.id]
            if (running := self._running.pop(terminal.id, None)) is not None:
                await self._end(terminal, running)
            self.changed()

    async def _close_story(self, channel: Channel) -> None:
        """Record the exit of a terminal whose program does not run. If the disk is full, the next start records it."""
        log = self.host.log
        log.put_kv(channel, OPEN, None)
        if head := log.head(channel):
            text = await self._shown(channel)
            shown = [te.TerminalShown(upto=head, text=text)] if text else []
            with contextlib.suppress(LogUnavailable):
                await log.append(channel, *shown, te.TerminalExited(), te.TerminalRemoved(by="host"))
                started = (await log.read(channel, 0, 1))[0].event
                await self._remember(channel, started.session if isinstance(started, te.TerminalStarted) else None)

    async def _remember(self, channel: Channel, session: str | None) -> None:
        """The output of a terminal is deleted with its session. Of terminals without one, the last few are kept."""
        if session is not None and self.host.find(session) is not None:
            return
        self.host.log.put_kv(channel, CLOSED, b"closed")
        self._closed.append(channel)
        while len(self._closed) > limits.CLOSED_TERMINALS:
            await self.host.catalogue.erase(self._closed.pop(0))

    async def _shown(self, channel: Channel) -> str:
        """The last of what a terminal showed, from the log: as many events as one read has, however long it ran."""
        shown = Scrollback()
        after = max(0, self.host.log.head(channel) - kernel_limits.READ_EVENTS)
        while records := await self.host.log.read(channel, after, kernel_limits.READ_EVENTS):
            for record in records:
                _show(shown, record.event)
            after = records[-1].pos
        return shown.text()

    def had(self, ident: str) -> bool:
        """Return whether a terminal of this id exists or existed."""
        return self.host.log.head(f"terminal/{ident}") > 0

    async def past(self, ident: str) -> TerminalState | None:
        """Return a closed terminal in its last state: its history stays in the log."""
        channel, known, after = f"terminal/{ident}", None, 0
        while records := await self.host.log.read(channel, after, kernel_limits.READ_EVENTS):
            for record in records:
                if isinstance(record.event, te.TerminalStarted):
                    known = TerminalState(record.event)
                elif known is not None:
                    _replay(known, record)
            after = records[-1].pos
        return known

    async def compactable(self, before: int) -> dict[Channel, int]:
        """Store the screens of open terminals whose output from before that time is about to be deleted. Return, by
        channel, the first position that must be kept."""
        for terminal in tuple(self._open.values()):
            if terminal.since is not None and terminal.since < before and terminal.shown.size:
                await terminal.keep()
        return {terminal.channel: terminal.kept + 1 for terminal in self.list()}

    async def start(  # type: ignore[override]  # the core does not know these arguments
        self,
        *,
        claim: Json,
        cwd: str,
        by: str,
        title: str = "",
        cols: int = 80,
        rows: int = 24,
        uri: str | None = None,
        session: str | None = None,
        command: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        listener: Listener | None = None,
        owner: str = "",
        policy: Confinement,
    ) -> LiveTerminal:
        """Start a shell, or with `command` a program for an agent. `listener` receives its events immediately."""
        ident = f"terminal-{self._next}"
        shell = os.path.basename(os.environ.get("SHELL") or "sh")
        started = te.TerminalStarted(
            terminal=ident,
            title=title or shell,
            cwd=cwd,
            claim=claim,
            by=by,
            cols=cols,
            rows=rows,
            uri=uri,
            session=session,
            command=list(command),
            owner=owner,
        )
        check_new(len(self._open), [*self._open, *filter(None, (each.uri for each in self.list()))], started)
        self._next = self.host.members.number_after(self._next)
        terminal = LiveTerminal(self, started, env or {}, listener, policy)
        self._open[ident] = terminal
        try:
            self.host.log.put_kv(terminal.channel, OPEN, b"open")
            audited = e.Audited(action="terminal.started", by=by, detail={"terminal": ident, "cwd": cwd})
            await self.host.log.append_all((terminal.channel, started), (HOST, audited))
            await self._note(session, ident)
            await terminal.pty.start()
        except BaseException:  # also a cancellation: record the exit
            del self._open[ident]
            await self._close_story(terminal.channel)
            raise
        self._running[ident] = self.host.own(terminal.pty.run(), terminal.channel)
        return terminal

    async def _note(self, session: str | None, ident: str) -> None:
        found = self.host.find(session) if session is not None else None
        if found is not None:
            async with self._noting:
                known = await self._of_session(found)
                self.host.log.put_kv(found.channel, OF_SESSION, json.dumps([*known, ident]).encode())

    async def _of_session(self, session: Session) -> list[str]:
        stored = await self.host.log.get_kv(session.channel, OF_SESSION)
        return [str(each) for each in json.loads(stored)] if stored is not None else []

    def get(self, ident: str) -> TerminalState:
        found = self.find(ident)
        if found is None:
            raise NotFound("terminal", ident)
        return found

    def program(self, ident: str) -> LiveTerminal:
        """Return a terminal that runs on this host."""
        found = self.get(ident)
        if not isinstance(found, LiveTerminal):
            raise Conflict(f"The host that runs the terminal {ident!r} is not there (any more); open another one.")
        return found

    def find(self, ident: str) -> TerminalState | None:
        """Return a terminal by id, or by the name that a client gave it."""
        found = self._open.get(ident) or self._elsewhere.get(ident)
        return found or next((each for each in self.list() if each.uri == ident), None)

    @receive(channel="terminal")
    def apply(self, record: Record) -> None:
        ident = record.channel.removeprefix("terminal/")
        if isinstance(record.event, te.TerminalStarted) and ident not in self._open:
            self._elsewhere[ident] = TerminalState(record.event)
        terminal = self._open.get(ident) or self._elsewhere.get(ident)
        if terminal is not None:
            terminal.apply(record)
        gone = isinstance(record.event, te.TerminalRemoved) and self._elsewhere.pop(ident, None) is not None
        if gone or isinstance(record.event, _LISTED):
            self.changed()

    def list(self) -> list[TerminalState]:
        return [*self._open.values(), *self._elsewhere.values()]

    async def dispose(self, ident: str, *, by: str) -> None:
        """End the program and all processes it started, and remove the terminal."""
        terminal = self.program(ident)
        running = self._running.pop(terminal.id, None)
        if running is None:
            raise Conflict(f"The terminal {ident!r} is being closed.")
        await self._end(terminal, running)
        await self.host.log.flush()
        self.host.log.put_kv(terminal.channel, OPEN, None)
        await terminal.keep(te.TerminalRemoved(by=by))
        if terminal.stored > _PIECES_BYTES:
            await terminal.drop_pieces()
        self._open.pop(terminal.id, None)
        await self._remember(terminal.channel, terminal.session)
        self.changed()

    async def forget(self, session: Session, by: str) -> None:
        """Delete the terminals opened from a deleted session, with their output. A terminal that is already closing is
        left to finish."""
        for terminal in [each for each in self._open.values() if each.session == session.id]:
            if terminal.id in self._running:
                await self.dispose(terminal.id, by=by)
        for elsewhere in [each for each in self._elsewhere.values() if each.session == session.id]:
            with contextlib.suppress(PorticoError):  # its host is down: the host that takes over ends it
                await self.host.do(CloseTerminal(terminal=elsewhere.id), c.Caller.inside(by))
        for ident in await self._of_session(session):
            if self.find(ident) is None:
                await self.host.catalogue.erase(f"terminal/{ident}")

    async def _end(self, terminal: LiveTerminal, running: "asyncio.Task[int]") -> None:
        if not running.done():
            await terminal.pty.dispose()
        await asyncio.wait({running})

    async def close(self) -> None:
        """End every program, because the host stops. If the disk is full, the next start records their exit."""
        if self.host.log.down is not None:
            return
        for ident in [ident for ident in self._open if ident in self._running]:
            await self.dispose(ident, by="host")

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` when the list of terminals or an entry in it changes."""
        self._watchers.add(watcher)

    def changed(self) -> None:
        self._watchers.call()


def _show(shown: Scrollback, event: e.Event) -> None:
    match event:
        case te.TerminalData(text=text):
            shown.add(text)
        case te.TerminalShown(text=text):
            shown.clear()
            shown.add(text)
        case te.TerminalCleared():
            shown.clear()


def _replay(known: TerminalState, record: Record) -> None:
    """State of a closed terminal: its output may be reduced to one event, and its program has ended."""
    known.apply(record)
    if isinstance(record.event, te.TerminalShown) and not known.shown.size:
        _show(known.shown, record.event)
    elif isinstance(record.event, te.TerminalRemoved):
        known.exited = True

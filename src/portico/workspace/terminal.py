"""A real terminal: a PTY with a shell or a program. It exists until the program exits, with or without viewers.

A terminal belongs to the host and has no reference to clients: it reports its events in order through one callback. The
host decides who may type and who may view. Shell integration sequences (see `shell`) are removed from the data and
reported as events.
"""

import asyncio
import codecs
import os
import secrets
import signal
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from portico.kernel.errors import BadRequest, Conflict, TooLarge
from portico.sandbox.policy import Confinement
from portico.workspace.child import Child, Outlet, refusal
from portico.workspace.escapes import Plain, Scanner
from portico.workspace.scrollback import SCROLLBACK_MAX, Scrollback, ShellCommand
from portico.workspace.shell import Integration, integrate, unescape

SIDE_MAX = 1000  # columns or rows; programs allocate a screen of this size
INPUT_MAX = 1024 * 1024  # characters waiting for a program that does not read; a large paste fits
LINE_MAX = 4096  # characters of a command line; longer ones are pasted scripts
TITLE_MAX = 256  # characters; it is a title


class Data(Struct, frozen=True, tag="data"):
    text: str


class DetectionAvailable(Struct, frozen=True, tag="detection"):
    """The shell reports its commands from now on."""


class CommandStarted(Struct, frozen=True, tag="started"):
    command_id: str
    line: str
    time: float


class CommandFinished(Struct, frozen=True, tag="finished"):
    command_id: str
    exit_code: int | None
    seconds: float


class CwdChanged(Struct, frozen=True, tag="cwd"):
    cwd: str


class TitleChanged(Struct, frozen=True, tag="title"):
    title: str


class Exited(Struct, frozen=True, tag="exited"):
    """The last event, after the last data."""

    exit_code: int
    signal: str | None = None
    """The signal that terminated it, if any: the code is then 128 plus the signal number, as in shells."""


Event = Data | DetectionAvailable | CommandStarted | CommandFinished | CwdChanged | TitleChanged | Exited


class Terminal:
    """A terminal with its program. Call `start`, then await `run` in a task; cancelling that task disposes of it.

    The caller of `start` must call `run` or `dispose`.
    """

    def __init__(
        self,
        report: Callable[[Event], None],
        *,
        policy: Confinement,
        command: Sequence[str] = ("bash",),
        cwd: Path,
        env: dict[str, str],
        cols: int = 80,
        rows: int = 24,
        scrollback: int = SCROLLBACK_MAX,
        typed: bool = True,
    ) -> None:
        """`cwd` must be a path that the jail returned. `env` is the whole environment of the program, apart from TERM.

        Without `typed` the terminal accepts no input: the program reads EOF immediately and has no controlling
        terminal where it could prompt a person (for a password), so it never waits for input that cannot arrive."""
        check_size(cols, rows)
        self.cols = cols
        self.rows = rows
        self.cwd = str(cwd)
        self.exit_code: int | None = None
        self.scrollback = Scrollback(scrollback)
        self._told = report
        self._asked = list(command)
        self._policy = policy
        self._typed = typed
        self._env = {"TERM": "xterm-256color", **env}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = bytearray()
        self._ending = asyncio.Lock()
        self._child: Child | None = None
        self._outlet: Outlet | None = None
        self._parser: OutputParser | None = None

    async def start(self) -> None:
        """Open the terminal and start the program in it."""
        if self._child:
            raise Conflict("This terminal has been started already.")
        integration = Integration(self._asked, self._env, secrets.token_hex(16))  # what looks like a report is forged
        if self._typed:
            integration = await asyncio.to_thread(integrate, self._asked, self._env)
        try:
            ours, theirs = os.openpty()
        except OSError as error:
            integration.forget()
            raise refusal(error, self._asked[0]) from error
        try:
            termios.tcsetwinsize(ours, (self.rows, self.cols))
            # A session gets its controlling terminal (Ctrl-C, job control) when its leader opens one. A small shell
            # does that, because code between fork and exec is not safe with threads. A terminal that is opened only
            # for writing does not become the controlling terminal.
            joining = '<>"$0" >&0 2>&0' if self._typed else '</dev/null >"$0" 2>&1'
            opening = ["/bin/sh", "-c", f'exec {joining}; exec "$@"', os.ttyname(theirs)]
            self._child = Child.start(
                integration.command,
                policy=self._policy,
                cwd=Path(self.cwd),
                env=integration.env,
                stdin=theirs,
                output=theirs,
                outside=opening,
                tty=self._typed,
            )
        except BaseException:  # on any error: no one else closes this end
            os.close(ours)
            integration.forget()
            raise
        finally:
            os.close(theirs)
        self._parser = OutputParser(self._report, integration)
        self._outlet = Outlet(ours, self._receive)

    async def run(self) -> int:
        """Wait for the program to exit, then call `dispose`."""
        child = self._running()[0]
        try:
            await child.wait()
        finally:
            await self.dispose()
        return await child.wait()

    async def dispose(self) -> None:
        """Terminate the program and its descendants, and report `Exited` after the last data. Later calls wait."""
        child, outlet, speech = self._running()
        async with self._ending:
            if self.exit_code is not None:
                return
            try:
                await child.end(signal.SIGHUP)
                await outlet.drain()
            finally:
                outlet.close()
                speech.integration.forget()
            self.exit_code = await child.wait()
            speech.hear(self._decoder.decode(b"", final=True))
            speech.end(self.exit_code)
            self._report(Exited(self.exit_code, child.killed_by))

    def input(self, text: str) -> None:
        """Send input. Input that the program has not read yet is buffered, up to `INPUT_MAX`."""
        outlet = self._running()[1]
        if not self._typed:
            raise Conflict("The program in this terminal reads no input.")
        if outlet.closed.is_set():
            raise Conflict("This terminal has ended.")
        data = text.encode("utf-8", "replace")
        if len(self._waiting) + len(data) > INPUT_MAX:
            raise TooLarge(f"The program does not read; at most {INPUT_MAX} bytes can wait for it.")
        self._waiting += data
        self._write()

    def resize(self, cols: int, rows: int) -> None:
        check_size(cols, rows)
        self.cols, self.rows = cols, rows
        if self._outlet and not self._outlet.closed.is_set():
            termios.tcsetwinsize(self._outlet.fd, (rows, cols))

    def clear(self) -> None:
        """Clear the scrollback; the program is not notified."""
        self.scrollback.clear()

    def pause(self) -> None:
        """Stop reading while readers are too slow. The program blocks on output until `resume`."""
        self._running()[1].pause()

    def resume(self) -> None:
        self._running()[1].resume()

    @property
    def pid(self) -> int:
        return self._running()[0].pid

    def _running(self) -> "tuple[Child, Outlet, OutputParser]":
        if self._child is None or self._outlet is None or self._parser is None:
            raise Conflict("This terminal has not been started.")
        return self._child, self._outlet, self._parser

    def _receive(self, data: bytes) -> None:
        self._running()[2].hear(self._decoder.decode(data))

    def _report(self, event: Event) -> None:
        """Update the scrollback and `cwd`, then report the event to the host."""
        match event:
            case Data(text):
                self.scrollback.add(text)
            case CommandStarted(command_id, line, started):
                self.scrollback.start(ShellCommand(command_id, line, started))
            case CommandFinished(command_id, code, seconds):
                self._complete(command_id, code, seconds)
            case CwdChanged(cwd):
                self.cwd = cwd
        self._told(event)

    def _complete(self, command_id: str, code: int | None, seconds: float) -> None:
        for part in reversed(self.scrollback.parts):
            if isinstance(part, ShellCommand) and part.command_id == command_id:
                part.complete, part.exit_code, part.seconds = True, code, seconds
                return

    def _write(self) -> None:
        """Write what the terminal accepts now, and register a writer for the rest."""
        loop = asyncio.get_running_loop()
        outlet = self._running()[1]
        try:
            while self._waiting:
                del self._waiting[: os.write(outlet.fd, self._waiting)]
            loop.remove_writer(outlet.fd)
        except BlockingIOError:
            loop.add_writer(outlet.fd, self._write)
        except OSError:
            self._waiting.clear()  # EIO: the program has exited; discard its input
            loop.remove_writer(outlet.fd)


class OutputParser:
    """Parses the shell integration sequences in the output. Pure: text in, events out."""

    def __init__(
        self, report: Callable[[Event], None], integration: Integration, clock: Callable[[], float] = time.time
    ) -> None:
        self.report = report
        self.integration = integration
        self.clock = clock
        self.scanner = Scanner()
        self.available = False
        self.typed: list[str] | None = None  # what was shown since the prompt ended, while a line is typed
        self.line: str | None = None
        self.running: CommandStarted | None = None
        self.count = 0

    def hear(self, text: str) -> None:
        data: list[str] = []
        for piece in self.scanner.feed(text):
            kind, _, body = piece.body.partition(";")
            if kind in ("633", "133"):
                self._flush(data)
                self._sign(kind, body)
                continue
            data.append(piece.text)
            if self.typed is not None and len(self.typed) < LINE_MAX:
                self.typed.append(piece.text)
            if kind in ("0", "2"):
                self._flush(data)
                self.report(TitleChanged(body[:TITLE_MAX]))
        self._flush(data)

    def end(self, exit_code: int) -> None:
        """Finish the command that was running when the shell exited (`exit`)."""
        self._finish(exit_code)

    def _flush(self, data: list[str]) -> None:
        if data:
            self.report(Data("".join(data)))
            data.clear()

    def _sign(self, kind: str, body: str) -> None:
        secret = self.integration.secret
        if secret:
            body, _, given = body.rpartition(";")
            if kind != "633" or given != secret:
                return  # not from our shell: printed by a program, or a second integration of the user's
        letter, _, value = body.partition(";")
        self._available()
        match letter:
            case "A":
                self.typed = None
            case "B":
                self.typed = []
            case "E":
                self.line = unescape(value.rpartition(";")[0] if not secret and ";" in value else value)
            case "C":
                self._begin()
            case "D":
                self._finish(_number(value))
            case "P":
                self._property(value)

    def _available(self) -> None:
        if not self.available:
            self.available = True
            self.integration.forget()
            self.report(DetectionAvailable())

    def _begin(self) -> None:
        self._finish(None)
        # If the shell reports no line (it was not added to the history), use the text shown while it was typed.
        line = self.line if self.line is not None else Plain().feed("".join(self.typed or [])).strip()
        self.line, self.typed = None, None
        self.count += 1
        self.running = CommandStarted(f"command-{self.count}", line[:LINE_MAX], self.clock())
        self.report(self.running)

    def _finish(self, code: int | None) -> None:
        if self.running:
            seconds = max(self.clock() - self.running.time, 0.0)
            self.report(CommandFinished(self.running.command_id, code, seconds))
            self.running = None

    def _property(self, value: str) -> None:
        name, _, path = value.partition("=")
        if name == "Cwd":
            self.report(CwdChanged(unescape(path)))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.removeprefix("-").isdigit() else None


def check_size(cols: int, rows: int) -> None:
    side: Literal["cols", "rows"] = "rows" if 1 <= cols <= SIDE_MAX else "cols"
    if not (1 <= cols <= SIDE_MAX and 1 <= rows <= SIDE_MAX):
        raise BadRequest(f"A terminal has 1 to {SIDE_MAX} columns and rows, not {cols} by {rows}.", field=side)

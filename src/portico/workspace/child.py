"""A child process and its descendants: an explicit environment, a separate session, and reliable termination.

Killing one process leaves its children running, and killing its process group leaves those that created another group
(an interactive shell does that for every job, a daemon on purpose). So each child has a mark in its environment that
its descendants inherit. Termination covers all processes with its group, session or mark, their descendants, and the
orphans that were reparented to us since (`adoption`). The mark also identifies the host, so that the next host finds
the processes that a killed host left running (`orphans`).

On systems without /proc only the group can be found.
"""

import asyncio
import errno
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from portico.kernel.errors import BadRequest, Forbidden, NotFound, PorticoError, RateLimited
from portico.sandbox.launch import MARK as MARK
from portico.sandbox.policy import Confinement
from portico.workspace import adoption

GRACE = 0.4  # seconds to exit after the polite signal; a cancel has to finish within one second
GIVE_UP = 2.0  # seconds of SIGKILL; a process that survives it hangs in the kernel, and waiting does not help
POLL = 0.02  # seconds between two polls
CHUNK = 64 * 1024  # bytes per read; the size of a Linux pipe
DRAIN_SECONDS = 1.0  # all holders of the pipe or terminal are dead by then, so the rest is available immediately

RETRY_SECONDS = 5.0  # after a start fails for lack of descriptors or processes: commands end within seconds
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)

DEAF = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)

# Only the variables that programs need: no Portico token, no API key of a model, no secret of another session.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "XDG_CONFIG_HOME")
INHERITED_PREFIXES = ("LC_",)


def environment(**extra: str) -> dict[str, str]:
    """The complete environment of a child: allow-listed variables of the host, and those that the caller adds."""
    own = {
        name: value for name, value in os.environ.items() if name in INHERITED or name.startswith(INHERITED_PREFIXES)
    }
    return own | extra


_GIT = {"safe.bareRepository": "explicit", "core.fsmonitor": "false", "protocol.ext.allow": "never"}
"""Git treats any folder that looks like a bare repository as one, and its config can name programs that `git status`
runs. An agent can create such a folder anywhere. So git uses a bare repository only if the command names it."""


def command_environment(**extra: str) -> dict[str, str]:
    """The environment of commands that agents run, and of the agents, which run commands themselves."""
    git = {"GIT_CONFIG_COUNT": str(len(_GIT))}
    for number, (key, value) in enumerate(_GIT.items()):
        git |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environment(**git) | extra


class Child:
    """A running program. Call `start`, `wait`, and always `end`: it also terminates the processes that it left."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str) -> None:
        self.process = process
        self.mark = mark
        self.left = False
        """It has exited by itself and left other processes running, which `end` has ended."""
        adoption.running.add(mark)
        found = adoption.status(process.pid)
        self._began = found.start if found is not None else sys.maxsize

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        *,
        policy: Confinement,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int | IO[bytes],
        output: int,
        errors: int | IO[bytes] | None = None,
        outside: Sequence[str] = (),
        tty: bool = False,
        reaper: bool = True,
    ) -> "Child":
        """`outside`, `tty` and `reaper`: see `adoption.spawn`."""
        # Started here and not in a thread: a cancel in between would leave an untracked process.
        mark = f"{_host_mark(os.getpid())}.{secrets.token_hex(16)}.{pid_namespace()}"
        try:
            with _hearing():
                process = adoption.spawn(
                    command,
                    policy=policy,
                    cwd=cwd,
                    env={**env, MARK: mark},
                    outside=outside,
                    tty=tty,
                    reaper=reaper,
                    stdin=stdin,
                    stdout=output,
                    stderr=output if errors is None else errors,
                    start_new_session=True,
                )
        except (ValueError, OSError) as error:
            raise refusal(error, command[0]) from error
        return cls(process, mark)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def killed_by(self) -> str | None:
        """The name of the signal that terminated it, or None."""
        code = self.process.returncode
        if code is None or code >= 0:
            return None
        return next((each.name for each in signal.Signals if each == -code), f"SIG{-code}")  # some have no name

    async def wait(self) -> int:
        """Wait for the exit and return the exit code: 128 plus the signal number after a signal, as in shells."""
        if self.process.returncode is not None:
            return exit_code(self.process.returncode)  # reaped: its pid may belong to another process now
        try:
            watched = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            return await self._poll()  # no pidfd on this system
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(watched, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(watched)
            os.close(watched)
        return await self._poll()

    async def _poll(self) -> int:
        # Without a pidfd no event reports the exit; with one, this polls once.
        while (code := self.process.poll()) is None:  # noqa: ASYNC110
            await asyncio.sleep(POLL)
        return exit_code(code)

    async def end(self, polite: signal.Signals = signal.SIGTERM) -> None:
        """Terminate the child and its descendants, in a thread that continues even if the caller is cancelled again."""
        adoption.running.discard(self.mark)
        if self._left_nothing():
            adoption.forget(self.pid)
        else:
            # Shielded: a second cancel would withdraw the call while it waits for a free thread.
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self._end, polite))

    def _left_nothing(self) -> bool:
        """Whether the child has exited and no orphan was reparented to us since its start. Most commands leave nothing,
        and a search of all processes takes longer than many commands."""
        return self.process.poll() is not None and adoption.adopts() and not adoption.adopted(self._began)

    def _end(self, polite: signal.Signals) -> None:
        self.left = self.process.poll() is not None and bool(self._living())
        end_all(self._living, polite)
        with suppress(subprocess.TimeoutExpired):  # it hangs in the kernel
            self.process.wait(GIVE_UP)
            adoption.forget(self.pid)

    def _living(self) -> list[int]:
        self.process.poll()  # reaps the child, so that its pid is not found as a zombie
        if not os.path.isdir("/proc/self"):
            return self._group_only()
        table = adoption.processes()
        roots = {pid for pid, each in table.items() if self._is_ours(pid, each)}
        if self.process.returncode is not None:
            roots |= adoption.adopted(self._began)
        ours = adoption.below(roots, table) - {1, os.getpid()}
        return sorted(pid for pid in ours if pid in table and not table[pid].dead)

    def _is_ours(self, pid: int, found: adoption.ProcessStatus) -> bool:
        if pid in (1, os.getpid()) or found.dead:
            return False
        return self.pid in (found.group, found.session) or adoption.carries(pid, MARK) == self.mark

    def _group_only(self) -> list[int]:
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return []
        return [-self.pid]


def end_all(living: Callable[[], list[int]], polite: signal.Signals = signal.SIGTERM) -> None:
    """Terminate all processes that `living` returns, including new ones: first with `polite`, then with SIGKILL."""
    for number, seconds in ((polite, GRACE), (signal.SIGKILL, GIVE_UP)):
        deadline = time.monotonic() + seconds
        told: set[int] = set()
        while (found := living()) and time.monotonic() < deadline:
            for pid in found:  # in this order, parents first: a shell continues if its child dies first
                if pid not in told:
                    _signal(pid, number)
            told.update(found)
            time.sleep(POLL)


def pid_namespace(pid: int | str = "self") -> str:
    """The id of the pid namespace of a process; empty where it is unknown."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid").strip("pid:[]")
    except OSError:
        return ""


@cache
def _host_mark(pid: int) -> str:
    return f"{pid}.{started(pid)}"


def started(pid: int) -> str | None:
    """The start time of a process in kernel ticks; None if it does not exist (or is a zombie)."""
    found = adoption.status(pid)
    return None if found is None or found.dead else str(found.start)


@contextmanager
def _hearing() -> Iterator[None]:
    """Reset ignored signals for a new child. A host started with `nohup` or `&` ignores signals, and its children
    would inherit that: no Ctrl-C in terminals.

    A signal with a handler is reset for the new program, an ignored one is not. Only the main thread may change this;
    in other threads the children inherit our settings.
    """
    deaf: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():
        deaf = [number for number in DEAF if signal.getsignal(number) == signal.SIG_IGN]
    for number in deaf:
        signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number in deaf:
            signal.signal(number, signal.SIG_IGN)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # already exited, or owned by another user now (sudo)
        os.kill(pid, number)
        if number == signal.SIGHUP:
            os.kill(pid, signal.SIGCONT)  # a stopped job does not handle SIGHUP until it continues


def refusal(error: ValueError | OSError, program: str) -> PorticoError:
    """Translate the error of a failed program start."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        # The error names what is missing: the program, or the folder it should run in.
        return NotFound("command or folder", str(error.filename or program), "Is it installed and on the PATH?")
    if isinstance(error, PermissionError):
        return Forbidden(f"The system does not allow to run {program!r}.")
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        words = f"{program!r} cannot be started now: {error.strerror}. Close terminals, or raise the host's limits"
        return RateLimited(f"{words} (ulimit -n, ulimit -u).", retry_after=RETRY_SECONDS)
    # A NUL in an argument, or too many arguments.
    return BadRequest(f"{program!r} cannot be started: {error}.", field="command")


def exit_code(code: int) -> int:
    return code if code >= 0 else 128 - code


class Outlet:
    """Reads a pipe or a terminal as data arrives, without a thread. `closed` is set after the last byte."""

    def __init__(self, fd: int, sink: Callable[[bytes], None]) -> None:
        self.fd = fd
        self.sink = sink
        self.closed = asyncio.Event()
        self.reading = False
        os.set_blocking(fd, False)
        self.resume()

    def resume(self) -> None:
        if not self.closed.is_set() and not self.reading:
            asyncio.get_running_loop().add_reader(self.fd, self._read)
            self.reading = True

    def pause(self) -> None:
        """Stop reading. The kernel blocks the writer when its buffer is full."""
        if self.reading:
            asyncio.get_running_loop().remove_reader(self.fd)
            self.reading = False

    def _read(self) -> None:
        try:
            data = os.read(self.fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # EIO: the last process of a terminal has closed it
        if data:
            self.sink(data)
        else:
            self.close()

    async def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """Wait for the last byte, or for `seconds`: an unkillable process may hold the other end open."""
        self.resume()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.closed.wait()

    def close(self) -> None:
        if not self.closed.is_set():
            self.pause()
            # A writer may be registered too; uvloop aborts the whole process when a watched descriptor is closed.
            asyncio.get_running_loop().remove_writer(self.fd)
            os.close(self.fd)
            self.closed.set()


class UnownedPipe:
    """A child's pipe for a transport of the running loop, closed exactly once.

    uvloop closes the descriptor and then its file object as well: by then another thread may have opened a file with
    the same number, for example the log. asyncio's loops only close the file object.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self._fd = os.dup(pipe.fileno())
        pipe.close()
        self._closes = isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop)

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._closes:
            self._closes = False
            os.close(self._fd)

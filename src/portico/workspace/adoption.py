"""Orphaned processes: they are reparented to the host and terminated with the command that started them.

The attack, or the accident: a program that forks twice, creates a new session and clears its environment leaves no
trace of its origin; its parent is init, and it survives the end of its command. Linux solves this with subreapers:
orphans are reparented to the nearest ancestor that is one. The host's process becomes one at its start (`adopt`), and
so does each program that it starts (`spawn`). While a command runs, all its processes are its descendants; after it has
exited, the remaining ones are children of the host, which gets no other orphans.

Plugins start their programs with `spawn` (or with `Child` and the agents' supervisor, which use it), or in the host's
own session. `spawn` is also where a process is confined: every caller passes the policy, or the reason why it has none.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from portico.sandbox.launch import MARK
from portico.sandbox.policy import Confinement, Policy

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h

_PAGE = 4096
"""Bytes per read of a file in /proc: the kernel fills one page."""
_HAS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
"""Whether the kernel lists the children of a thread (CONFIG_PROC_CHILDREN)."""

_lock = threading.Lock()
"""Held while a child is started, so that a concurrent search for orphans does not find it before it is registered."""
_own: set[int] = set()
running: set[str] = set()
"""The marks of commands that run: what carries one is no orphan of another command."""
_become: Callable[[], object] | None = None


class ProcessStatus(NamedTuple):
    """Fields of /proc/PID/stat."""

    state: str
    parent: int
    group: int
    session: int
    start: int
    pages: int
    """Resident memory."""

    @property
    def dead(self) -> bool:
        return self.state in "ZX"


def adopt() -> bool:
    """Make the host's process a subreaper, at its start. False if the system does not support it."""
    global _become
    if sys.platform != "linux":
        return False
    import ctypes  # late: only a host needs it

    prctl = ctypes.CDLL(None).prctl
    if prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        return False
    _become = lambda: prctl(_SUBREAPER, 1, 0, 0, 0)  # noqa: E731 - runs between fork and exec: nothing but the call
    return True


def spawn(
    command: Sequence[str],
    *,
    policy: Confinement,
    cwd: Path,
    env: Mapping[str, str],
    outside: Sequence[str] = (),
    tty: bool = False,
    reaper: bool = True,
    **options: Any,
) -> "subprocess.Popen[bytes]":
    """Start a `subprocess.Popen` that is registered as ours and is the subreaper of its descendants. That costs two
    milliseconds (it needs a real fork): pass `reaper=False` for programs that start no others, and for commands that a
    user wrote. While one of those runs, its orphans are children of the host, which knows them by their mark.

    `outside`: a program of ours that prepares the process before it is confined and then runs the rest of its
    arguments. `tty`: it has a terminal of its own."""
    if isinstance(policy, Policy):
        from portico.sandbox.launch import launch  # late: most hosts start no sandbox

        with launch(command, policy, env, str(cwd), tty=tty) as confined:
            options["pass_fds"] = confined.pass_fds
            # Its folder is entered inside.
            return _spawn([*outside, *confined.command], Path("/"), confined.env, reaper, **options)
    return _spawn([*outside, *command], cwd, env, reaper, **options)


def _spawn(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], reaper: bool, **options: Any
) -> "subprocess.Popen[bytes]":
    with _lock:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command, cwd=cwd, env=env, preexec_fn=_become if reaper else None, **options
        )
        _own.add(process.pid)
    return process


def adopts() -> bool:
    """Whether orphans are reparented to us: then every process that a command left is a child of ours, or below one."""
    return _become is not None


def forget(pid: int) -> None:
    """Unregister a reaped process: its pid may be reused."""
    _own.discard(pid)


def processes() -> dict[int, ProcessStatus]:
    """Return all processes. Empty without /proc: they cannot be identified; a wrong kill is worse than an orphan."""
    pids = map(int, filter(str.isdigit, os.listdir("/proc"))) if os.path.isdir("/proc/self") else ()
    return {pid: each for pid in pids if (each := status(pid)) is not None}


def status(pid: int) -> ProcessStatus | None:
    """Read the status of a process; None if it has ended."""
    try:
        # After the name in brackets, which may contain anything: state, parent, group, session; the start is the 20th,
        # the pages are the 22nd.
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        return ProcessStatus(fields[0].decode(), *(int(fields[at]) for at in (1, 2, 3, 19, 21)))
    except (OSError, ValueError, IndexError):
        return None


def _read(path: str) -> bytes:
    """Read a small file of /proc. Each command reads several, so without the layers of `open`."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = part = os.read(file, _PAGE)
        while len(part) == _PAGE:
            part = os.read(file, _PAGE)
            data += part
        return data
    finally:
        os.close(file)


def _children() -> set[int]:
    """Our direct children. The kernel lists them by thread; where it does not, all processes are searched."""
    if not _HAS_CHILDREN:
        return {pid for pid, each in processes().items() if each.parent == os.getpid()}
    found = set[int]()
    for _ in range(2):  # a list may omit a process if another one exits during the read
        for thread in os.listdir("/proc/self/task"):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended; another thread has its children
                found.update(map(int, _read(f"/proc/self/task/{thread}/children").split()))
    return found


def carries(pid: int, variable: str) -> str | None:
    """The value of a variable in the environment of a process; None if it is not set or not readable."""
    try:
        said = b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None  # it has ended, or belongs to another user
    _, found, rest = said.partition(f"\0{variable}=".encode())
    return rest.partition(b"\0")[0].decode("ascii", "replace") if found else None


def adopted(since: int) -> set[int]:
    """Return the orphans reparented to us that started at or after this time (in kernel ticks). Zombies are reaped."""
    if _become is None:
        return set()
    session = os.getsid(0)
    with _lock:
        found = {pid: each for pid in _children() - _own if (each := status(pid)) is not None}
    strangers = {
        pid: each
        for pid, each in found.items()
        if each.session != session and each.start >= since and carries(pid, MARK) not in running
    }
    for pid, each in strangers.items():
        if each.dead:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    return {pid for pid, each in strangers.items() if not each.dead}


def below(roots: Iterable[int], table: dict[int, ProcessStatus]) -> set[int]:
    """Return the processes and all their descendants."""
    found, waiting = set(roots), list(roots)
    while waiting:
        parent = waiting.pop()
        children = [pid for pid, each in table.items() if each.parent == parent and pid not in found]
        found.update(children)
        waiting += children
    return found

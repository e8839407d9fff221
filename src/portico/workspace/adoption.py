"""Processes whose parent has ended: they come to the host, and end with the command that started them.

The attack, or the accident: a program that forks twice, makes a session of its own and clears its environment leaves
no trace of where it came from; its parent is init, and it lives on when its command is over. Linux has a remedy, the
subreaper: orphans go to the nearest ancestor that is one. The host's process becomes one at its start (`adopt`), and
so does each program that it starts (`spawn`). While a command runs, all it has started hangs below it; when it is over,
the rest hangs below the host, where nothing else can come from.

Plugins start their programs with `spawn` (or with what is made of it, `Child` and the agents' supervisor), or in the
host's own session.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h

_lock = threading.Lock()
"""Nobody looks for strangers among our children while one of our own is being started."""
_own: set[int] = set()
_become: Callable[[], object] | None = None


class ProcessStatus(NamedTuple):
    """Of /proc/PID/stat."""

    state: str
    parent: int
    group: int
    session: int
    start: int
    pages: int
    """Of memory that is resident."""

    @property
    def dead(self) -> bool:
        return self.state in "ZX"


def adopt() -> bool:
    """For the process of a host, at its start. False where the system does not have it."""
    global _become
    if sys.platform != "linux":
        return False
    import ctypes  # late: only a host needs it

    prctl = ctypes.CDLL(None).prctl
    if prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        return False
    _become = lambda: prctl(_SUBREAPER, 1, 0, 0, 0)  # noqa: E731 - runs between fork and exec: nothing but the call
    return True


def spawn(command: Any, *, reaper: bool = True, **options: Any) -> "subprocess.Popen[bytes]":
    """`subprocess.Popen`, known to be ours, and the parent of the orphans among its descendants. That costs a
    millisecond: not `reaper` is for programs that start no others."""
    with _lock:
        process: subprocess.Popen[bytes] = subprocess.Popen(command, preexec_fn=_become if reaper else None, **options)
        _own.add(process.pid)
    return process


def forget(pid: int) -> None:
    """It has ended and is reaped: its number may be somebody else's by now."""
    _own.discard(pid)


def processes() -> dict[int, ProcessStatus]:
    """Empty where there is no /proc: nobody can be recognised then, and a wrong kill is worse than an orphan."""
    pids = map(int, filter(str.isdigit, os.listdir("/proc"))) if os.path.isdir("/proc/self") else ()
    return {pid: each for pid in pids if (each := status(pid)) is not None}


def status(pid: int) -> ProcessStatus | None:
    """None: it ended while we looked."""
    try:
        # After the name in brackets, which may contain anything: state, parent, group, session; the start is the 20th,
        # the pages are the 22nd.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return ProcessStatus(fields[0], *(int(fields[at]) for at in (1, 2, 3, 19, 21)))
    except (OSError, ValueError, IndexError):
        return None


def carries(pid: int, variable: str) -> str | None:
    """The value of a variable in the environment of a process; None where there is none, or it is not for us."""
    try:
        said = b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None  # it ended while we looked, or belongs to somebody else
    _, found, rest = said.partition(f"\0{variable}=".encode())
    return rest.partition(b"\0")[0].decode("ascii", "replace") if found else None


def adopted(since: int) -> set[int]:
    """Orphans that came to us, begun at or after that moment (in the kernel's ticks). Dead ones are buried."""
    if _become is None:
        return set()
    me, session = os.getpid(), os.getsid(0)
    with _lock:
        strangers = {
            pid: each
            for pid, each in processes().items()
            if each.parent == me and pid not in _own and each.session != session and each.start >= since
        }
    for pid, each in strangers.items():
        if each.dead:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    return {pid for pid, each in strangers.items() if not each.dead}


def below(roots: Iterable[int], table: dict[int, ProcessStatus]) -> set[int]:
    """The processes and all that descends from them."""
    found, waiting = set(roots), list(roots)
    while waiting:
        parent = waiting.pop()
        children = [pid for pid, each in table.items() if each.parent == parent and pid not in found]
        found.update(children)
        waiting += children
    return found

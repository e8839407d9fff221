"""The registry of agent processes, kept on disk so that a killed host leaves no orphans.

A host that is killed cannot end its children. So each child's identity is stored before it is used (its pid, its start
time, the mark in its environment), and the next start ends the children whose host is gone. The kernel reuses pids:
without the start time or the mark we would eventually kill an unrelated process.
"""

import contextlib
import logging
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from portico.server.home import write_private
from portico.workspace import adoption
from portico.workspace.child import MARK, end_all, started

logger = logging.getLogger("portico.agents")


class RegisteredProcess(Struct):
    """One child, and the host that started it."""

    pid: int
    started: str
    mark: str
    name: str
    host: int
    host_started: str


class ProcessRegistry:
    """`register` a child when it starts, `unregister` it when it has ended, `sweep` at the start of a host."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "agents" / "processes"

    def register(self, pid: int, mark: str, name: str) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        entry = RegisteredProcess(pid, started(pid) or "", mark, name, os.getpid(), started(os.getpid()) or "")
        write_private(self._path(pid, mark), msgspec.json.encode(entry))

    def unregister(self, pid: int, mark: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # the home folder was cleaned up
            self._path(pid, mark).unlink()

    def sweep(self) -> list[str]:
        """End the processes that dead hosts left running; returns their names. Skips children of running hosts."""
        found = [(path, entry) for path in self._paths() if (entry := _read(path)) is not None and not _lives(entry)]
        living = [entry for _, entry in found if family(entry)]
        for entry in living:
            logger.warning("ending %r (process %d), left behind by a host that was killed", entry.name, entry.pid)
        end_all(lambda: [pid for entry in living for pid in family(entry)])
        for path, _ in found:
            path.unlink(missing_ok=True)
        return [entry.name for entry in living]

    def _path(self, pid: int, mark: str) -> Path:
        return self.folder / f"{pid}-{mark[:8]}.json"

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []


def _read(path: Path) -> RegisteredProcess | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=RegisteredProcess)
    except (OSError, msgspec.DecodeError) as error:
        logger.warning("%s is not readable and is left alone: %s", path.name, error)
        return None


def _lives(entry: RegisteredProcess) -> bool:
    """Whether the host of this entry still runs."""
    return bool(entry.host_started) and started(entry.host) == entry.host_started


def family(entry: RegisteredProcess) -> list[int]:
    """The pids of the child and of all processes that carry its mark."""
    living = {pid: each for pid, each in adoption.processes().items() if pid != os.getpid() and not each.dead}
    itself = (entry.pid, entry.started)
    return [pid for pid, each in living.items() if (pid, str(each.start)) == itself or _carries(pid, entry)]


def _carries(pid: int, entry: RegisteredProcess) -> bool:
    return adoption.carries(pid, MARK) == entry.mark

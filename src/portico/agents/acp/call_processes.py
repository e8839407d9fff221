"""The processes that an agent started itself for a call of a turn: cancelling the turn ends them.

Most agents end them when they receive a cancel; Codex does not always. Several conversations may share the agent's
process, and its other children (MCP servers) stay. So only descendants count that started in this turn and run the
command of a call that has not ended, with everything below them.
"""

import asyncio
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from portico.workspace import adoption
from portico.workspace.child import end_all

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish"})
_WORDS = re.compile(r"[\s;&|()'\"<>]+")


class CallProcesses:
    def __init__(self, agent: int) -> None:
        self._agent = agent
        clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        self._since = int(time.clock_gettime(clock) * os.sysconf("SC_CLK_TCK"))

    async def end(self, commands: Sequence[str]) -> None:
        """In a thread, which continues when the caller is cancelled."""
        if commands:
            await asyncio.to_thread(self._end, commands)

    def _end(self, commands: Sequence[str]) -> None:
        known: dict[int, int] = {}
        """By process the time of its start: a number may be used again."""

        def living() -> list[int]:
            table = adoption.processes()
            own = adoption.below({self._agent}, table) - {self._agent}
            roots = {pid for pid in own if table[pid].start >= self._since and _runs_one(pid, commands)}
            roots |= {pid for pid, start in known.items() if pid in table and table[pid].start == start}
            found = adoption.below(roots, table)
            known.update({pid: table[pid].start for pid in found if pid in table})
            return sorted(pid for pid in found if pid in table and not table[pid].dead)

        end_all(living)


def _runs_one(pid: int, commands: Sequence[str]) -> bool:
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
    except OSError:
        return False
    return any(runs(argv, command) for command in commands)


def runs(argv: Sequence[str], command: str) -> bool:
    """Whether a process with these arguments runs the command: a shell (or a sandbox around it) that was given it, or
    the program that took the place of the shell."""
    if not argv or not command.strip():
        return False
    if command in " ".join(argv):
        return True
    program = os.path.basename(argv[0])
    words = set(_WORDS.split(command))
    named = program in words or argv[0] in words
    return named and program not in _SHELLS and all(each in command for each in argv[1:])

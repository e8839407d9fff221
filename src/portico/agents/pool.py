"""Limits on the number of concurrent agent processes and on their total memory.

Fifty sessions of an agent that needs a process per session meant fifty processes of up to 700 MB. So a new process
needs a free slot: an idle process is stopped first (its conversation is resumed later). If all are busy, the turn
waits in a queue and reports that.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from msgspec import Struct

from portico.agents.loop.settings import SettingsFile
from portico.kernel.agent import QUEUED, STARTED
from portico.workspace import adoption

MIB = 1024 * 1024
LOOK_SECONDS = 5.0
"""Poll interval while a turn waits: there is no notification when memory becomes free."""

Tell = Callable[[str], None]


class Bounds(Struct, frozen=True):
    processes: int
    """0: no limit."""
    memory: int
    """In bytes; 0: no limit."""


class PoolMember(Protocol):
    """A supervisor, as the pool sees it."""

    @property
    def pids(self) -> list[int]: ...

    @property
    def used_at(self) -> float: ...

    @property
    def is_idle(self) -> bool:
        """Whether its process is unused and can be stopped."""

    @property
    def resumes(self) -> bool:
        """Whether another process can resume its conversations without receiving the history again."""

    def rest(self) -> None: ...


class _Waiting:
    """A turn in the queue. It is notified once of the reason for the wait, and once when the wait ends."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told = False

    def say(self, why: str) -> None:
        if not self._told:
            self._told = True
            self._tell(f"{QUEUED}: {why}.")

    def start(self) -> None:
        if self._told:
            self._tell(STARTED)


class Pool:
    def __init__(self, bounds: Callable[[], Bounds]) -> None:
        self._bounds = bounds
        self._members = WeakSet[PoolMember]()
        """Weak references: a supervisor that is no longer in use needs no slot."""
        self._turnstile = asyncio.Lock()
        self._changed = asyncio.Event()
        self._queue: list[_Waiting] = []
        self._full_because = ""
        """Set while the first turn in the queue waits; the turns behind it wait for the same reason."""

    @classmethod
    def of(cls, home: Path) -> "Pool":
        """Create a pool that reads its limits from the settings file each time."""
        settings = SettingsFile(home)

        def bounds() -> Bounds:
            agent = settings.current().agent
            return Bounds(agent.max_processes, agent.max_memory_mb * MIB or machine_memory() // 2)

        return cls(bounds)

    async def admit(self, member: PoolMember, tell: Tell) -> None:
        """Wait until there is room for one more process of the member; first come, first served."""
        waiting = _Waiting(tell)
        self._queue.append(waiting)
        try:
            if self._full_because:
                waiting.say(self._full_because)
            async with self._turnstile:
                await self._make_room(member)
            waiting.start()
        finally:
            self._queue.remove(waiting)

    async def _make_room(self, member: PoolMember) -> None:
        self._members.add(member)
        try:
            while (full := self._full(member)) is not None:
                idle = [each for each in self._members if each is not member and each.is_idle]
                if idle:
                    min(idle, key=lambda each: (not each.resumes, each.used_at)).rest()
                else:
                    self._full_because = full
                    for each in self._queue:
                        each.say(full)
                await self._wait()
        finally:
            self._full_because = ""

    def forget(self, member: PoolMember) -> None:
        self._members.discard(member)
        self.changed()

    def changed(self) -> None:
        """Wake the waiting turn, because a process or a turn has ended."""
        self._changed.set()

    async def _wait(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            return

    def _full(self, member: PoolMember) -> str | None:
        """Return why there is no room, or None. If no other member has a process, there is always room."""
        bounds = self._bounds()
        running = [pid for each in self._members if each is not member for pid in each.pids]
        if not running:
            return None
        if bounds.processes and len(running) >= bounds.processes:
            return f"{len(running)} of {bounds.processes} processes are busy (agent.max_processes)"
        used = memory_of(running) if bounds.memory else 0
        if bounds.memory and used >= bounds.memory:
            size = f"{used // MIB} of {bounds.memory // MIB} MB"
            return f"the running ones take {size} of memory (agent.max_memory_mb)"
        return None


def machine_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def memory_of(leaders: Iterable[int]) -> int:
    """Resident bytes of these processes and everything in their process sessions, where /proc exists."""
    wanted = set(leaders)
    pages = sum(each.pages for each in adoption.processes().values() if each.session in wanted)
    return pages * os.sysconf("SC_PAGE_SIZE")

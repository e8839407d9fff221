"""One timer for all schedules: a heap of due times, and a sleep until the first of them."""

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable

from portico import limits
from portico.features.automations.lease import Lease
from portico.kernel.clock import Clock

logger = logging.getLogger("portico.automation")

_BACK_SECONDS = 1.0
"""If the clock is this far behind its last value, it was set back."""


_LEASE_SECONDS = 1.0
"""Interval between checks whether this host has the lease."""


class Timer:
    def __init__(
        self,
        clock: Clock,
        lease: Lease,
        due: Callable[[dict[str, int], int], Awaitable[None]],
        reset: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._lease = lease
        self._due = due
        self._reset = reset
        """Called when the clock was set back: all due times are computed again."""
        self._heap: list[tuple[int, str]] = []
        self._times: dict[str, int] = {}
        self._changed: asyncio.Future[None] | None = None

    def set(self, ident: str, time: int | None) -> None:
        if time is None:
            self._times.pop(ident, None)
        elif self._times.get(ident) != time:
            self._times[ident] = time
            heapq.heappush(self._heap, (time, ident))
            if self._heap[0] == (time, ident) and self._changed is not None and not self._changed.done():
                self._changed.set_result(None)

    def next(self, ident: str) -> int | None:
        return self._times.get(ident)

    async def run(self) -> None:
        before = self._clock.time()
        while True:
            now = self._clock.time()
            if now < before - _BACK_SECONDS:
                self._reset()
            before = now
            if not self._lease.held():
                await self._clock.wait(asyncio.get_running_loop().create_future(), _LEASE_SECONDS)
                continue
            found = self._take(int(now * 1000))
            if found:
                try:
                    await self._due(found, int(now * 1000))
                except Exception:  # the others are still due
                    logger.exception("what was due did not start")
                continue
            self._changed = asyncio.get_running_loop().create_future()
            wait = (self._heap[0][0] / 1000 - self._clock.time()) if self._heap else limits.TIMER_SECONDS
            await self._clock.wait(self._changed, min(max(wait, 0.001), limits.TIMER_SECONDS))

    def _take(self, now: int) -> dict[str, int]:
        """Those that are due, each with its time; entries that were replaced are dropped on the way."""
        found: dict[str, int] = {}
        while self._heap and (self._heap[0][0] <= now or self._times.get(self._heap[0][1]) != self._heap[0][0]):
            time, ident = heapq.heappop(self._heap)
            if self._times.get(ident) == time:
                del self._times[ident]
                found[ident] = time
        return found

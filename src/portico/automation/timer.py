"""One timer for all schedules: a heap of due times, and a sleep until the first of them."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable

from portico import limits
from portico.host.clock import Clock

_BACK_SECONDS = 1.0
"""A clock that stands so far behind where it was has been set back."""


class Timer:
    def __init__(self, clock: Clock, due: Callable[[list[str], int], Awaitable[None]]) -> None:
        self._clock = clock
        self._due = due
        self._heap: list[tuple[int, str]] = []
        self._times: dict[str, int] = {}
        self._changed: asyncio.Future[None] | None = None
        self.reset: Callable[[], None] = lambda: None
        """Called when the clock was set back: every time is asked for again."""

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
                self.reset()
            before = now
            found = self._take(int(now * 1000))
            if found:
                await self._due(found, int(now * 1000))
                continue
            self._changed = asyncio.get_running_loop().create_future()
            wait = (self._heap[0][0] / 1000 - self._clock.time()) if self._heap else limits.TIMER_SECONDS
            await self._clock.wait(self._changed, min(max(wait, 0.001), limits.TIMER_SECONDS))

    def _take(self, now: int) -> list[str]:
        """Those that are due, each once; entries that were replaced are dropped on the way."""
        found: list[str] = []
        while self._heap and (self._heap[0][0] <= now or self._times.get(self._heap[0][1]) != self._heap[0][0]):
            time, ident = heapq.heappop(self._heap)
            if self._times.get(ident) == time:
                del self._times[ident]
                found.append(ident)
        return found

"""A fake clock that a test advances: a wait of two minutes takes one call of `advance`."""

import asyncio
from typing import Any

from portico.kernel.clock import Clock


class FakeClock(Clock):
    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self.set_ahead = 0.0
        """How far the time of day was set ahead, or how long the machine was suspended."""
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def time(self) -> float:
        return self._now + self.set_ahead

    def awake(self) -> float:
        return self._now

    async def wait(self, future: "asyncio.Future[Any]", timeout: float) -> None:
        if timeout <= 0:
            return
        alarm: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self._now + timeout, alarm)
        self._sleepers.append(sleeper)
        try:
            await asyncio.wait({future, alarm}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Advance the time and wake the sleepers whose deadline has passed."""
        self._now += seconds
        for deadline, alarm in self._sleepers:
            if deadline <= self._now and not alarm.done():
                alarm.set_result(None)

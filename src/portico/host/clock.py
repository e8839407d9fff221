"""Time, as the host sees it: tests put another clock in its place and wait for nothing."""

import asyncio
import time
from typing import Any


class Clock:
    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def awake(self) -> float:
        """Seconds from some moment on, for how long something took: nobody sets it, and where the system can tell it
        stands still while the machine sleeps."""
        return time.monotonic()

    async def wait(self, future: "asyncio.Future[Any]", timeout: float) -> None:
        """Returns when the future is done or the time is over; neither cancels nor raises."""
        await asyncio.wait({future}, timeout=timeout)

"""The clock of the host. Tests replace it, so that they do not need to wait."""

import asyncio
import time
from typing import Any


class Clock:
    def time(self) -> float:
        """Return the seconds since the epoch."""
        return time.time()

    def awake(self) -> float:
        """Return monotonic seconds, to measure durations. The clock cannot be set, and stops while the machine sleeps
        if the system supports that."""
        return time.monotonic()

    async def wait(self, future: "asyncio.Future[Any]", timeout: float) -> None:
        """Return when the future is done or after the timeout; neither cancels nor raises."""
        await asyncio.wait({future}, timeout=timeout)

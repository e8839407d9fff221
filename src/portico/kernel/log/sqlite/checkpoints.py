"""Schedules checkpoints of the write-ahead log: concurrent with commits, or before them if commits are faster."""

import asyncio
from collections.abc import Callable

from portico.kernel import limits
from portico.kernel.log.sqlite.worker import Workers


class Checkpoints:
    def __init__(self, checkpoint: Callable[[], int], writer: Workers) -> None:
        self._checkpoint = checkpoint
        """Returns the size of the write-ahead log afterwards, in bytes."""
        self._writer = writer
        self._thread = Workers(1, "portico-checkpoint")
        self._running = False
        self._closed = False
        self.waiting = 0
        """Bytes that were committed since the last one began."""

    def start(self) -> None:
        """Start a checkpoint, unless one runs."""
        if not self._running and not self._closed:
            self._running, self.waiting = True, 0
            self._thread.run(self._checkpoint).add_done_callback(self._done)

    def _done(self, future: "asyncio.Future[int]") -> None:
        """Commits that are faster for so long that the write-ahead log only grows wait for the next checkpoint."""
        self._running = False
        if not self._closed and future.result() > limits.WAL_BYTES:
            self._writer.run(self._checkpoint)

    def stop(self) -> None:
        self._closed = True

    def shutdown(self) -> None:
        self._thread.shutdown()

"""The one dispatcher of commits: the host, its sessions and its features receive what was written, in this order.

Every receiver is guarded. One that raises is logged and listed in `failed` (`/healthz` and the metrics show it); all
others receive the batch, and `append` returns.
"""

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import ParamSpec

from portico.kernel.events import Event, Record
from portico.kernel.log.log import Log

P = ParamSpec("P")
Receive = Callable[[Record], None]
ReceiveBatch = Callable[[Sequence[Record]], None]
logger = logging.getLogger("portico.host")


BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""In seconds. A commit normally takes a millisecond; a quarter of a second indicates a slow disk."""


class Commits:
    def __init__(self, log: Log) -> None:
        self._batches: list[tuple[str, ReceiveBatch]] = []
        self._by_type: dict[type[Event], list[tuple[str, Receive]]] = {}
        self._by_kind: dict[str, list[tuple[str, Receive]]] = {}
        self.failed: dict[str, int] = {}
        """By name: how often a receiver has failed. What it knows may be behind the log until the next start."""
        self.latency = [0] * (len(BUCKETS) + 1)
        """Number of commits by `BUCKETS`: the time from the first event of a batch to its delivery."""
        self.latency_sum = 0.0
        log.on_commit(self._deliver)

    def on(self, name: str, receive: Receive, *types: type[Event]) -> None:
        """Call `receive` with every record of these event types, for the feature of that name."""
        for each in types:
            self._by_type.setdefault(each, []).append((name, receive))

    def on_channel(self, name: str, receive: Receive, kind: str) -> None:
        """Call `receive` with every record of channels of that kind, such as `terminal`."""
        self._by_kind.setdefault(kind, []).append((name, receive))

    def on_batch(self, name: str, receive: ReceiveBatch) -> None:
        """Call `receive` with every batch as it was committed; the first one registered comes before all others."""
        self._batches.append((name, receive))

    def observe(self, seconds: float) -> None:
        self.latency_sum += max(0.0, seconds)
        self.latency[bisect_left(BUCKETS, max(0.0, seconds))] += 1

    def _deliver(self, records: Sequence[Record]) -> None:
        self.observe(time.time() - records[0].time / 1000)
        for name, receive in self._batches[:1]:
            self.call(name, receive, records)
        by_kind, by_type = self._by_kind, self._by_type
        for record in records:
            for name, each in by_kind.get(record.channel.partition("/")[0], ()):
                self.call(name, each, record)
            for name, each in by_type.get(type(record.event), ()):
                self.call(name, each, record)
        for name, receive in self._batches[1:]:
            self.call(name, receive, records)

    def call(self, name: str, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except Exception:  # a bug of one receiver must not keep the commit from the others
            logger.exception("%s failed to process a commit", name)
            self.count(name)

    def count(self, name: str) -> None:
        self.failed[name] = self.failed.get(name, 0) + 1

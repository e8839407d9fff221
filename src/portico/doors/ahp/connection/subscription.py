"""One target while a batch is published: its subscribers, and its replay buffers by dialect.

Most records have no subscribers, so encoders are created only when needed.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from portico.doors.ahp.connection.encoder import Encoder
from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire.envelope import Act
from portico.kernel.events import Record

if TYPE_CHECKING:
    from portico.doors.ahp.connection.broker import Broker
    from portico.doors.ahp.connection.connection import Connection


class Subscription:
    __slots__ = ("_broker", "_buffers", "_encoders", "_hearers", "silent", "target")

    def __init__(self, broker: "Broker", target: Target, hearers: "Collection[Connection]") -> None:
        self.target = target
        self._broker = broker
        self._hearers = hearers
        buffers = [(seed, broker.replay.buffer(target, seed)) for seed in (False, True)]
        self._buffers = [(seed, buffer) for seed, buffer in buffers if buffer is not None]
        self._encoders: dict[bool, Encoder] = {}
        self.silent = not self._hearers and not self._buffers
        """Only the author of the record receives it."""

    def pass_on(self, record: Record, author: "Connection | None") -> None:
        """Send the record to the subscribers, and to its author also without a subscription."""
        told: dict[bool, list[Act]] = {}
        for seed, buffer in self._buffers:
            told[seed] = self._acts(record, seed)
            self._broker.replay.add(buffer, told[seed])
        for connection in self._hearers:
            seed = connection.dialect.seed
            if seed not in told:
                told[seed] = self._acts(record, seed)
            connection.hear(record.seq, self.target, told[seed])
        if author is not None and author not in self._hearers:
            seed = author.dialect.seed
            acts = told[seed] if seed in told else self._acts(record, seed)
            author.hear(record.seq, self.target, [act for act in acts if act.client == author.client_id])

    def _acts(self, record: Record, seed: bool) -> list[Act]:
        encoder = self._encoders.get(seed)
        if encoder is None:
            encoder = self._encoders[seed] = Encoder(self._broker, self.target, seed)
        return encoder.acts(record)

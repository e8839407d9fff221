"""One target while a batch passes: who hears it now, and what is kept for those who come back, by dialect.

Most records pass where nobody listens, so a place begins with nothing but what it was found with.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from portico.doors.ahp.envelope import Act
from portico.doors.ahp.targets import Target
from portico.doors.ahp.teller import Teller
from portico.events import Record

if TYPE_CHECKING:
    from portico.doors.ahp.connection import Connection
    from portico.doors.ahp.exchange import Exchange


class Place:
    __slots__ = ("_exchange", "_hearers", "_rings", "_tellers", "target")

    def __init__(self, exchange: "Exchange", target: Target, hearers: "Collection[Connection]") -> None:
        self.target = target
        self._exchange = exchange
        self._hearers = hearers
        rings = [(seed, exchange.recent.ring(target, seed)) for seed in (False, True)]
        self._rings = [(seed, ring) for seed, ring in rings if ring is not None]
        self._tellers: dict[bool, Teller] = {}

    def pass_on(self, record: Record, author: "Connection | None") -> None:
        """To those who hear it, and to whose words these are, also without a subscription."""
        if not self._hearers and not self._rings and author is None:
            return
        told: dict[bool, list[Act]] = {}
        for seed, ring in self._rings:
            told[seed] = self._acts(record, seed)
            self._exchange.recent.add(ring, told[seed])
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
        teller = self._tellers.get(seed)
        if teller is None:
            teller = self._tellers[seed] = Teller(self._exchange, self.target, seed)
        return teller.acts(record)

"""An event as it came over the wire."""

import msgspec
from msgspec import Struct

from portico.kernel.events import Event, decode


class RemoteRecord(Struct):
    seq: int
    channel: str
    pos: int
    time: int
    raw: msgspec.Raw = msgspec.field(name="event")

    epoch: str = ""
    """Which log it is of."""

    @property
    def event(self) -> Event:
        return decode(bytes(self.raw))


decoder = msgspec.json.Decoder(RemoteRecord)

"""All events as one union, their bytes, and an event in its place in the log."""

from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
from msgspec import Struct, field

from portico.kernel.events import host, session, turn
from portico.kernel.events.shapes import Channel, Event, Json, union_of


class Unreadable(Event, frozen=True, tag="unreadable"):
    """Here was an event that the disk has damaged: one gap, in its place, for every reader alike."""

    reason: Literal["checksum", "page"]


class Unknown(Event, frozen=True, tag="unknown"):
    """An event of a newer Portico: kept as it is, shown as it is, folded into nothing."""

    raw: Json = field(default_factory=dict)


if TYPE_CHECKING:
    AnyEvent = Event
else:
    AnyEvent = union_of(Event, host, session, turn) | Unreadable

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_registered: dict[type[Event], None] = {}
_tags: set[str] = set()


def register_events(*kinds: type[Event]) -> None:
    """Add the events of a feature. Without it, its records are `unknown`, and are kept as they are."""
    global _decoder
    _registered.update(dict.fromkeys(kinds))
    known = known_events()
    _decoder = msgspec.json.Decoder(known)
    _tags.clear()
    _tags.update(str(kind.__struct_config__.tag) for kind in get_args(known))


def known_events() -> Any:
    """Return the union of all events, with those of features."""
    known: Any = AnyEvent
    for kind in _registered:
        known = known | kind
    return known


def is_known(tag: str) -> bool:
    """Return whether events of this type are read, and not `unknown`."""
    return tag in _tags


def encode(event: Event) -> bytes:
    return _encoder.encode(event)


def decode(data: bytes) -> Event:
    """One decoder for the union; a tag it does not know (data of a newer Portico) stays readable."""
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        return Unknown(raw=msgspec.json.decode(data))


def tag(event: Event) -> str:
    """The event's type as the log contains it."""
    name = event.__struct_config__.tag
    assert isinstance(name, str)
    return name


class Record(Struct, eq=False, gc=False):
    """An event in its place: `seq` orders the whole host, `pos` numbers its channel, `time` is in milliseconds.

    `data` is what went to disk; it is decoded at most once, and a door may keep its own wire form of the record
    here (`form`), so that many readers of one door share one encoding.
    """

    seq: int
    channel: Channel
    pos: int
    time: int
    data: bytes
    _event: Event | None = None
    _forms: dict[str, Any] | None = None

    @property
    def event(self) -> Event:
        if self._event is None:
            self._event = decode(self.data)
        return self._event

    def place(self) -> tuple[int, Channel, int, int]:
        return self.seq, self.channel, self.pos, self.time

    def form(self, door: str, make: Any) -> Any:
        if self._forms is None:
            self._forms = {}
        if door not in self._forms:
            self._forms[door] = make(self)
        return self._forms[door]

    def __repr__(self) -> str:
        return f"Record({self.seq}, {self.channel}:{self.pos}, {self.data.decode()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, Channel, int, bytes]:
        return self.seq, self.channel, self.pos, self.data

"""From said actions to frames: numbered, addressed and encoded once for everybody who hears them."""

from msgspec import Struct

from portico.doors.ahp import wire
from portico.doors.ahp.numbers import number
from portico.doors.ahp.record import Json
from portico.doors.ahp.translate import Said, origin_of

_PREFIX = {
    "seed": "session",
    "session": "session",
    "chat": "chat",
    "annotations": "annotations",
    "terminal": "terminal",
    "root": "root",
    "changeset": "changeset",
    "watch": "resourceWatch",
}
_PLACE = {"session": 200, "annotations": 300, "root": 400, "changeset": 450, "watch": 450}
"""Where a target's actions begin among a record's numbers: always the same, so that numbers mean the same again."""

_HEAD = b'{"jsonrpc":"2.0","method":"action","params":'


class Act(Struct, frozen=True, gc=False):
    """One action, ready to be sent."""

    number: int
    type: str
    frame: bytes
    client: str | None
    before: str | None

    @property
    def envelope(self) -> bytes:
        """What goes into the answer of a reconnect."""
        return self.frame[len(_HEAD) : -1]


class Address:
    """Where actions go; what all of them have in common is encoded once."""

    __slots__ = ("_head", "kind", "name", "place", "seed")

    def __init__(self, kind: str, name: str, seed: bool) -> None:
        self.kind = kind
        self.name = name
        self.seed = seed
        self.place = _PLACE.get(kind, 0)
        self._head = _HEAD + (b'{"action":' if seed else b'{"channel":%b,"action":' % wire.encode(name))

    def frame(self, action: Json, at: int, origin: Json | None) -> bytes:
        """The same bytes as `framed(enveloped(...))`."""
        if origin is None:
            return b'%b%b,"serverSeq":%d}}' % (self._head, wire.encode(action), at)
        return b'%b%b,"serverSeq":%d,"origin":%b}}' % (self._head, wire.encode(action), at, wire.encode(origin))


def acts(to: Address, seq: int, said: list[Said]) -> list[Act]:
    """The actions of one record on one target."""
    return [_act(to, at, each) for at, each in enumerate(said, number(seq, to.place))]


def _act(to: Address, at: int, said: Said) -> Act:
    action = typed(to.kind, to.name, said.name, said.fields, to.seed)
    kind: str = action["type"]
    origin = origin_of(said.by, kind) if said.by else None
    client = origin["clientId"] if origin is not None else None
    return Act(at, kind, to.frame(action, at, origin), client, said.before)


def typed(kind: str, name: str, action: str, fields: Json, seed: bool) -> Json:
    """With its whole type; version 1 says inside the action where it belongs."""
    made: Json = {"type": f"{_PREFIX[kind]}/{action}", **fields}
    if seed and kind in ("seed", "terminal"):
        made["session" if kind == "seed" else "terminal"] = name
    return made


def enveloped(name: str, action: Json, at: int, seed: bool, origin: Json | None, reason: str | None = None) -> Json:
    made: Json = {"action": action, "serverSeq": at} if seed else {"channel": name, "action": action, "serverSeq": at}
    if origin is not None:
        made["origin"] = origin
    return made | ({"rejectionReason": reason} if reason is not None else {})


def framed(envelope: Json) -> bytes:
    return b"%b%b}" % (_HEAD, wire.encode(envelope))

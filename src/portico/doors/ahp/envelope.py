"""From said actions to frames: numbered, addressed and encoded once for everybody who hears them."""

import msgspec
from msgspec import Struct

from portico.doors.ahp.numbers import SPAN
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

_encode = msgspec.json.Encoder().encode
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

    __slots__ = ("_head", "_inside", "_place", "_prefix", "name")

    def __init__(self, kind: str, name: str, seed: bool) -> None:
        self.name = name
        self._place = _PLACE.get(kind, 0)
        self._prefix = _PREFIX[kind] + "/"
        self._inside = {"seed": "session", "terminal": "terminal"}.get(kind) if seed else None
        self._head = _HEAD + (b'{"action":' if seed else b'{"channel":%b,"action":' % _encode(name))

    def action(self, said: Said) -> Json:
        """With its whole type; version 1 says inside the action where it belongs."""
        made: Json = {"type": self._prefix + said.name, **said.fields}
        if self._inside is not None:
            made[self._inside] = self.name
        return made

    def acts(self, seq: int, said: list[Said]) -> list[Act]:
        """The actions of one record: nearly always one."""
        first = seq * SPAN + self._place
        if len(said) == 1:
            return [self.act(said[0], first)]
        return [self.act(each, at) for at, each in enumerate(said, first)]

    def act(self, said: Said, at: int) -> Act:
        """Its frame has the same bytes as `framed(enveloped(...))`."""
        action = self.action(said)
        kind: str = action["type"]
        origin = origin_of(said.by, kind) if said.by else None
        if origin is None:
            frame = self._head + _encode(action) + b',"serverSeq":%d}}' % at
            return Act(at, kind, frame, None, said.before)
        frame = b'%b%b,"serverSeq":%d,"origin":%b}}' % (self._head, _encode(action), at, _encode(origin))
        return Act(at, kind, frame, origin["clientId"], said.before)


def enveloped(name: str, action: Json, at: int, seed: bool, origin: Json | None, reason: str | None = None) -> Json:
    made: Json = {"action": action, "serverSeq": at} if seed else {"channel": name, "action": action, "serverSeq": at}
    if origin is not None:
        made["origin"] = origin
    return made | ({"rejectionReason": reason} if reason is not None else {})


def framed(envelope: Json) -> bytes:
    return b"%b%b}" % (_HEAD, _encode(envelope))

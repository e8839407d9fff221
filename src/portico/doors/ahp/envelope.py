"""From said actions to frames: numbered, addressed and encoded once for everybody who hears them."""

from typing import NamedTuple

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


class Act(NamedTuple):
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


def acts(kind: str, name: str, seq: int, said: list[Said], seed: bool) -> list[Act]:
    """The actions of one record on one target. `name` is the target's URI."""
    first = _PLACE.get(kind, 0)
    return [_act(kind, name, number(seq, first + index), each, seed) for index, each in enumerate(said)]


def _act(kind: str, name: str, at: int, said: Said, seed: bool) -> Act:
    action = typed(kind, name, said.name, said.fields, seed)
    origin = origin_of(said.by, action["type"]) if said.by else None
    frame = framed(enveloped(name, action, at, seed, origin))
    return Act(at, action["type"], frame, origin["clientId"] if origin is not None else None, said.before)


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

"""Builds frames from actions: numbered, addressed and encoded once for all subscribers."""

import msgspec
from msgspec import Struct, structs

from portico.doors.ahp.wire import origin
from portico.doors.ahp.wire.numbers import SPAN
from portico.doors.ahp.wire.record import Json

_PREFIX = {
    "seed": "session",
    "session": "session",
    "chat": "chat",
    "annotations": "annotations",
    "terminal": "terminal",
    "root": "root",
    "changeset": "changeset",
    "watch": "resourceWatch",
    "automations": "automation",
    "run": "automationRun",
}
_PLACE = {
    "session": 200,
    "annotations": 300,
    "root": 400,
    "changeset": 450,
    "watch": 450,
    "automations": 450,
    "run": 450,
}
"""Offset of a target's actions in the numbers of a record. It is fixed, so a replay uses the same numbers."""

_INSIDE = {"seed": "session", "terminal": "terminal"}
"""The field of an action that contains its subject in version 1."""

_encode = msgspec.json.Encoder().encode
_HEAD = b'{"jsonrpc":"2.0","method":"action","params":'


class Outgoing(Struct, frozen=True, gc=False):
    """One action of a conversation: its name without the dialect's prefix, and its fields."""

    name: str
    fields: Json
    by: str = ""
    before: str | None = None
    """Only for versions older than this one."""
    since: str | None = None
    """Only for this version and later ones."""


class Act(Struct, frozen=True, gc=False):
    """One action, ready to be sent."""

    number: int
    type: str
    frame: bytes
    client: str | None
    before: str | None
    since: str | None = None


class ActionTarget:
    """Where actions go; what many of them have in common is encoded once."""

    __slots__ = ("_author", "_heads", "_inside", "_opening", "_place", "_prefix", "name")

    def __init__(self, kind: str, name: str, seed: bool) -> None:
        self.name = name
        self._place = _PLACE.get(kind, 0)
        self._prefix = _PREFIX[kind] + "/"
        self._inside = _INSIDE.get(kind) if seed else None
        self._opening = _HEAD + (b'{"action":' if seed else b'{"channel":%b,"action":' % _encode(name))
        self._heads: dict[str, tuple[str, bytes]] = {}
        self._author = ("", "", b"")

    def action(self, said: Outgoing) -> Json:
        """The action with its full type; in version 1 the action also contains its subject."""
        made: Json = {"type": self._prefix + said.name, **said.fields}
        if self._inside is not None:
            made[self._inside] = self.name
        return made

    def acts(self, seq: int, said: list[Outgoing]) -> list[Act]:
        """The actions of one record: nearly always one."""
        first = seq * SPAN + self._place
        if len(said) == 1:
            return [self.act(said[0], first)]
        return [self.act(each, at) for at, each in enumerate(said, first)]

    def act(self, said: Outgoing, at: int) -> Act:
        """The frame has the same bytes as `framed(enveloped(...))`; building it from pieces takes half the time."""
        type, head = self._heads.get(said.name) or self._head(said.name)
        fields = said.fields if self._inside is None else {**said.fields, self._inside: self.name}
        body = b"," + _encode(fields)[1:] if fields else b"}"
        if not said.by.startswith(origin.CLIENT):
            return Act(at, type, b'%b%b,"serverSeq":%d}}' % (head, body, at), None, said.before, said.since)
        client, author = self._author_of(said.by, type)
        return Act(at, type, b'%b%b,"serverSeq":%d%b}}' % (head, body, at, author), client, said.before, said.since)

    def _head(self, name: str) -> tuple[str, bytes]:
        type = self._prefix + name
        made = self._heads[name] = (type, self._opening + b'{"type":%b' % _encode(type))
        return made

    def _author_of(self, by: str, type: str) -> tuple[str | None, bytes]:
        """The client that receives the action as an echo, if any. Caches the last author, which often repeats."""
        head, client, opening = self._author
        who, _, tail = by.partition("#")
        number, _, of = tail.partition(".")
        if who != head or of != type or not number.isdecimal():
            said = origin.read(by)
            if said is None or said.type != type:
                return None, b""
            client, number = said.client, str(said.number)
            opening = b',"origin":{"clientId":%b,"clientSeq":' % _encode(client)
            self._author = (origin.head(client), client, opening)
        return client, b"%b%b}" % (opening, number.encode())


def enveloped(name: str, action: Json, at: int, seed: bool, origin: Json | None, reason: str | None = None) -> Json:
    made: Json = {"action": action, "serverSeq": at} if seed else {"channel": name, "action": action, "serverSeq": at}
    if origin is not None:
        made["origin"] = origin
    return made | ({"rejectionReason": reason} if reason is not None else {})


def framed(envelope: Json) -> bytes:
    return b"%b%b}" % (_HEAD, _encode(envelope))


def renamed(act: Act, kind: str, name: str, seed: bool) -> Act:
    """The same action under another name of its channel: clients find a state by the name they subscribed with."""
    envelope = msgspec.json.decode(act.frame)["params"]
    if not seed:
        envelope["channel"] = name
    elif kind in _INSIDE:
        envelope["action"][_INSIDE[kind]] = name
    return structs.replace(act, frame=framed(envelope))


def together(acts: list[Act]) -> bytes:
    """The envelopes of these frames as one list, for the answer of a reconnect."""
    start = len(_HEAD)
    return b"[%b]" % b",".join([act.frame[start:-1] for act in acts])

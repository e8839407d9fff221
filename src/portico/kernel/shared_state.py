"""What all sessions of a host share: remembered answers, and the settings that editors push.

It follows from the committed events of the host's channel and changes at no other time. Each such event has a note in
its commit: a start reads the notes and no history. Each grant has its own, since other hosts add and revoke them, too.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from portico.kernel import events as e
from portico.kernel.decide.decision import HostState
from portico.kernel.errors import PorticoError
from portico.kernel.events import HOST, Grant, Json, number_of
from portico.kernel.log.notes import KeyValue

if TYPE_CHECKING:
    from portico.kernel.host import Host

GRANTS = "grants"
SETTINGS = "ahp.root"
"""Under which the settings that editors push are stored: the name of the first protocol that had them."""


class Grants(dict[str, Grant]):
    """The grants by id."""

    def __init__(self, host: "Host") -> None:
        super().__init__()
        self._host = host
        self._latest = 0

    def now(self) -> int:
        """Return the latest time seen, so that expired grants stay expired when the clock is set back."""
        self._latest = max(self._latest, self._host.now())
        return self._latest

    def live(self) -> dict[str, Grant]:
        now = self.now()
        return {ident: grant for ident, grant in self.items() if grant.expires > now}


class SharedState:
    def __init__(self, host: "Host") -> None:
        self._host = host
        self.lock = asyncio.Lock()
        """Held from a decision about the shared state until its commit."""
        self.grants = Grants(host)
        self.settings: Json = {}
        self._number = 0

    async def load(self) -> None:
        log, settings = self._host.log, await self._host.log.get_kv(HOST, SETTINGS)
        for channel, data in (await log.list_kv(GRANTS)).items():
            if channel == HOST:  # up to 0.1 one value had all grants
                self.grants.update(old := msgspec.json.decode(data, type=dict[str, Grant]))
                for note in (KeyValue(HOST, GRANTS, None), *map(_note_of, old.values())):
                    log.put_kv(*note[:3])
            else:
                grant = msgspec.json.decode(data, type=Grant)
                self.grants[grant.id] = grant
        self._set(msgspec.json.decode(settings) if settings else {})

    def apply(self, event: e.Event) -> None:
        match event:
            case e.GrantAdded(grant=grant):
                self.grants[grant.id] = grant
            case e.GrantRevoked(grant=ident):
                self.grants.pop(ident, None)
            case e.ClientKept(key=key, value=value) if key == SETTINGS:
                self._set(value or {})

    def _set(self, settings: Json) -> None:
        self.settings = settings
        self._host.rules.push(settings)

    def state(self) -> HostState:
        host = self._host
        numbers = map(number_of, (f"-{host.log.head(HOST)}", f"-{self._number}", *self.grants))
        self._number = host.members.number_after(max(numbers))
        return HostState(
            frozenset(host.agents), dict(self.grants), self.settings, self.grants.now(), f"grant-{self._number}"
        )

    @contextlib.contextmanager
    def noted(self, events: Iterable[e.Event]) -> Iterator[None]:
        """Add the notes of these events to their commit; withdraw them if the commit is refused."""
        notes = [note for note in map(_note, events) if note is not None]
        for channel, key, data, *_ in notes:
            self._host.log.put_kv(channel, key, data, bound=True)
        try:
            yield
        except PorticoError:
            for channel, key, *_ in notes:
                self._host.log.withdraw_kv(channel, key)
            raise


def _note_of(grant: Grant) -> KeyValue:
    return KeyValue(f"grant/{grant.id}", GRANTS, msgspec.json.encode(grant))


def _note(event: e.Event) -> KeyValue | None:
    match event:
        case e.GrantAdded(grant=grant):
            return _note_of(grant)
        case e.GrantRevoked(grant=ident):
            return KeyValue(f"grant/{ident}", GRANTS, None)
        case e.ClientKept(key=key, value=value) if key == SETTINGS:
            return KeyValue(HOST, SETTINGS, msgspec.json.encode(value or {}))
    return None

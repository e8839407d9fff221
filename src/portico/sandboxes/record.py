"""The record of the hosts that a session connected to: one event per host and turn, and the totals of the session.

Connections are counted in memory while a turn runs and written when it ends, together with the totals, in one commit.
A host that is killed loses the counts of the running turn and nothing else.
"""

import asyncio
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from portico import events as e
from portico.errors import LogUnavailable
from portico.events import Channel, Record
from portico.host.host import Host
from portico.host.session import Session
from portico.sandbox.network import Destination
from portico.sandboxes.events import NetworkReached

HOSTS = 200
"""Hosts of one turn that are listed one by one: far more than a build needs. Others are counted together."""
TOTAL_HOSTS = 1_000
"""The same for a session: 200 KB."""
OTHERS = Destination("*", 0)
_NAMES = 8
"""People and rules that are named for one host."""
_KEY = "network"


class HostUse(Struct, omit_defaults=True):
    """The connections to one host."""

    host: str
    port: int
    count: int = 0
    refused: int = 0
    sent: int = 0
    received: int = 0
    first: int = 0
    last: int = 0
    allowed_by: list[str] = []
    refused_by: list[str] = []

    def seen(self, now: int) -> None:
        self.first, self.last = self.first or now, now

    def add(self, other: "HostUse") -> None:
        self.count += other.count
        self.refused += other.refused
        self.sent += other.sent
        self.received += other.received
        self.first = min(filter(None, (self.first, other.first)), default=0)
        self.last = max(self.last, other.last)
        for by in other.allowed_by:
            _name(self.allowed_by, by)
        for by in other.refused_by:
            _name(self.refused_by, by)


class NetworkUse(Struct, omit_defaults=True):
    """The hosts that a session or a job connected to, or tried to."""

    hosts: list[HostUse] = []


def _name(names: list[str], by: str) -> None:
    if by and by not in names and len(names) < _NAMES:
        names.append(by)


class Tally:
    """Counts by host, up to a number of hosts."""

    def __init__(self, most: int, uses: Iterable[HostUse] = ()) -> None:
        self._most = most
        self._uses: dict[Destination, HostUse] = {}
        self.merge(uses)

    def of(self, target: Destination) -> HostUse:
        found = self._uses.get(target)
        if found is None:
            target = target if len(self._uses) < self._most else OTHERS
            found = self._uses.setdefault(target, HostUse(target.host, target.port))
        return found

    def merge(self, uses: Iterable[HostUse]) -> None:
        for use in uses:
            self.of(Destination(use.host, use.port)).add(use)

    @property
    def uses(self) -> list[HostUse]:
        return list(self._uses.values())


class NetworkRecord:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._live: dict[tuple[Channel, str], Tally] = {}
        """By session and turn, not written yet."""
        self._writing = asyncio.Lock()
        host.commits.on(_KEY, self._turn_ended, e.TurnEnded)

    # -- counting ------------------------------------------------------------------------------------------------

    def opened(self, session: Session, target: Destination, by: str) -> None:
        use = self._use(session, target)
        use.count += 1
        _name(use.allowed_by, by)

    def refused(self, session: Session, target: Destination, by: str) -> None:
        use = self._use(session, target)
        use.refused += 1
        _name(use.refused_by, by)

    def moved(self, session: Session, target: Destination, sent: int, received: int) -> None:
        use = self._use(session, target)
        use.sent += sent
        use.received += received

    def _use(self, session: Session, target: Destination) -> HostUse:
        turn = session.running
        key = (session.channel, turn.id if turn is not None else "")
        tally = self._live.get(key)
        if tally is None:
            tally = self._live[key] = Tally(HOSTS)
        use = tally.of(target)
        use.seen(self._host.now())
        return use

    # -- writing -------------------------------------------------------------------------------------------------

    def _turn_ended(self, record: Record) -> None:
        assert isinstance(record.event, e.TurnEnded)
        if any(channel == record.channel for channel, _ in self._live):
            self._host.own(self.write(record.channel, record.event.turn), f"network of {record.channel}")

    async def write(self, channel: Channel, ended: str = "") -> None:
        """Write what was counted for turns that have ended, and between turns. If the log cannot write, it is kept for
        the next time."""
        async with self._writing:
            taken = {key: self._live.pop(key).uses for key in self._written_now(channel, ended)}
            try:
                await self._append(channel, taken)
            except LogUnavailable:
                for key, uses in taken.items():
                    self._live.setdefault(key, Tally(HOSTS)).merge(uses)

    def _written_now(self, channel: Channel, ended: str) -> list[tuple[Channel, str]]:
        session = self._host.find(channel.removeprefix("session/"))
        turn = session.running if session is not None else None
        running = turn.id if turn is not None and turn.id != ended else None
        return [key for key in self._live if key[0] == channel and key[1] != running]

    async def _append(self, channel: Channel, taken: dict[tuple[Channel, str], list[HostUse]]) -> None:
        if not taken:
            return
        totals = Tally(TOTAL_HOSTS, await self._stored(channel))
        for (_, turn), uses in taken.items():
            totals.merge(uses)
            for use in uses:
                self._host.log.post(channel, NetworkReached(turn=turn, **msgspec.structs.asdict(use)))
        self._host.log.put_kv(channel, _KEY, msgspec.json.encode(totals.uses))
        await self._host.log.flush()

    async def write_all(self) -> None:
        for channel in {channel for channel, _ in self._live}:
            await self.write(channel)

    def forget(self, session: Session) -> None:
        """Drop what was counted: the session is deleted."""
        for key in [key for key in self._live if key[0] == session.channel]:
            del self._live[key]

    # -- reading -------------------------------------------------------------------------------------------------

    async def of(self, *channels: Channel) -> NetworkUse:
        """Return the hosts of these sessions, including the running turns, the latest first."""
        found = Tally(TOTAL_HOSTS)
        for channel in channels:
            found.merge(await self._stored(channel))
            for key, tally in self._live.items():
                if key[0] == channel:
                    found.merge(tally.uses)
        return NetworkUse(sorted(found.uses, key=lambda use: use.last, reverse=True))

    async def _stored(self, channel: Channel) -> list[HostUse]:
        data = await self._host.log.get_kv(channel, _KEY)
        return msgspec.json.decode(data, type=list[HostUse]) if data is not None else []

"""The record of the hosts that a session or a step of a job connected to: one event per host and turn, and the totals.

Connections are counted in memory while a turn runs and written when it ends, together with the totals, in one commit.
A host that is killed loses the counts of the running turn and nothing else.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import msgspec

from portico.features.sandboxes.events import NetworkReached
from portico.features.sandboxes.shapes import HostUse, NetworkUse, name_once
from portico.kernel import events as e
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Channel, Record
from portico.kernel.feature import Feature, receive
from portico.kernel.host import Host
from portico.kernel.services import HostServices
from portico.kernel.session import Session
from portico.sandbox.network import Destination, Verdict

HOSTS = 200
"""Hosts of one turn that are listed one by one: far more than a build needs. Others are counted together."""
TOTAL_HOSTS = 1_000
"""The same for a session: 200 KB."""
OTHERS = Destination("*", 0)
_KEY = "network"


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
        return [use for use in self._uses.values() if use.count or use.refused or use.sent or use.received]

    def drain(self) -> list[HostUse]:
        """Return what was counted since the last time, and count from zero."""
        found = self.uses
        self._uses = {
            target: HostUse(use.host, use.port, first=use.first, last=use.last) for target, use in self._uses.items()
        }
        return found


class NetworkRecord(Feature):
    name = "network"
    events = (NetworkReached,)

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._live: dict[tuple[Channel, str], Tally] = {}
        """By session and turn, not written yet."""
        self._writing = asyncio.Lock()
        self.after_turn: dict[Channel, Callable[[], Coroutine[Any, Any, None]]] = {}
        """What else is done after each turn of a session with a sandbox."""

    # -- counting ------------------------------------------------------------------------------------------------

    def opened(self, session: Session, target: Destination, by: str) -> None:
        self.of_session(session).opened(target, by)

    def refused(self, session: Session, target: Destination, by: str) -> None:
        self.of_session(session).refused(target, by)

    def moved(self, session: Session, target: Destination, sent: int, received: int) -> None:
        self.of_session(session).moved(target, sent, received)

    def of_session(self, session: Session) -> "Counter":
        turn = session.running
        return Counter(self, session.channel, turn.id if turn is not None else "")

    def counter(self, channel: Channel) -> "Counter":
        """Counts for a channel without turns. Call `write` when it has ended."""
        return Counter(self, channel)

    def use(self, channel: Channel, turn: str, target: Destination) -> HostUse:
        key = (channel, turn)
        tally = self._live.get(key)
        if tally is None:
            tally = self._live[key] = Tally(HOSTS)
        use = tally.of(target)
        if not use.first:  # a host that is new in this turn is written now: the record survives a kill of the host
            self.host.own(self.write(channel, running=True), f"network of {channel}")
        use.seen(self.host.now())
        return use

    # -- writing -------------------------------------------------------------------------------------------------

    @receive(e.TurnEnded)
    def _turn_ended(self, record: Record) -> None:
        assert isinstance(record.event, e.TurnEnded)
        if any(channel == record.channel for channel, _ in self._live):
            self.host.own(self.write(record.channel, record.event.turn), f"network of {record.channel}")
        if (also := self.after_turn.get(record.channel)) is not None:
            self.host.own(also(), f"after a turn of {record.channel}")

    async def write(self, channel: Channel, ended: str = "", *, running: bool = False) -> None:
        """Write what was counted for turns that have ended, and between turns; with `running`, also for the turn that
        runs. If the log cannot write, it is kept for the next time."""
        async with self._writing:
            over = self._written_now(channel, ended)
            taken = {key: self._live.pop(key).drain() for key in over}
            if running:
                taken |= {key: tally.drain() for key, tally in self._live.items() if key[0] == channel}
            try:
                await self._append(channel, taken)
            except LogUnavailable:
                for key, uses in taken.items():
                    self._live.setdefault(key, Tally(HOSTS)).merge(uses)

    def _written_now(self, channel: Channel, ended: str) -> list[tuple[Channel, str]]:
        session = self.host.find(channel.removeprefix("session/"))
        turn = session.running if session is not None else None
        running = turn.id if turn is not None and turn.id != ended else None
        return [key for key in self._live if key[0] == channel and key[1] != running]

    async def _append(self, channel: Channel, taken: dict[tuple[Channel, str], list[HostUse]]) -> None:
        if not any(taken.values()):
            return
        totals = Tally(TOTAL_HOSTS, await self._stored(channel))
        for (_, turn), uses in taken.items():
            totals.merge(uses)
            for use in uses:
                self.host.log.post(channel, NetworkReached(turn=turn, **msgspec.structs.asdict(use)))
        self.host.log.put_kv(channel, _KEY, msgspec.json.encode(totals.uses))
        await self.host.log.flush()

    async def sweep(self) -> None:
        for channel in {channel for channel, _ in self._live}:
            await self.write(channel)

    async def close(self) -> None:
        await self.sweep()

    async def forget(self, session: Session, by: str) -> None:
        for key in [key for key in self._live if key[0] == session.channel]:
            del self._live[key]

    # -- reading -------------------------------------------------------------------------------------------------

    async def of(self, *channels: Channel) -> NetworkUse:
        """Return the hosts of these sessions, including the running turns, the latest first."""
        found = Tally(TOTAL_HOSTS)
        async with self._writing:  # what is being written is neither live nor stored
            for channel in channels:
                found.merge(await self._stored(channel))
                for key, tally in self._live.items():
                    if key[0] == channel:
                        found.merge(tally.uses)
        return NetworkUse(sorted(found.uses, key=lambda use: use.last, reverse=True))

    async def _stored(self, channel: Channel) -> list[HostUse]:
        data = await self.host.log.get_kv(channel, _KEY)
        return msgspec.json.decode(data, type=list[HostUse]) if data is not None else []


def record_of(host: HostServices) -> NetworkRecord:
    return next(part for part in host.parts if isinstance(part, NetworkRecord))


class Counter:
    """Counts the connections of one turn, or of a step of a job that sends requests itself (`EgressGate`)."""

    def __init__(self, record: NetworkRecord, channel: Channel, turn: str = "") -> None:
        self._record = record
        self._channel = channel
        self._turn = turn

    async def decide(self, target: Destination) -> Verdict:
        return Verdict(False, "policy", f"Nobody is asked about {target}.")

    def opened(self, target: Destination, by: str) -> None:
        use = self._record.use(self._channel, self._turn, target)
        use.count += 1
        name_once(use.allowed_by, by)

    def refused(self, target: Destination, by: str) -> None:
        use = self._record.use(self._channel, self._turn, target)
        use.refused += 1
        name_once(use.refused_by, by)

    def moved(self, target: Destination, sent: int, received: int) -> None:
        use = self._record.use(self._channel, self._turn, target)
        use.sent += sent
        use.received += received

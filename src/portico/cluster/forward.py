"""Forwards a command to another host: retried until there is an answer, executed at most once."""

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from portico.cluster.host_tables import SCHEDULER, Peer
from portico.cluster.link import NOT_OWNER, Told, raised
from portico.kernel import commands as c
from portico.kernel.errors import PlaceAway, Unreachable
from portico.kernel.events import Channel
from portico.kernel.state import Summary

if TYPE_CHECKING:
    from portico.cluster.cluster import Cluster

TRY_SECONDS = 30.0
"""A command is retried for as long as a takeover may take: the lease and the poll interval."""
PAUSE = 0.1


def away(place: str, peers: list[Peer]) -> PlaceAway:
    """`peers`: the hosts of that place."""
    seconds = min((peer.away for peer in peers), default=0)
    return PlaceAway(
        f"No host of the place {place!r} is there (last seen {seconds} seconds ago), and only they see this session's "
        "files. It can be read; start a host there, or have an administrator give it up (portico hosts give-up).",
        retry_after=5,
    )


def _reachable(owner: int, peers: list[Peer]) -> Peer | None:
    return next((peer for peer in peers if peer.id == owner and peer.alive and peer.info.link), None)


class Forwarding:
    def __init__(
        self, cluster: "Cluster", command: c.Command, caller: c.Caller, channel: Channel, to: Peer | None = None
    ) -> None:
        self._cluster = cluster
        self._command = command
        self._channel = channel
        self._to = to
        self._sure = command.about != "terminal"
        """Terminal input is not retried: it may have arrived."""
        self._known = cluster.peers if self._sure else []
        """The hosts as of the last poll. If that is outdated, no host answers, and the database is queried."""
        if self._sure and not caller.request:
            caller = replace(caller, request=f"forward-{secrets.token_hex(12)}")
        self._caller = caller

    async def send(self) -> Any:
        loop = asyncio.get_running_loop()
        until = loop.time() + TRY_SECONDS
        while True:
            try:
                told = await self._ask()
            except Unreachable as error:
                if not self._sure or loop.time() > until:
                    raise Unreachable(error.message, retry_after=1) from None
                told = Told(code=NOT_OWNER)
            if told.code != NOT_OWNER:
                return await read_answer(self._cluster, self._command, told)
            if loop.time() > until:
                raise Unreachable("The host that runs this does not answer; try again.", retry_after=1)
            await asyncio.sleep(PAUSE)
            if self._to is not None:  # another host may start it as well
                return await self._cluster._host.commands.do_at_owner(self._command, self._caller)
            if self._channel:
                owner, _ = await self._cluster.owner(self._channel, fresh=True)
                if owner == self._cluster.log.lease.host:  # this host has taken it over since
                    return await self._cluster._host.commands.do_at_owner(self._command, self._caller)

    async def _ask(self) -> Told:
        peer = self._to or await self._peer()
        if peer is None:
            return Told(code=NOT_OWNER)
        return await self._cluster.ask(peer, self._command, self._caller, self._channel)

    async def _peer(self) -> Peer | None:
        """Return the owner; None while a takeover by another host of its place is pending."""
        owner, place = await self._cluster.owner(self._channel)
        known, self._known = self._known, []
        if found := _reachable(owner, known):
            return found
        peers = await self._cluster.roster.peers()
        if found := _reachable(owner, peers):
            return found
        if self._channel == SCHEDULER or any(peer.alive and peer.place == place for peer in peers):
            return None
        raise away(place, [peer for peer in peers if peer.place == place])


async def read_answer(cluster: "Cluster", command: c.Command, told: Told) -> Any:
    """Return the answer of the other host, or raise its error."""
    cluster.forwarded += 1
    if told.code:
        raise raised(told)
    await cluster.log.seen(told.seq)  # a later request to this host finds what was done
    if told.kind == "id":
        return cluster._host.commands.shown(command, msgspec.json.decode(told.data, type=str))
    if told.kind == "Summary":
        ident = msgspec.json.decode(told.data, type=Summary).id
        session = cluster._host.find(ident)
        return session.summary if session is not None else msgspec.json.decode(told.data, type=Summary)
    return msgspec.json.decode(told.data, type=c.answer_types().get(told.kind, Any))

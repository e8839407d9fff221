"""A command with an id runs once on all hosts: the receipt of the command is its claim.

The first host inserts a claim under the receipt's key, which is unique; the commit of the command replaces it with the
receipt. A second host that gets the same id asks the host that holds the claim, which answers both requests with one
run. A claim names the epoch of its host, so it ends with the fence: afterwards that host cannot commit, and another
may take the claim.

Commands about a session, job or terminal need no claim: only their owner runs them.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from portico.cluster.forward import PAUSE, TRY_SECONDS, read_answer
from portico.cluster.host_tables import Peer
from portico.cluster.link import NOT_OWNER
from portico.kernel import commands as c
from portico.kernel.errors import LogUnavailable, Unreachable
from portico.kernel.events import HOST
from portico.kernel.members import PeerAnswer

if TYPE_CHECKING:
    from portico.cluster.cluster import Cluster

_sender = ContextVar("sender", default=0)


@contextlib.contextmanager
def sent_by(host: int) -> Iterator[None]:
    """Commands inside were sent by that host, and it gives up its claim to them."""
    token = _sender.set(host)
    try:
        yield
    finally:
        _sender.reset(token)


class Claim(Struct):
    """Stored in place of a `Receipt`, whose `host` is 0."""

    digest: str
    host: int = 0
    epoch: int = 0


class Claims:
    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster

    async def claim(self, command: c.Command, caller: c.Caller, key: str, digest: str) -> PeerAnswer | bytes | None:
        loop = asyncio.get_running_loop()
        until = loop.time() + TRY_SECONDS
        log = self._cluster.log
        while True:
            mine = msgspec.json.encode(Claim(digest, log.lease.host, log.lease.epoch))
            if await log.replace_kv(HOST, key, None, mine):
                return mine
            data = await log.get_kv(HOST, key)
            if data is None:
                continue  # released in between
            held = msgspec.json.decode(data, type=Claim)
            if not held.host:
                return None
            if held.host in (log.lease.host, _sender.get()):  # left by a lost commit, or passed on to this host
                taken = True
            else:
                peer = await self._holder(held)
                if peer is not None and (answered := await self._ask(peer, command, caller)) is not None:
                    return answered
                taken = peer is None and await self._cluster.roster.is_fenced(held.host, held.epoch)
            if taken and await log.replace_kv(HOST, key, data, mine):
                return mine
            if loop.time() > until:
                raise Unreachable("The host that runs this command does not answer; try again.", retry_after=1)
            await asyncio.sleep(PAUSE)

    async def release(self, key: str, claim: bytes) -> None:
        with contextlib.suppress(LogUnavailable):  # then it stays a claim of this host, which may take it again
            await self._cluster.log.replace_kv(HOST, key, claim, None)

    async def _holder(self, held: Claim) -> Peer | None:
        peers = await self._cluster.roster.peers()
        return next((peer for peer in peers if peer.id == held.host and peer.alive and peer.info.link), None)

    async def _ask(self, peer: Peer, command: c.Command, caller: c.Caller) -> PeerAnswer | None:
        """None: it did not answer, or lost the claim."""
        try:
            told = await self._cluster.ask(peer, command, caller)
        except Unreachable:
            return None
        if told.code == NOT_OWNER:
            return None
        return PeerAnswer(await read_answer(self._cluster, command, told))

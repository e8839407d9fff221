"""The reading half of a log and its maintenance, on stored rows: replay, live events, notes, blobs, compaction."""

import contextlib
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping

import msgspec

from portico.kernel import faults, limits
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Channel, Record
from portico.kernel.log.blobs import Blobs
from portico.kernel.log.feed import Follower
from portico.kernel.log.group_commit import GroupCommit
from portico.kernel.log.identity import Identity
from portico.kernel.log.page import Page
from portico.kernel.log.store import Store
from portico.kernel.log.stored.replay import SharedReplay


def compacted_key(part: str) -> str:
    """Key of the note that lists the compacted pieces of a part: seq and length, alternating."""
    return f"trail/{part}"


class StoredLog(GroupCommit):
    def __init__(self, store: Store, identity: Identity, seq: int, heads: dict[Channel, int]) -> None:
        super().__init__(seq, heads)
        self._store = store
        self._identity = identity
        self._replay = SharedReplay(self._read_page)
        self._blobs = Blobs(store)

    @abstractmethod
    async def _shut(self) -> None:
        """Close the log's resources after everything is written."""

    @property
    def epoch(self) -> str:
        return self._identity.epoch

    @property
    def identity(self) -> Identity:
        return self._identity

    # -- reading -----------------------------------------------------------------------------------------------

    async def read(self, channel: Channel, after: int = 0, limit: int = 1000) -> list[Record]:
        upto = self.head(channel)
        if after >= upto:
            return []
        return await self._store.read(channel, after, upto, max(0, min(limit, limits.READ_EVENTS)))

    async def read_all(
        self, *channels: Channel, after: int = 0, limit: int = 1000, whole: bool = False
    ) -> list[Record]:
        upto = self._seq
        if after >= upto:
            return []
        count = max(0, min(limit, limits.READ_EVENTS))
        return await self._store.read_all(channels, after, upto, count, whole)

    async def follow(
        self, *channels: Channel, after: int = 0, follower: Follower | None = None, timeout: float | None = None
    ) -> AsyncIterator[Page]:
        by_seq = follower is not None or len(channels) != 1
        follower = follower or Follower(channels or None)
        while True:  # replay until nothing is left, and subscribe to live events in the same tick
            mark = self._seq if by_seq else self.head(channels[0])
            if after >= mark or follower.channels == {}:
                self.attach(follower)
                break
            page = await self._replay.page(tuple(follower.channels or ()), after, mark, by_seq)
            after = mark if not page else page[-1].seq if by_seq else page[-1].pos
            if page:
                yield page
            del page  # a stalled reader must not keep a page that it has sent
        try:
            while True:
                yield await follower.take(timeout)
        finally:
            follower.leave()

    async def _read_page(self, channels: tuple[Channel, ...], after: int, mark: int, by_seq: bool) -> Page:
        count, size = limits.READ_EVENTS, limits.REPLAY_BYTES
        if not by_seq:
            return Page(await self._store.read(channels[0], after, mark, count, size))
        return Page(await self._store.read_all(channels, after, mark, count, False, size))

    async def list_kv(self, key: str) -> dict[Channel, bytes]:
        found: dict[Channel, bytes | None] = {**await self._store.list_kv(key)}
        found |= {channel: data for (channel, name), data in self._notes.uncommitted().items() if name == key}
        return {channel: data for channel, data in found.items() if data is not None}

    async def get_kv(self, channel: Channel, key: str) -> bytes | None:
        waiting = self._notes.uncommitted()
        if (channel, key) in waiting:
            return waiting[channel, key]
        return await self._store.get_kv(channel, key)

    async def replace_kv(self, channel: Channel, key: str, old: bytes | None, new: bytes | None) -> bool:
        self.check_open()
        return await self._store.replace_kv(channel, key, old, new)

    async def put_blob(self, data: bytes) -> str:
        return await self._blobs.put(data)

    async def blob(self, digest: str) -> bytes:
        return await self._blobs.get(digest)

    async def blob_users(self, digest: str) -> list[Channel]:
        return await self._store.blob_users(digest)

    # -- housekeeping ------------------------------------------------------------------------------------------

    async def compact(self, before: int, keep: Mapping[Channel, int] | None = None) -> int:
        """Compact in small separate transactions, so that commits can run between them."""
        total = 0
        while True:
            dropped = await self._store.drop_deltas(before, dict(keep or {}))
            total += dropped
            self._replay.clear()
            faults.reach("compaction")
            if dropped == 0:
                return total

    async def compact_channel(self, channel: Channel, below: int) -> int:
        total = 0
        while dropped := await self._store.drop_channel_deltas(channel, below):
            total += dropped
            self._replay.clear()
        return total

    async def size(self, channel: Channel) -> int:
        if channel not in self._sizes:
            self._sizes[channel] = await self._store.size(channel)
        return self._sizes[channel]

    async def expire_kv(self, prefix: str, before: int) -> int:
        return await self._store.expire_kv(prefix, before)

    async def compacted_offsets(self, channel: Channel, part: str) -> list[tuple[int, int]]:
        data = await self.get_kv(channel, compacted_key(part))
        flat = msgspec.msgpack.decode(data, type=list[int]) if data else []
        return list(zip(flat[::2], flat[1::2], strict=True))

    async def delete(self, channel: Channel) -> None:
        await self.flush()
        self._notes.forget(channel)
        await self._blobs.delete_with(channel)
        self._replay.clear()

    async def close(self) -> None:
        if self._closed:
            return
        with contextlib.suppress(LogUnavailable):  # the writer already got this error
            if self._notes.lazy and self._down is None:
                (channel, key), data = self._notes.pop_lazy()
                self.put_kv(channel, key, data)  # a commit for the remaining lazy notes
            await self.flush()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._announce()
        await self._shut()

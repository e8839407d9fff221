"""Blobs, stored by their hash and referenced by events."""

import asyncio
import hashlib

from portico.kernel import limits
from portico.kernel.errors import NotFound, TooLarge
from portico.kernel.events import Channel
from portico.kernel.log.store import Store


class Blobs:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: set[str] = set()
        """The blobs stored since the last deletion started."""

    async def put(self, data: bytes) -> str:
        if len(data) > limits.BLOB_BYTES:
            raise TooLarge(f"A blob of {len(data)} bytes is over the limit of {limits.BLOB_BYTES}.")
        # not in the loop: a large one takes a tenth of a second
        digest = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
        self._kept.add(digest)
        await self._store.put_blob(digest, data)
        return digest

    async def get(self, digest: str) -> bytes:
        data = await self._store.blob(digest)
        if data is None:
            raise NotFound("blob", digest)
        return data

    async def delete_with(self, channel: Channel) -> None:
        """Delete the channel and the blobs that only its events reference. A blob that is stored again during the
        deletion is kept for its new owner, whose event may follow."""
        self._kept.clear()
        blobs = await self._store.own_blobs(channel)
        await self._store.delete(channel, blobs - self._kept)

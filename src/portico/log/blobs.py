"""Contents by their hash, beside the events that refer to them."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from portico import limits
from portico.errors import NotFound, TooLarge
from portico.events import Channel
from portico.log.database import Database

Run = Callable[..., Awaitable[Any]]


class Blobs:
    def __init__(self, database: Database, read: Run, write: Run) -> None:
        self._database = database
        self._read, self._write = read, write
        self._kept: set[str] = set()
        """Those that were stored since the last deletion began."""

    async def put(self, data: bytes) -> str:
        if len(data) > limits.BLOB_BYTES:
            raise TooLarge(f"A blob of {len(data)} bytes is over the limit of {limits.BLOB_BYTES}.")
        digest: str = await self._read(_digest, data)  # not in the loop: a large one takes a tenth of a second
        self._kept.add(digest)
        await self._write(self._database.put_blob, digest, data)
        return digest

    async def get(self, digest: str) -> bytes:
        data: bytes | None = await self._read(self._database.blob, digest)
        if data is None:
            raise NotFound("blob", digest)
        return data

    async def delete_with(self, channel: Channel) -> None:
        """The channel, and what only its events refer to. What was stored again while we looked has a new owner, whose
        event may come only now."""
        self._kept.clear()
        blobs: set[str] = await self._read(self._database.own_blobs, channel)
        await self._write(self._database.delete, channel, blobs - self._kept)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

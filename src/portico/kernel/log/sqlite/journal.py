"""Notes that survive the end of the process before they are committed: `log.db-list_kv`.

A reader's cursor changes with every answer, and a separate commit would delay every answer. So it is written to this
file first, which is one system call, and to the database with the next commit. At the next start the values that remain
here are stored in the database.
"""

import os
import struct
import zlib
from pathlib import Path

import msgspec

from portico.kernel.events import Channel

_HEAD = struct.Struct(">II")
_BYTES = 256 * 1024
"""The file is emptied when it has this size and all of it is committed: a thousand cursors."""

Entry = tuple[Channel, str, bytes | None]


class Journal:
    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path.with_name(path.name + "-notes"), os.O_CREAT | os.O_RDWR, 0o600)
        self._size = os.fstat(self._descriptor).st_size

    def read(self) -> dict[tuple[Channel, str], bytes | None]:
        """Return the last value of each key; entries after a torn or damaged one are not read."""
        data = os.pread(self._descriptor, self._size, 0)
        found: dict[tuple[Channel, str], bytes | None] = {}
        at = 0
        while at + _HEAD.size <= len(data):
            length, checksum = _HEAD.unpack_from(data, at)
            body = data[at + _HEAD.size : at + _HEAD.size + length]
            if len(body) != length or zlib.crc32(body) != checksum:
                break
            channel, key, value = msgspec.msgpack.decode(body, type=Entry)
            found[channel, key] = value
            at += _HEAD.size + length
        return found

    def put(self, channel: Channel, key: str, data: bytes | None) -> None:
        body = msgspec.msgpack.encode((channel, key, data))
        os.pwrite(self._descriptor, _HEAD.pack(len(body), zlib.crc32(body)) + body, self._size)
        self._size += _HEAD.size + len(body)

    def committed(self) -> None:
        if self._size > _BYTES:
            self.clear()

    def clear(self) -> None:
        os.ftruncate(self._descriptor, 0)
        self._size = 0

    def close(self) -> None:
        os.close(self._descriptor)

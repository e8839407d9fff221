"""A small file next to the log with the identity of the log and its last seq: `log.db-mark`.

It is written after every commit and lies outside of the write-ahead log, so after a cut or lost write-ahead log, a
restored backup or swapped files the host knows what is missing and gives no number twice. It also remembers which
files (their inodes) belong together: a copy is another log.
"""

import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

_FIELDS = struct.Struct(">8s16sIQQQQ")
_SUM = struct.Struct(">I")
_SIZE = _FIELDS.size + _SUM.size
_MAGIC = b"portico1"


class LogFiles(NamedTuple):
    """Which files these are; 0 for one that is not there."""

    device: int
    log: int
    wal: int

    @classmethod
    def of(cls, path: Path | str) -> "LogFiles":
        log, wal = _stat(str(path)), _stat(f"{path}-wal")
        return cls(log.st_dev if log else 0, log.st_ino if log else 0, wal.st_ino if wal else 0)


class Marked(NamedTuple):
    epoch: str
    salt: int
    seq: int
    files: LogFiles


class Mark:
    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path.with_name(path.name + "-mark"), os.O_CREAT | os.O_RDWR, 0o600)
        self._epoch = b""
        self._salt = self._seq = 0
        self._files = LogFiles(0, 0, 0)

    def read(self) -> Marked | None:
        """None: there was none, or it is damaged."""
        data = os.pread(self._descriptor, _SIZE, 0)
        if len(data) != _SIZE or _SUM.unpack(data[_FIELDS.size :])[0] != zlib.crc32(data[: _FIELDS.size]):
            return None
        magic, epoch, salt, seq, *files = _FIELDS.unpack(data[: _FIELDS.size])
        name = epoch.rstrip(b"\0").decode("ascii", "replace")
        return Marked(name, salt, seq, LogFiles(*files)) if magic == _MAGIC else None

    def begin(self, marked: Marked) -> None:
        self._epoch, self._salt, self._files = marked.epoch.encode(), marked.salt, marked.files
        self.put(marked.seq)

    def end(self, path: Path) -> None:
        """After an orderly end there is no write-ahead log: one that is found at the next start is not ours."""
        wal = wal_of(path)
        if not wal.exists() or wal.stat().st_size == 0:
            self._files = self._files._replace(wal=0)
            self.put(self._seq)

    def put(self, seq: int) -> None:
        device, log, wal = self._files
        self._seq = seq
        fields = _FIELDS.pack(_MAGIC, self._epoch, self._salt, seq, device, log, wal)
        try:
            os.pwrite(self._descriptor, fields + _SUM.pack(zlib.crc32(fields)), 0)
        except OSError:  # a full disk: the mark stays behind, which no start mistakes for a loss
            return

    def close(self) -> None:
        os.close(self._descriptor)


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None

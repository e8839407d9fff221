"""Reads the log: plain blocking functions for reader threads, each with a separate connection.

An event that cannot be read (its checksum is wrong, or its page is damaged) is replaced by an `unreadable` event; the
other events of its channel are read as usual.
"""

import hashlib
import logging
import sqlite3
import threading
from operator import lt
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from portico.kernel import limits
from portico.kernel.errors import LogDamaged
from portico.kernel.events import Channel, Record, Unreadable, decode, encode
from portico.kernel.log.sqlite.checksum import channel_sum, event_sum, kv_sum
from portico.kernel.log.sqlite.error_text import translate
from portico.kernel.log.sqlite.schema import channel_of

logger = logging.getLogger("portico.log")

_POS_OF = "coalesce((SELECT p.pos FROM events p WHERE p.channel = c.id AND p.seq <= ? ORDER BY p.pos DESC LIMIT 1), 0)"
"""The position of a channel at a seq, searched from its end: the cost depends on the missed events, not the history."""
_STRETCH = 10_000
"""Events of all channels that are scanned in storage order: this takes a millisecond and needs no sort."""
_SCANNED = 100_000
"""Maximum positions checked one by one: a damaged head may have any value."""
_COLUMNS = "e.seq, e.channel, e.pos, e.time, e.data, e.sum"
_DAMAGED = "damaged"
"""The channel of an event whose real channel is unknown."""

_SUM = encode(Unreadable(reason="checksum"))
_PAGE = encode(Unreadable(reason="page"))


class Reader:
    def __init__(self, path: Path, db: sqlite3.Connection, salt: int) -> None:
        self.path = path
        self._db = db
        self._salt = salt
        self._ids: dict[Channel, int] = {}
        self._names: dict[int, Channel] = {}
        self._local = threading.local()
        self._read_connections: list[sqlite3.Connection] = []

    def heads(self) -> tuple[int, dict[Channel, int]]:
        """The last seq, and the last position of every channel. The numbers of deleted events are not reused."""
        try:
            heads = {}
            for ident, name, pos, checksum in self._db.execute("SELECT id, name, pos, sum FROM channels").fetchall():
                if not isinstance(name, str) or not isinstance(pos, int):
                    logger.error("the log lost a channel: the row %d (%r) is damaged", ident, name)
                    continue
                if checksum not in (None, channel_sum(ident, name, pos)):
                    name, pos = self._recovered(ident, name, pos, checksum)
                if name is not None:
                    self._ids[name], self._names[ident] = ident, name
                    heads[name] = pos
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        if "" not in heads:
            raise translate(sqlite3.DatabaseError("malformed: the last number is missing"), self.path)
        return heads.pop(""), heads

    def _recovered(self, ident: int, name: str, pos: int, checksum: int) -> tuple[str | None, int]:
        """Name and head of a channel whose row is damaged, from its events; None when its name is lost."""
        if ident == 0:
            last: int = self._db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0]
            return "", max(last, min(pos, last + _STRETCH))
        head: int = self._db.execute("SELECT coalesce(max(pos), 0) FROM events WHERE channel = ?", (ident,)).fetchone()[
            0
        ]
        sql = "SELECT data FROM events WHERE channel = ? ORDER BY pos LIMIT 1"
        first = self._db.execute(sql, (ident,)).fetchone()
        own = name if channel_sum(ident, name, head) == checksum else channel_of(first[0]) if first else None
        if own is None:
            logger.error("the log lost a channel: the row %d (%r) is damaged", ident, name)
        else:
            logger.error("a row of the log's channels is damaged (%r): run portico log check --repair", own)
        return own, head

    def read(self, channel: Channel, after: int, upto: int, limit: int, size: int = 0) -> list[Record]:
        chosen = "FROM events e {} WHERE e.channel = ? AND e.pos > ? AND e.pos <= ? ORDER BY e.pos"
        args = (self._ids.get(channel), after, upto, limit)
        try:
            records = self._records(chosen.format(""), args, size)
            places = [record.pos for record in records]
            if not all(map(lt, places, places[1:])):  # the index is wrong; the events are intact
                records = self._records(chosen.format("NOT INDEXED"), args, size)
            return records
        except LogDamaged:
            return self._told(self._one_by_one(channel, after, upto, limit))

    def read_all(
        self, channels: tuple[Channel, ...], after: int, upto: int, limit: int, whole: bool, size: int = 0
    ) -> list[Record]:
        try:
            return self._read_all(channels, after, upto, limit, whole, size)
        except LogDamaged:
            return self._told(self._all_one_by_one(channels, after, upto, limit, whole))

    def _read_all(
        self, channels: tuple[Channel, ...], after: int, upto: int, limit: int, whole: bool, size: int
    ) -> list[Record]:
        stretch = "e.seq > ? AND e.seq <= ?" + (" AND e.delta IS NULL" if whole else "")
        if not channels:
            return self._records(f"FROM events e WHERE {stretch} ORDER BY e.seq", (after, upto, limit), size)
        ids = tuple(self._ids.get(channel) for channel in channels)
        some = ", ".join("?" * len(ids))
        if upto - after <= _STRETCH:  # the plus disables the index: these rows are adjacent and in order
            chosen = f"FROM events e WHERE {stretch} AND +e.channel IN ({some}) ORDER BY e.seq"
            return self._records(chosen, (after, upto, *ids, limit), size)
        order = "e.pos" if len(ids) == 1 else "e.seq"  # the same for one channel, and then the index has it sorted
        chosen = f"FROM channels c JOIN events e ON e.channel = c.id WHERE {stretch} AND c.id IN ({some})"
        chosen += f" AND e.pos > {_POS_OF} ORDER BY {order}"
        return self._records(chosen, (after, upto, *ids, after, limit), size)

    def _records(self, chosen: str, args: tuple[object, ...], most: int = 0) -> list[Record]:
        """Return rows up to `most` bytes; callers request more with the position of the last one."""
        records: list[Record] = []
        size, odd, of, name, seed = 0, False, -1, None, 0
        most = most or limits.READ_BYTES
        try:
            rows = self._reading().execute(f"SELECT {_COLUMNS} {chosen} LIMIT ?", args)
            for seq, channel, pos, time, data, checksum in rows:
                try:
                    if channel != of:
                        of, name, seed = channel, self._names.get(channel), self._salt ^ channel << 20
                    # `event_sum`, without the call: every read there is goes through here
                    right = checksum == crc32(data, seed ^ seq * 31 ^ pos * 8191 ^ time)
                except TypeError:  # a damaged row may even have other types
                    raise sqlite3.DatabaseError("malformed row") from None
                if right and name is not None:
                    records.append(Record(seq, name, pos, time, data))
                else:
                    odd = True
                    records.append(self._record((seq, channel, pos, time, data, checksum)))
                size += len(data)
                if size > most:
                    break
            rows.close()
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        return self._told(records) if odd else records

    def _record(self, row: tuple[int, int, int, int, bytes, int | None]) -> Record:
        seq, channel, pos, time, data, checksum = row
        if checksum is None:
            return self._unchecked(Record(seq, self._names.get(channel, _DAMAGED), pos, time, data))
        name = self._names.get(channel, _DAMAGED)  # without its channel, the permission to read it is unknown
        if name == _DAMAGED or event_sum(self._salt, seq, channel, pos, time, data) != checksum:
            return _gap(seq, name, pos, _SUM, time)
        return Record(seq, name, pos, time, data)

    def _unchecked(self, record: Record) -> Record:
        """Check a record of a version without checksums: invalid JSON means damage."""
        try:
            return Record(*record.place(), record.data, decode(record.data))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return _gap(record.seq, record.channel, record.pos, _SUM, record.time)

    @staticmethod
    def _told(records: list[Record]) -> list[Record]:
        gaps = [record for record in records if record.data in (_SUM, _PAGE)]
        if gaps:
            first, last = gaps[0], gaps[-1]
            places = f"{first.channel}:{first.pos} to {last.channel}:{last.pos}"
            logger.error("the log is damaged: %d events are unreadable (%s)", len(gaps), places)
        return records

    # -- around damaged pages ----------------------------------------------------------------------------------

    def _one_by_one(self, channel: Channel, after: int, upto: int, limit: int) -> list[Record]:
        ident, records = self._ids.get(channel), list[Record]()
        for pos in range(after + 1, min(upto, after + _SCANNED) + 1):
            found = self._row("e.channel = ? AND e.pos = ?", ident, pos)
            if found is None:  # its seq is unknown; use the one after the previous record
                records.append(_gap(records[-1].seq + 1 if records else 0, channel, pos, _PAGE))
            else:
                records += [self._sound(row, channel, pos) for row in found]
            if len(records) == limit:
                break
        return records

    def _all_one_by_one(
        self, channels: tuple[Channel, ...], after: int, upto: int, limit: int, whole: bool
    ) -> list[Record]:
        records: list[Record] = []
        deltas = " AND e.delta IS NULL" if whole else ""
        for seq in range(after + 1, min(upto, after + _SCANNED) + 1):
            found = self._row(f"e.seq = ?{deltas}", seq)
            some = (
                [_gap(seq, _DAMAGED, 0, _PAGE)] if found is None else [self._sound(row, _DAMAGED, 0) for row in found]
            )
            records += [each for each in some if not channels or each.channel in channels]
            if len(records) == limit:
                break
        return records

    def _sound(self, row: Any, channel: Channel, pos: int) -> Record:
        """Convert a row whose columns may have any type."""
        kinds = (int, int, int, int, bytes, int | None)
        if all(isinstance(value, kind) for value, kind in zip(row, kinds, strict=True)):
            return self._record(row)
        return _gap(row[0] if isinstance(row[0], int) else 0, channel, pos, _SUM)

    def _row(self, where: str, *args: object) -> list[Any] | None:
        """The row, if there is one; None when its page is damaged."""
        try:
            return self._reading().execute(f"SELECT {_COLUMNS} FROM events e WHERE {where}", args).fetchall()
        except sqlite3.DatabaseError as error:
            if isinstance(translate(error, self.path), LogDamaged):
                return None
            raise translate(error, self.path) from error

    # -- notes and blobs ---------------------------------------------------------------------------------------

    def list_kv(self, key: str) -> dict[Channel, bytes]:
        sql = "SELECT c.name, n.channel, n.data, n.sum FROM notes n JOIN channels c ON c.id = n.channel WHERE n.key = ?"
        return {
            name: data
            for name, channel, data, checksum in self._rows(sql, key)
            if self._is_whole(channel, key, data, checksum)
        }

    def get_kv(self, channel: Channel, key: str) -> bytes | None:
        sql = "SELECT n.channel, n.data, n.sum FROM channels c JOIN notes n ON n.channel = c.id"
        for ident, data, checksum in self._rows(f"{sql} WHERE c.name = ? AND n.key = ?", channel, key):
            if self._is_whole(ident, key, data, checksum):
                assert isinstance(data, bytes)
                return data
        return None

    @staticmethod
    def _is_whole(channel: int, key: str, data: object, checksum: int | None) -> bool:
        """Whether a note is intact. A damaged one counts as missing: it is derived from events, or requested again."""
        whole = isinstance(data, bytes) and checksum in (None, kv_sum(channel, key, data))
        if not whole:
            logger.error("the note %r of channel %d is damaged", key, channel)
        return whole

    def size(self, channel: Channel) -> int:
        found = self._rows("SELECT sum(length(data)) FROM events WHERE channel = ?", self._ids.get(channel))
        return int(found[0][0] or 0)

    def blob(self, digest: str) -> bytes | None:
        found = self._rows("SELECT data FROM blobs WHERE digest = ?", digest)
        data: bytes | None = found[0][0] if found else None
        if data is not None and hashlib.sha256(data).hexdigest() != digest:
            raise LogDamaged(f"The blob {digest!r} is damaged on the disk; its content is lost.")
        return data

    def blob_users(self, digest: str) -> list[Channel]:
        sql = "SELECT c.name FROM blob_users u JOIN channels c ON c.id = u.channel WHERE u.digest = ?"
        return [name for (name,) in self._rows(sql, digest)]

    def own_blobs(self, channel: Channel) -> set[str]:
        """The blobs that only this channel refers to."""
        used = "SELECT digest FROM blob_users u JOIN channels c ON c.id = u.channel WHERE c.name = ?1"
        others = "SELECT 1 FROM blob_users o WHERE o.digest = u.digest AND o.channel != u.channel"
        return {digest for (digest,) in self._rows(f"{used} AND NOT EXISTS ({others})", channel)}

    def _rows(self, sql: str, *args: object) -> list[Any]:
        try:
            return self._reading().execute(sql, args).fetchall()
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def _reading(self) -> sqlite3.Connection:
        """A connection of this thread: readers never wait for the writer (WAL)."""
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            where = f"{self.path.absolute().as_uri()}?mode=rw"  # otherwise it creates an empty file if ours was moved
            db = sqlite3.connect(where, timeout=limits.BUSY_SECONDS, check_same_thread=False, uri=True)
            db.execute("PRAGMA query_only = ON")
            db.execute(
                "PRAGMA cache_size = -256"
            )  # KiB: what is read in order is not read again, and 2 MB a thread stay
            self._local.db = db
            self._read_connections.append(db)
        return db


def _gap(seq: int, channel: Channel, pos: int, data: bytes, time: int = 0) -> Record:
    return Record(seq, channel, pos, time, data)

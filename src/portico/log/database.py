"""The SQL of the log. Plain blocking functions: the writer thread calls the writing ones, reader threads the others."""

import contextlib
import os
import re
import shlex
import shutil
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from portico import faults, limits
from portico.errors import LogDamaged, LogUnavailable
from portico.events import Channel, Record
from portico.log import schema

_DROP_ROWS = 2_000
"""Deltas dropped in one transaction: a few milliseconds, so that a commit never waits long."""
_TEXT = "part.delta"
_BLOB = re.compile(rb'"blob":"([0-9a-f]{64})"')
"""How an event refers to one, also inside of a copied history."""


class _Piece(msgspec.Struct):
    type: str
    text: str


_piece = msgspec.json.Decoder(_Piece)


def compacted_key(part: str) -> str:
    """The note that remembers which pieces of a part were compacted away: seq and length, in turns."""
    return f"trail/{part}"


class Row(NamedTuple):
    seq: int
    channel: Channel
    pos: int
    time: int
    delta: str | None
    data: bytes


class KeyValue(NamedTuple):
    channel: Channel
    key: str
    data: bytes | None


class Batch(NamedTuple):
    rows: list[Row]
    heads: dict[Channel, int]
    list_kv: list[KeyValue]


_POS_OF = "coalesce((SELECT p.pos FROM events p WHERE p.channel = c.id AND p.seq <= ? ORDER BY p.pos DESC LIMIT 1), 0)"
"""Where a channel stood at a seq, looked for from its end: what was missed is read, however long its history is."""
_STRETCH = 10_000
"""Events that are looked through as they lie, whatever channel they are of: a millisecond, and nothing to sort."""


class Database:
    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db
        self._ids: dict[Channel, int] = {}
        self._names: dict[int, Channel] = {}
        self._local = threading.local()
        self._read_connections: list[sqlite3.Connection] = []

    @classmethod
    def open(cls, path: Path, full: bool) -> "Database":
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            path.chmod(0o600)
        except OSError as error:
            raise LogUnavailable(f"The log {str(path)!r} cannot be opened: {error.strerror}.") from error
        with contextlib.ExitStack() as failing:
            try:
                db = sqlite3.connect(path, timeout=limits.BUSY_SECONDS, isolation_level=None, check_same_thread=False)
                failing.callback(db.close)
                db.execute("PRAGMA journal_mode = WAL")
                db.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
                db.execute("PRAGMA wal_autocheckpoint = 0")  # see `checkpoint`
                schema.prepare(db)
            except sqlite3.Error as error:
                raise translate(error, path, "then start again") from error
            failing.pop_all()
        return cls(path, db)

    # -- writing -----------------------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        db = self._db
        known = dict(self._ids)
        try:
            db.execute("BEGIN IMMEDIATE")
            for channel in batch.heads:
                self._id(channel)
            db.executemany(
                "INSERT INTO events (seq, channel, pos, time, delta, data) VALUES (?, ?, ?, ?, ?, ?)",
                [(row.seq, self._ids[row.channel], row.pos, row.time, row.delta, row.data) for row in batch.rows],
            )
            db.executemany(
                "UPDATE channels SET pos = ? WHERE id = ?",
                [(pos, self._ids[channel]) for channel, pos in batch.heads.items()],
            )
            db.execute("UPDATE channels SET pos = max(pos, ?) WHERE id = 0", (batch.rows[-1].seq if batch.rows else 0,))
            for put_kv in batch.list_kv:
                self._put_kv(put_kv)
            faults.reach("before-commit")
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self._ids = known
            self._rollback()
            raise translate(error, self.path) from error
        faults.reach("after-commit")

    def _put_kv(self, put_kv: KeyValue) -> None:
        if put_kv.data is None:
            self._db.execute("DELETE FROM notes WHERE channel = ? AND key = ?", (self._id(put_kv.channel), put_kv.key))
        else:
            self._db.execute(
                "INSERT OR REPLACE INTO notes (channel, key, data) VALUES (?, ?, ?)",
                (self._id(put_kv.channel), put_kv.key, put_kv.data),
            )

    def drop_kv(self, channel: Channel, first: str, below: str) -> int:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            sql = "DELETE FROM notes WHERE channel = ? AND key >= ? AND key < ?"
            dropped = self._db.execute(sql, (self._id(channel), first, below)).rowcount
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            raise translate(error, self.path) from error
        return dropped

    def probe(self) -> None:
        """Can we write again? Fails the way a commit would."""
        known = dict(self._ids)
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._put_kv(KeyValue("host", "probe", b"1"))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._ids = known
            self._rollback()
            raise translate(error, self.path) from error

    def put_blob(self, digest: str, data: bytes) -> None:
        try:
            self._db.execute("INSERT OR IGNORE INTO blobs (digest, data) VALUES (?, ?)", (digest, data))
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def drop_deltas(self, before: int, keep: dict[Channel, int]) -> int:
        try:
            floors = {self._id(channel): pos for channel, pos in keep.items()}
            rows = self._db.execute(
                "SELECT seq, channel, pos, delta, data FROM events WHERE delta IS NOT NULL AND time < ?"
                " ORDER BY time, seq",
                (before,),
            )
            doomed = []
            trails: dict[tuple[int, str], list[int]] = {}
            for seq, channel, pos, part, data in rows:
                if channel not in floors or pos < floors[channel]:
                    doomed.append((seq,))
                    piece = _piece.decode(data)
                    if piece.type == _TEXT:
                        trails.setdefault((channel, part), []).extend((seq, len(piece.text)))
                if len(doomed) == _DROP_ROWS:
                    break
            rows.close()
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("DELETE FROM events WHERE seq = ?", doomed)
            for (channel, part), compacted_offsets in trails.items():
                self._lengthen(channel, compacted_key(part), compacted_offsets)
            faults.reach("compaction-write")
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            raise translate(error, self.path) from error
        return len(doomed)

    def _lengthen(self, channel: int, key: str, compacted_offsets: list[int]) -> None:
        found = self._db.execute("SELECT data FROM notes WHERE channel = ? AND key = ?", (channel, key)).fetchone()
        before = msgspec.msgpack.decode(found[0], type=list[int]) if found else []
        self._db.execute(
            "INSERT OR REPLACE INTO notes (channel, key, data) VALUES (?, ?, ?)",
            (channel, key, msgspec.msgpack.encode(before + compacted_offsets)),
        )

    def checkpoint(self) -> int:
        """Moves what is committed from the write-ahead log into the database; the bytes of that log then. It waits for
        the disk (10 to 90 ms were measured), so it runs beside the commits, which it does not hold up."""
        try:
            _, pages, _ = self._reading().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            size = self._reading().execute("PRAGMA page_size").fetchone()[0]
        except sqlite3.Error:
            return 0  # a full disk: the next commit says so, and the next checkpoint tries again
        return int(max(0, pages) * size)

    def delete(self, channel: Channel, blobs: Iterable[str]) -> None:
        """Nothing of it stays in the file: what a person deletes may be a secret that was shown by mistake."""
        try:
            ident = self._id(channel)
            self._db.execute("PRAGMA secure_delete = ON")
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM events WHERE channel = ?", (ident,))
            self._db.execute("DELETE FROM notes WHERE channel = ?", (ident,))
            self._db.executemany("DELETE FROM blobs WHERE digest = ?", [(digest,) for digest in blobs])
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            raise translate(error, self.path) from error
        finally:
            self._db.execute("PRAGMA secure_delete = OFF")  # compaction need not write zeros over all it drops

    def _id(self, channel: Channel) -> int:
        """The channel's number, made when it is new. Runs inside the caller's transaction."""
        ident = self._ids.get(channel)
        if ident is None:
            self._db.execute("INSERT OR IGNORE INTO channels (name, pos) VALUES (?, 0)", (channel,))
            ident = self._db.execute("SELECT id FROM channels WHERE name = ?", (channel,)).fetchone()[0]
            assert isinstance(ident, int)
            self._ids[channel], self._names[ident] = ident, channel
        return ident

    def _rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    # -- reading -----------------------------------------------------------------------------------------------

    def heads(self) -> tuple[int, dict[Channel, int]]:
        """The last seq, and the last position of every channel. Deleted events do not give their numbers back."""
        try:
            heads = {}
            for ident, name, pos in self._db.execute("SELECT id, name, pos FROM channels"):
                self._ids[name], self._names[ident] = ident, name
                heads[name] = pos
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        if "" not in heads:
            raise translate(sqlite3.DatabaseError("malformed: the last number is missing"), self.path)
        return heads.pop(""), heads

    def read(self, channel: Channel, after: int, upto: int, limit: int) -> list[Record]:
        chosen = "FROM events e WHERE e.channel = ? AND e.pos > ? AND e.pos <= ? ORDER BY e.pos"
        return self._records(chosen, (self._ids.get(channel), after, upto, limit))

    def read_all(self, channels: tuple[Channel, ...], after: int, upto: int, limit: int, whole: bool) -> list[Record]:
        stretch = "e.seq > ? AND e.seq <= ?" + (" AND e.delta IS NULL" if whole else "")
        if not channels:
            return self._records(f"FROM events e WHERE {stretch} ORDER BY e.seq", (after, upto, limit))
        ids = tuple(self._ids.get(channel) for channel in channels)
        some = ", ".join("?" * len(ids))
        if upto - after <= _STRETCH:  # the plus keeps the index out: these rows lie side by side, in order
            chosen = f"FROM events e WHERE {stretch} AND +e.channel IN ({some}) ORDER BY e.seq"
            return self._records(chosen, (after, upto, *ids, limit))
        order = "e.pos" if len(ids) == 1 else "e.seq"  # the same for one channel, and then the index has it sorted
        chosen = f"FROM channels c JOIN events e ON e.channel = c.id WHERE {stretch} AND c.id IN ({some})"
        return self._records(f"{chosen} AND e.pos > {_POS_OF} ORDER BY {order}", (after, upto, *ids, after, limit))

    def _records(self, chosen: str, args: tuple[object, ...]) -> list[Record]:
        """Rows up to the byte bound; whoever wants more asks again behind the last one."""
        records: list[Record] = []
        size, names = 0, self._names
        try:
            rows = self._reading().execute(f"SELECT e.seq, e.channel, e.pos, e.time, e.data {chosen} LIMIT ?", args)
            for seq, channel, pos, time, data in rows:
                records.append(Record(seq, names[channel], pos, time, data))
                size += len(data)
                if size > limits.READ_BYTES:
                    break
            rows.close()
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        return records

    def list_kv(self, key: str) -> dict[Channel, bytes]:
        sql = "SELECT c.name, n.data FROM notes n JOIN channels c ON c.id = n.channel WHERE n.key = ?"
        return dict(self._rows(sql, key))

    def get_kv(self, channel: Channel, key: str) -> bytes | None:
        sql = "SELECT n.data FROM channels c JOIN notes n ON n.channel = c.id WHERE c.name = ? AND n.key = ?"
        return self._value(sql, channel, key)

    def blob(self, digest: str) -> bytes | None:
        return self._value("SELECT data FROM blobs WHERE digest = ?", digest)

    def own_blobs(self, channel: Channel) -> set[str]:
        """The blobs that only this channel refers to. Looks through the log if it refers to any."""
        whole = "SELECT e.data FROM events e JOIN channels c ON c.id = e.channel WHERE e.delta IS NULL AND c.name"
        own = self._digests(f"{whole} = ?", channel)
        return own - self._digests(f"{whole} != ?", channel) if own else own

    def _digests(self, sql: str, channel: Channel) -> set[str]:
        try:
            rows = self._reading().execute(f'{sql} AND instr(e.data, CAST(\'"blob":"\' AS BLOB))', (channel,))
            return {digest.decode() for (data,) in rows for digest in _BLOB.findall(data)}
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def _value(self, sql: str, *args: str) -> bytes | None:
        rows = self._rows(sql, *args)
        return rows[0][0] if rows else None

    def _rows(self, sql: str, *args: str) -> list[Any]:
        try:
            return self._reading().execute(sql, args).fetchall()
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def _reading(self) -> sqlite3.Connection:
        """A connection of this thread: readers never wait for the writer (WAL)."""
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = sqlite3.connect(self.path, timeout=limits.BUSY_SECONDS, check_same_thread=False)
            db.execute("PRAGMA query_only = ON")
            self._local.db = db
            self._read_connections.append(db)
        return db

    def close(self) -> None:
        for db in [*self._read_connections, self._db]:
            db.close()


def translate(error: sqlite3.Error, path: Path, then: str = "the host goes on by itself") -> LogUnavailable:
    """SQLite's words, what the user can do about it, and what happens `then`."""
    text = str(error)
    name = str(path)
    if any(sign in text for sign in ("malformed", "not a database", "no such table", "no such column")):
        return LogDamaged(
            f"The log {name!r} is damaged ({text}). Move it aside to start anew, or recover what is readable with: "
            f"sqlite3 {shlex.quote(name)} .recover"
        )
    if "locked" in text or "busy" in text:
        return LogUnavailable(f"Another program holds the log {name!r} locked. Close it; {then}.")
    if "full" in text or ("disk I/O error" in text and not has_room(path)):
        return LogUnavailable(f"The disk of {name!r} is full. Free some space; {then}.")
    if "readonly" in text or "read-only" in text:
        return LogUnavailable(f"The log {name!r} cannot be written (read-only). Make it writable; {then}.")
    if "unable to open" in text:
        return LogUnavailable(f"The log {name!r} cannot be opened. Make its folder readable and writable; {then}.")
    return LogUnavailable(f"The log {name!r} cannot be written: {text}.")


def has_room(path: Path) -> bool:
    """For the smallest of writes. SQLite calls it an I/O error when its shared memory finds none."""
    return shutil.disk_usage(path.parent).free > 64 * 1024

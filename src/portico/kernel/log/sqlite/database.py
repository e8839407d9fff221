"""The SQL of the log. Plain blocking functions: the writer thread calls the writing ones, reader threads the others."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from portico.kernel import faults, limits
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Channel
from portico.kernel.log.identity import Identity
from portico.kernel.log.log import DiskUse
from portico.kernel.log.notes import KeyValue
from portico.kernel.log.sqlite import schema
from portico.kernel.log.sqlite.checksum import channel_sum, event_sum, kv_sum
from portico.kernel.log.sqlite.error_text import ERRORS, translate
from portico.kernel.log.sqlite.identify import check_files, check_pair, identify, open_file, tail_is_lost
from portico.kernel.log.sqlite.journal import Journal
from portico.kernel.log.sqlite.reader import Reader
from portico.kernel.log.sqlite.watermark import LogFiles, Mark, Marked, wal_of
from portico.kernel.log.stored.log import compacted_key

_DROP_ROWS = 2_000
"""Deltas dropped in one transaction: a few milliseconds, so that a commit never waits long."""
_TEXT = "part.delta"


class _Piece(msgspec.Struct):
    type: str
    text: str = ""


_piece = msgspec.json.Decoder(_Piece)


EventRow = tuple[int, Channel, int, int, str | None, bytes]
"""Its seq, channel, pos and time, the part that it is a delta of, and its data: thousands are made in a second."""


_SECURE_DELETE = "PRAGMA secure_delete = FAST"
"""What is deleted from a page that is written anyway is overwritten. Compaction need not overwrite whole pages."""
_TRUNCATE_MS = 50
"""How long commits wait for a reader that is in the way of a truncation: the next try is a second later."""


class Batch(NamedTuple):
    rows: Sequence[EventRow]
    heads: dict[Channel, int]
    values: list[KeyValue]


class Database(Reader):
    def __init__(self, path: Path, db: sqlite3.Connection, mark: Mark, identity: Identity) -> None:
        super().__init__(path, db, identity.salt)
        self._mark = mark
        self._name = str(path)
        self._files = LogFiles.of(path)
        self.identity = identity
        self.journal = Journal(path)
        self.truncate_due = False
        """Something was deleted that the write-ahead log still has."""
        self.clock: Callable[[], float] = time.time
        self._replay()

    @classmethod
    def open(cls, path: Path, full: bool) -> "Database":
        with contextlib.ExitStack() as failing:
            try:
                check_files(path)
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
                path.chmod(0o600)
                mark = Mark(path)
                failing.callback(mark.close)
                marked = mark.read()
                check_pair(path, marked)
                tail_lost = marked is None and tail_is_lost(path)
                leftover = wal_of(path).exists() and wal_of(path).stat().st_size > 0
            except OSError as error:
                raise LogUnavailable(f"The log {str(path)!r} cannot be opened: {error.strerror}.") from error
            try:
                db = sqlite3.connect(path, timeout=limits.BUSY_SECONDS, isolation_level=None, check_same_thread=False)
                failing.callback(db.close)
                db.execute("PRAGMA journal_mode = WAL")
                db.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
                db.execute("PRAGMA wal_autocheckpoint = 0")  # see `checkpoint`
                db.execute("PRAGMA cell_size_check = ON")
                schema.prepare(db)
                identity = _identified(db, path, mark, marked, tail_lost)
                open_file(path).touch(0o600)
                db.execute(_SECURE_DELETE)
                database = cls(path, db, mark, identity)
                database.truncate_due = leftover  # the host before this one may have deleted something
            except ERRORS as error:
                raise translate(error, path, "then start again") from error
            failing.pop_all()
        return database

    def _replay(self) -> None:
        """Commit the journal entries that the previous host did not commit. Channels deleted since are skipped."""
        entries = self.journal.read()
        if self.identity.why:
            self.journal.clear()  # it may be ahead of what is left of the log, or of another one
        elif entries:
            self._db.execute("BEGIN IMMEDIATE")
            for (channel, key), data in entries.items():
                known = "SELECT 1 FROM channels c JOIN events e ON e.channel = c.id WHERE c.name = ? LIMIT 1"
                if self._db.execute(known, (channel,)).fetchone():
                    self._put_kv(KeyValue(channel, key, data))
            self._db.execute("COMMIT")
            self.journal.clear()

    # -- writing -----------------------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        db = self._db
        known = len(self._ids)
        try:
            db.execute("BEGIN IMMEDIATE")
            for channel in batch.heads:
                self._id(channel, counted=True)
            if batch.rows:
                self._put_rows(batch.rows, batch.heads)
            for value in batch.values:
                self._put_kv(value)
            faults.reach("before-commit")
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self._forget_channels(known)
            self._rollback()
            raise translate(error, self.path) from error
        faults.reach("after-commit")
        if batch.rows:
            self._mark.put(batch.rows[-1][0])

    def _put_rows(self, rows: Sequence[EventRow], heads: dict[Channel, int]) -> None:
        ids, salt = self._ids, self._salt
        self._db.executemany(
            "INSERT INTO events (seq, channel, pos, time, delta, data, sum) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (seq, (of := ids[name]), pos, time, delta, data, event_sum(salt, seq, of, pos, time, data))
                for seq, name, pos, time, delta, data in rows
            ],
        )
        lines = [(pos, channel_sum(ids[name], name, pos), ids[name]) for name, pos in heads.items()]
        last = rows[-1][0]
        self._db.executemany(
            "UPDATE channels SET pos = ?, sum = ? WHERE id = ?", [*lines, (last, channel_sum(0, "", last), 0)]
        )
        users = [
            (digest, ids[name])
            for _, name, _, _, delta, data in rows
            if delta is None and b'"blob":"' in data
            for digest in schema.blobs_in(data)
        ]
        if users:
            self._db.executemany("INSERT OR IGNORE INTO blob_users VALUES (?, ?)", users)

    def check(self) -> None:
        """Check that the file that we write to is still the one that the next start will find."""
        found = LogFiles.of(self._name)
        if found == self._files:
            return
        if not self._files.wal and found[:2] == self._files[:2]:
            self._files = found  # SQLite has made its write-ahead log
            return
        raise LogUnavailable(
            f"The log {str(self.path)!r} or its write-ahead log was moved away or replaced while the host runs. "
            "Put it back, and the host goes on by itself; or stop the host."
        )

    def _put_kv(self, value: KeyValue) -> None:
        if value.data is None:
            self._db.execute("DELETE FROM notes WHERE channel = ? AND key = ?", (self._id(value.channel), value.key))
        else:
            self._store_kv(self._id(value.channel), value.key, value.data)

    def _store_kv(self, channel: int, key: str, data: bytes) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO notes (channel, key, data, sum, time) VALUES (?, ?, ?, ?, ?)",
            (channel, key, data, kv_sum(channel, key, data), int(self.clock() * 1000)),
        )

    def replace_kv(self, channel: Channel, key: str, old: bytes | None, new: bytes | None) -> bool:
        """Compare and swap in the only writer thread, so there is no write between the check and the change."""
        if self.get_kv(channel, key) != old:
            return False
        try:
            self._put_kv(KeyValue(channel, key, new))
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        return True

    def expire_kv(self, prefix: str, before: int) -> int:
        """Delete notes whose key has this prefix and that were last written before this time (milliseconds)."""
        sql = "DELETE FROM notes WHERE substr(key, 1, ?) = ? AND time < ?"
        try:
            return self._db.execute(sql, (len(prefix), prefix, before)).rowcount
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def probe(self) -> None:
        """Test whether the log can write again. Fails with the error of a commit."""
        known = len(self._ids)
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._put_kv(KeyValue("host", "probe", b"1"))
            self.check()
            self._db.execute("COMMIT")
        except (sqlite3.Error, LogUnavailable) as error:
            self._forget_channels(known)
            self._rollback()
            raise error if isinstance(error, LogUnavailable) else translate(error, self.path) from error

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
        self._store_kv(channel, key, msgspec.msgpack.encode(before + compacted_offsets))

    def drop_channel_deltas(self, channel: Channel, below: int) -> int:
        chosen = "SELECT seq FROM events WHERE channel = ? AND pos < ? AND delta IS NOT NULL LIMIT ?"
        try:
            cursor = self._db.execute(
                f"DELETE FROM events WHERE seq IN ({chosen})", (self._ids.get(channel), below, _DROP_ROWS)
            )
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        return cursor.rowcount

    def checkpoint(self) -> int:
        """Move commits from the write-ahead log into the database, and return the size of that log. It waits for the
        disk (10 to 90 ms were measured), so it runs concurrently with the commits and does not block them."""
        try:
            _, pages, _ = self._reading().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            size = self._reading().execute("PRAGMA page_size").fetchone()[0]
        except sqlite3.Error:
            return 0  # a full disk: the next commit reports it, and the next checkpoint retries
        return int(max(0, pages) * size)

    def disk(self) -> DiskUse:
        files = [self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal")]
        disk = os.statvfs(self.path.parent)
        used = sum(file.stat().st_size for file in files if file.exists())
        return DiskUse(used, disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)

    def delete(self, channel: Channel, blobs: Iterable[str]) -> None:
        """Delete a channel and overwrite its data in the file: it may contain a secret that was shown by mistake."""
        try:
            ident = self._id(channel)
            self._db.execute("PRAGMA secure_delete = ON")
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM events WHERE channel = ?", (ident,))
            self._db.execute("DELETE FROM notes WHERE channel = ?", (ident,))
            self._db.execute("DELETE FROM blob_users WHERE channel = ?", (ident,))
            self._db.executemany("DELETE FROM blobs WHERE digest = ?", [(digest,) for digest in blobs])
            self._db.execute("COMMIT")
            self.truncate_due = True
        except sqlite3.Error as error:
            self._rollback()
            raise translate(error, self.path) from error
        finally:
            self._db.execute(_SECURE_DELETE)

    def truncate(self) -> None:
        """Empty the write-ahead log, which still contains deleted data. While a reader needs it, it remains due."""
        with contextlib.suppress(sqlite3.Error):  # a full disk: it is retried
            self._db.execute(f"PRAGMA busy_timeout = {_TRUNCATE_MS}")
            busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self.truncate_due = bool(busy)
        self._db.execute(f"PRAGMA busy_timeout = {int(limits.BUSY_SECONDS * 1000)}")

    def _id(self, channel: Channel, *, counted: bool = False) -> int:
        """The channel's number, made when it is new. Runs inside the caller's transaction; `counted`: it writes the
        channel's head, and with that the checksum."""
        ident = self._ids.get(channel)
        if ident is None:
            made = self._db.execute("INSERT OR IGNORE INTO channels (name, pos) VALUES (?, 0)", (channel,))
            ident = made.lastrowid if made.rowcount else None
            if ident is None:
                ident = self._db.execute("SELECT id FROM channels WHERE name = ?", (channel,)).fetchone()[0]
            elif not counted:
                self._db.execute("UPDATE channels SET sum = ? WHERE id = ?", (channel_sum(ident, channel, 0), ident))
            assert isinstance(ident, int)
            self._ids[channel], self._names[ident] = ident, channel
        return ident

    def _forget_channels(self, known: int) -> None:
        """Those that a failed transaction has made: the last ones. A copy in front of each commit would cost more than
        the commit on a host with tens of thousands."""
        while len(self._ids) > known:
            self._ids.popitem()

    def _rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for db in [*self._read_connections, self._db]:
            db.close()
        self._mark.end(self.path)
        open_file(self.path).unlink(missing_ok=True)
        self._mark.close()
        self.journal.close()


def _identified(db: sqlite3.Connection, path: Path, mark: Mark, marked: Marked | None, tail_lost: bool) -> Identity:
    db.execute("BEGIN IMMEDIATE")
    try:
        identity = identify(db, path, marked, tail_lost)
        if identity.lost_now:  # no position and no number is given a second time
            db.execute("UPDATE channels SET pos = pos + ?, sum = NULL", (identity.lost_now,))
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
    mark.begin(Marked(identity.epoch, identity.salt, identity.last, LogFiles.of(path)))
    return identity

"""What is damaged in a log, and a new log with everything that can still be read.

SQLite stops at the first page that it cannot read. So the tables are read in order of their numbers, and what cannot be
read is stepped over, by the shortest way to the next row that can. The damaged file is kept beside the new one.
"""

import contextlib
import hashlib
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from portico.kernel.errors import LogDamaged
from portico.kernel.events import Delta, Unreadable, decode, encode
from portico.kernel.log.sqlite.checksum import channel_sum, event_sum, kv_sum
from portico.kernel.log.sqlite.error_text import ERRORS
from portico.kernel.log.sqlite.identify import UNKNOWN, tail_is_lost
from portico.kernel.log.sqlite.schema import VERSION, blobs_in, channel_of, prepare
from portico.kernel.log.sqlite.watermark import Mark

_SHOWN = 20
"""Maximum lines about single damages: more are not useful."""
_EVENTS = "SELECT seq, channel, pos, time, delta, data, sum FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq"
_BLOBS = "SELECT rowid, digest, data FROM blobs WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
_INSERT = "INSERT OR IGNORE INTO events (seq, channel, pos, time, delta, data, sum) VALUES (?, ?, ?, ?, ?, ?, ?)"
_FAR = 2**62
_GAP = encode(Unreadable(reason="checksum"))

Row = tuple[Any, ...]


class RepairReport(Struct):
    events: int = 0
    channels: int = 0
    blobs: int = 0
    damage: list[str] = []
    """What is wrong, in words; empty for a whole log."""
    kept_as: str = ""
    """Where the damaged file is now, after a repair."""

    def add(self, words: str) -> None:
        if len(self.damage) < _SHOWN:
            self.damage = [*self.damage, words]
        elif len(self.damage) == _SHOWN:
            self.damage = [*self.damage, "... and more"]


def check(path: Path) -> RepairReport:
    """Reads everything and changes nothing."""
    report = RepairReport()
    with _opened(path) as db:
        found = [row[0] for row in _all(db, "PRAGMA integrity_check(20)", report, "the file")]
        for line in found:
            if line != "ok":
                report.add(f"the file: {' '.join(str(line).split())}")
        _check_identity(db, path, report)
        channels = _Channels(db, report)
        names = channels.names
        report.channels = len(names)
        known = {digest for (digest,) in _all(db, "SELECT digest FROM blobs", report, "the list of blobs")}
        salt = _salt(db, path, report)
        checked, users = False, set[tuple[str, int]]()
        for row in _readable(db, _EVENTS, report, "events"):
            report.events += 1
            _check_event(row, salt, names, known, report)
            if checked and row[6] is None:
                report.add(f"event {row[0]}: its checksum is lost")
            if not _is_delta(row[4], row[5]):
                report.add(f"event {row[0]}: it is marked as a piece of a text, and is none")
            checked = checked or row[6] is not None
            users |= {(digest, row[1]) for digest in blobs_in(row[5])}
        stored = set(_all(db, "SELECT digest, channel FROM blob_users", report, "the users of blobs"))
        for digest, channel in sorted(users ^ stored):
            report.add(f"blob {digest[:12]}…: the list of its users is wrong ({names.get(channel, '?')})")
        for note in _all(db, "SELECT channel, key, data, sum FROM notes", report, "the notes"):
            if note[0] not in names or note[3] not in (None, kv_sum(*note[:3])):
                report.add(f"note {note[1]!r} of {names.get(note[0], '?')}: it was changed")
        for _, digest, data in _readable(db, _BLOBS, report, "blobs"):
            report.blobs += 1
            if hashlib.sha256(data).hexdigest() != digest:
                report.add(f"blob {digest[:12]}…: its content is not what was stored")
    return report


def _is_delta(delta: str | None, data: bytes) -> bool:
    """Whether the mark of an event is right: what is marked is deleted when the log is compacted."""
    if delta is None:
        return True
    try:
        event = decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return True  # its checksum decides
    return isinstance(event, Unreadable) or (isinstance(event, Delta) and event.part == delta)


def _check_identity(db: sqlite3.Connection, path: Path, report: RepairReport) -> None:
    stored: dict[str, str] = dict(_all(db, "SELECT key, value FROM meta", report, "the log's identity"))
    for key in ("epoch", "salt") if stored else ():  # without all of it the mark knows it, or a start makes it new
        if not str(stored.get(key, "")).isalnum():
            report.add(f"the log's identity: its {key} is lost")
    if not path.with_name(path.name + "-mark").exists() and tail_is_lost(path):
        report.add(f"the log: {UNKNOWN}")


class _Channels:
    """The names of channels by their numbers, from their rows, or from their first events where a row is damaged."""

    def __init__(self, db: sqlite3.Connection, report: RepairReport) -> None:
        self.names: dict[int, str] = {}
        self.heads: dict[int, int] = {}
        rows = {row[0]: row[1:] for row in _all(db, "SELECT id, name, pos, sum FROM channels", report, "the channels")}
        last: dict[int, int] = dict(
            _all(db, "SELECT channel, max(pos) FROM events GROUP BY channel", report, "the channels' heads")
        )
        if 0 not in rows:
            report.add("the channels: the last number is lost")
        for ident in sorted({*rows, *last}, key=lambda ident: ident not in rows):
            name, pos, stored = rows.get(ident, (None, 0, 0))
            if stored is None or stored == channel_sum(ident, str(name), pos):
                self.heads[ident] = pos
            elif ident == 0:
                report.add("the channels: the last number is damaged")
            else:
                name = self._recovered(db, ident, name, last.get(ident), stored, report)
            if ident and name is not None:
                taken = name in self.names.values()
                self.names[ident] = f"lost/{ident}" if taken else name

    def _recovered(
        self, db: sqlite3.Connection, ident: int, name: str | None, head: int | None, stored: int, report: RepairReport
    ) -> str | None:
        """None: it has no events."""
        if head is None:
            report.add(f"channel {ident}: its row is damaged, and it has no events")
            return None
        if name is not None and stored == channel_sum(ident, name, head):
            own: str | None = name
        else:
            first = _all(db, "SELECT data FROM events WHERE channel = ? ORDER BY pos LIMIT 1", report, "events", ident)
            own = channel_of(first[0][0]) if first else None
        lost = f"its name is lost; its events are in 'lost/{ident}'"
        report.add(f"channel {ident}: its row is damaged; {f'it is {own!r}' if own else lost}")
        return own or f"lost/{ident}"


def _salt(db: sqlite3.Connection, path: Path, report: RepairReport) -> int | None:
    """What goes into the sums of this log's events, from the log or from its mark; None when both are lost."""
    stored = _all(db, "SELECT value FROM meta WHERE key = 'salt'", report, "the log's identity")
    if stored and str(stored[0][0]).isdecimal():
        return int(stored[0][0])
    if not path.with_name(path.name + "-mark").exists():
        return None
    with contextlib.closing(Mark(path)) as mark:
        marked = mark.read()
    return marked.salt if marked is not None else None


def _check_event(row: Row, salt: int | None, names: dict[int, str], blobs: set[str], report: RepairReport) -> None:
    seq, channel, pos, when, _, data, stored = row
    if None not in (stored, salt) and stored != event_sum(salt or 0, seq, channel, pos, when, data):
        report.add(
            f"event {seq} ({names.get(channel, '?')}, position {pos}): it was changed; it is shown as unreadable"
        )
    elif channel not in names:
        report.add(f"event {seq}: its channel is lost")
    else:
        for digest in blobs_in(data) - blobs:
            report.add(f"event {seq} ({names[channel]}): the blob {digest[:12]}… is missing")


def repair(path: Path) -> RepairReport:
    """Replace the log by a new one. The caller holds the lock of the home, and the log is not open elsewhere."""
    draft = path.with_name(f".{path.name}.repair")
    draft.unlink(missing_ok=True)
    report = RepairReport()
    with _opened(path) as old, contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as new:
        prepare(new)
        new.execute("BEGIN")
        salt = _salt(old, path, report)
        _copy(old, new, salt, report)
        _keep_salt(new, salt)
        new.execute("COMMIT")
    draft.chmod(0o600)
    aside = path.with_name(f"{path.name}.damaged-{int(time.time())}")
    path.rename(aside)
    for suffix in ("-wal", "-shm", "-mark", "-open"):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + suffix))
    draft.rename(path)
    report.kept_as = str(aside)
    return report


def _keep_salt(new: sqlite3.Connection, salt: int | None) -> None:
    """Without it no sum can be checked any more; the events are read as those of a version that had none."""
    if salt is None:
        new.execute("UPDATE events SET sum = NULL")
    salt = secrets.randbits(32) if salt is None else salt
    new.execute("INSERT OR REPLACE INTO meta VALUES ('salt', ?)", (str(salt),))
    new.execute("INSERT OR IGNORE INTO meta VALUES ('epoch', ?)", (secrets.token_hex(4),))


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, salt: int | None, report: RepairReport) -> None:
    channels = _Channels(old, report)
    names, heads = channels.names, channels.heads
    last = heads.pop(0, 0)
    for seq, channel, pos, when, delta, data, stored in _readable(old, _EVENTS, report, "events"):
        if channel not in names:
            names[channel] = f"lost/{channel}"
            report.add(f"channel {channel}: its name is lost; its events are in 'lost/{channel}'")
        if None not in (stored, salt) and stored != event_sum(salt or 0, seq, channel, pos, when, data):
            # What readers are shown of it, for good: else every later check would find it again.
            data, stored = _GAP, event_sum(salt or 0, seq, channel, pos, when, _GAP)
            report.add(f"event {seq} ({names[channel]}, position {pos}): it was changed; it is an unreadable one now")
        new.execute(_INSERT, (seq, channel, pos, when, delta if _is_delta(delta, data) else None, data, stored))
        new.executemany("INSERT OR IGNORE INTO blob_users VALUES (?, ?)", [(each, channel) for each in blobs_in(data)])
        heads[channel] = max(heads.get(channel, 0), pos)
        last = max(last, seq)
        report.events += 1
    for ident, name in names.items():
        pos = heads.get(ident, 0)
        values = (ident, name, pos, channel_sum(ident, name, pos))
        new.execute("INSERT OR REPLACE INTO channels (id, name, pos, sum) VALUES (?, ?, ?, ?)", values)
    new.execute("UPDATE channels SET pos = ?, sum = ? WHERE id = 0", (last, channel_sum(0, "", last)))
    report.channels = len(names)
    for ident in names:
        sql = "SELECT channel, key, data, sum, time FROM notes WHERE channel = ?"
        for note in _all(old, sql, report, f"notes of {names[ident]}", ident):
            if note[3] in (None, kv_sum(*note[:3])):
                new.execute("INSERT OR REPLACE INTO notes (channel, key, data, sum, time) VALUES (?, ?, ?, ?, ?)", note)
    for _, digest, data in _readable(old, _BLOBS, report, "blobs"):
        if hashlib.sha256(data).hexdigest() == digest:
            new.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (digest, data))
            report.blobs += 1
        else:
            report.add(f"blob {digest[:12]}…: damaged, left out")
    for key, value in _all(old, "SELECT key, value FROM meta", report, "the log's identity"):
        if key in ("epoch", "salt", "lost") and value.isalnum():
            new.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def _all(db: sqlite3.Connection, sql: str, report: RepairReport, what: str, *args: object) -> list[Row]:
    """As many rows as can be read from the beginning on."""
    rows: list[Row] = []
    try:
        for row in db.execute(sql, args):
            rows.append(row)
    except sqlite3.DatabaseError as error:
        report.add(f"{what}: {error}")
    return rows


def _readable(db: sqlite3.Connection, sql: str, report: RepairReport, what: str) -> Iterator[Row]:
    """Yield every readable row, ordered by number; an unreadable range is reported and skipped."""
    at = 0
    while True:
        try:
            for row in db.execute(sql, (at, _FAR)):
                at = row[0] + 1
                yield row
            return
        except sqlite3.DatabaseError as error:
            after = _next(at, lambda number: _can_read(db, sql, number))
            words = f"{what} from number {at} on" if after is None else f"{what} {at} to {after - 1}"
            report.add(f"{words} cannot be read: {error}")
            if after is None:
                return
            at = after


def _can_read(db: sqlite3.Connection, sql: str, number: int) -> bool:
    """Whether something comes from this number on, and its first row can be read."""
    try:
        return db.execute(f"{sql} LIMIT 1", (number, _FAR)).fetchone() is not None
    except sqlite3.DatabaseError:
        return False


def _next(at: int, good: Callable[[int], bool]) -> int | None:
    """Find the first number after `at` that is readable again: exponential search, then binary search."""
    bad, leap = at, 1
    while not good(bad + leap):
        bad, leap = bad + leap, leap * 2
        if bad > _FAR // 4:
            return None
    low, high = bad, bad + leap
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """For reading. A file that SQLite does not know as its own at all cannot be helped."""
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        version: int = db.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise LogDamaged(
                f"The log {str(path)!r} has schema version {version}; start a host on it, which makes it {VERSION}."
            )
        db.execute("SELECT 1 FROM sqlite_schema LIMIT 1")  # otherwise each table would be reported as lost
        yield db
    except ERRORS as error:
        raise LogDamaged(
            f"The log {str(path)!r} cannot be read at all ({error}). Restore a backup: portico restore FILE --force"
        ) from error
    finally:
        db.close()

"""Checks whether the file is still the same log: by its mark, which is not in the write-ahead log.

The attack is no attack: a disk, a backup or a person with `cp`.
"""

import secrets
import sqlite3
from pathlib import Path

from portico.kernel.errors import LogDamaged
from portico.kernel.log.identity import Identity
from portico.kernel.log.sqlite.watermark import LogFiles, Marked, wal_of

UNKNOWN = "it was not closed, and its mark and its write-ahead log are missing: its last events may be gone"


def check_files(path: Path) -> None:
    """Before SQLite makes an empty log beside a full write-ahead log, which it would then throw away."""
    wal = wal_of(path)
    has_wal = wal.exists() and wal.stat().st_size > 0
    if has_wal and (not path.exists() or path.stat().st_size == 0):
        raise LogDamaged(
            f"The log {str(path)!r} is missing, and its write-ahead log {wal.name!r} is there. Put the log back, or "
            f"move {wal.name!r} aside to start anew."
        )


def check_pair(path: Path, marked: Marked | None) -> None:
    """SQLite takes any write-ahead log for that of the log beside it."""
    now, wal = LogFiles.of(path), wal_of(path)
    if marked is None or not wal.exists() or wal.stat().st_size == 0:
        return
    same_log = (now.device, now.log) == marked.files[:2]
    if not marked.files.wal or same_log != (now.wal == marked.files.wal):
        raise LogDamaged(
            f"{wal.name!r} does not belong to the log {str(path)!r} beside it: one of them was replaced. Put the right "
            f"one back, or move {wal.name!r} aside to start without it."
        )


def identify(db: sqlite3.Connection, path: Path, marked: Marked | None, tail_lost: bool) -> Identity:
    """Inside of a transaction: what is found is written down with it."""
    stored = dict(db.execute("SELECT key, value FROM meta"))
    seq: int = db.execute("SELECT pos FROM channels WHERE id = 0").fetchone()[0]
    epoch, lost = stored.get("epoch", ""), int(stored.get("lost", "0"))
    # SQLite treats an emptied or missing file as a new log; the mark contains its previous state.
    own = marked if marked is not None and (not epoch or marked.epoch == epoch) else None
    missing = max(0, own.seq - seq) if own is not None else 0
    why = UNKNOWN if tail_lost else _reason(epoch, own, missing, LogFiles.of(path))
    known = marked.salt if marked is not None else secrets.randbits(32)  # a damaged table has lost it
    salt = int(stored.get("salt", known))
    if why:
        epoch = secrets.token_hex(4)
        lost += missing
        values = (epoch, str(lost), str(salt))
        db.execute("INSERT OR REPLACE INTO meta VALUES ('epoch', ?), ('lost', ?), ('salt', ?)", values)
    reason = why if stored.get("epoch") or missing or tail_lost else ""
    return Identity(epoch, salt, lost, missing, seq + missing, reason, tail_lost)


def open_file(path: Path) -> Path:
    """The path of a file that exists while a host has the log open, and after a crash."""
    return path.with_name(path.name + "-open")


def tail_is_lost(path: Path) -> bool:
    """Of a log without a mark that SQLite has not opened yet: whether it was not closed, and its write-ahead log is
    gone. All that a killed host wrote since the last checkpoint was in there."""
    wal = wal_of(path)
    return open_file(path).exists() and (not wal.exists() or wal.stat().st_size == 0)


def _reason(epoch: str, own: Marked | None, missing: int, files: LogFiles) -> str:
    if missing:
        return f"its last {missing} events are gone"
    if not epoch:
        return "it is new"
    if own is None:
        return "its mark is missing or of another log"
    if (files.device, files.log) != own.files[:2]:
        return "it was copied or restored"
    return ""

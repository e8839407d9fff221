"""Checks a log before it is opened: whether it is intact, and whether a host could open it. Changes nothing."""

import sqlite3
import time
from pathlib import Path

from portico.kernel.errors import LogTooNew
from portico.kernel.log.sqlite.error_text import ERRORS, translate
from portico.kernel.log.sqlite.schema import VERSION

LOOK_SECONDS = 5.0
"""Time limit for the check of all pages: gigabytes take longer, and damage in the rest is detected when it is read."""
_STEPS = 10_000
"""SQLite virtual machine steps between two checks of the time: some milliseconds."""


def examine(path: Path, *, in_use: bool) -> str:
    """What there is, in words. Raises `LogDamaged` or `LogUnavailable`, as opening it would. A log that is `in_use` by
    its host is not asked for its lock."""
    if not path.exists():
        return "none yet; the first start makes it"
    then = "then start the host again"
    try:
        db = sqlite3.connect(path, timeout=0.5, isolation_level=None)
        try:
            if not in_use:
                db.execute("BEGIN IMMEDIATE")
                db.execute("ROLLBACK")
            version: int = db.execute("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                raise LogTooNew(f"The log has schema version {version}, this Portico knows {VERSION}.")
            whole = _is_whole(db)
            seq = db.execute("SELECT pos FROM channels WHERE id = 0").fetchone()[0] if version else 0
        finally:
            db.close()
    except ERRORS as error:
        raise translate(error, path, then) from error
    size = path.stat().st_size / 1e6
    return f"{path}, {seq} events, {size:.1f} MB" + (
        "" if whole else f"; not all of it was looked at in {LOOK_SECONDS:g} s"
    )


def _is_whole(db: sqlite3.Connection) -> bool:
    """Check all pages; False if the time was not sufficient. Damage raises the same error as SQLite elsewhere."""
    end = time.monotonic() + LOOK_SECONDS
    db.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    try:
        found: str = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return False
    finally:
        db.set_progress_handler(None, 0)
    if found != "ok":
        raise sqlite3.DatabaseError(f"malformed: {' '.join(found.split())}")
    return True

"""Error messages for SQLite errors of the log's file, with the next step."""

import shlex
import shutil
import sqlite3
from pathlib import Path

from portico.kernel.errors import LogDamaged, LogUnavailable

ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""SQLite quotes a damaged schema in its messages, and then not even the message is text."""
GOES_ON = "the host goes on by itself"
AGAIN = "then start the host again"
"""The next step after the problem is solved: for a running host, and for one that could not start."""


def translate(error: sqlite3.Error | UnicodeDecodeError, path: Path, then: str = GOES_ON) -> LogUnavailable:
    """SQLite's words, what the user can do about it, and what happens `then`."""
    text = str(error)
    name = str(path)
    if any(sign in text for sign in ("malformed", "not a database", "no such table", "no such column", "decode")):
        return LogDamaged(
            f"The log {name!r} is damaged ({text}). Move it aside to start anew, restore a backup, or keep what "
            f"is readable: portico log check --repair, or sqlite3 {shlex.quote(name)} .recover"
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

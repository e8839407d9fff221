"""The SQL of the search index: a separate file that can be deleted, since all of it comes from the log.

`texts` holds the case-folded texts of conversations; `grams` finds the texts that contain all trigrams of the query
(FTS5's trigram tokenizer, which works inside words and in every script), and `instr` decides. So the result is the same
as comparing every text. Plain blocking functions, for one thread.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

VERSION = 2
PIECES = 16
"""Three-letter pieces of a query that the index is asked for: more of them sieve no better and cost time."""
_STEPS = 10_000
"""Steps of SQLite's virtual machine between checks of the timeout."""
_PASSING = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_CANTOPEN,
    }
)
_TABLES = (
    "CREATE TABLE state (cursor INTEGER NOT NULL, epoch TEXT NOT NULL)",
    "INSERT INTO state VALUES (0, '')",
    "CREATE TABLE texts (id INTEGER PRIMARY KEY, session TEXT NOT NULL, pos INTEGER NOT NULL, turn TEXT,"
    " folded BLOB NOT NULL)",
    "CREATE INDEX texts_by_session ON texts (session)",
    "CREATE VIRTUAL TABLE grams USING fts5 (folded, content = '', detail = none,"
    " tokenize = 'trigram case_sensitive 1')",
    f"PRAGMA user_version = {VERSION}",
)


class IndexedText(NamedTuple):
    """A text of a conversation, and its position."""

    session: str
    pos: int
    turn: str | None
    text: str


class IndexHit(NamedTuple):
    session: str
    pos: int
    turn: str | None


class Index:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.cursor: int
        self.epoch: str
        self.cursor, self.epoch = db.execute("SELECT cursor, epoch FROM state").fetchone()
        """The number of the log up to which everything is in here, and of which log."""

    @classmethod
    def open(cls, path: Path) -> "Index":
        """A file that is no index of this version is replaced by an empty one. Fails where SQLite has no trigrams."""
        try:
            return cls(_connect(path))
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # SQLite quotes a damaged schema in its messages
            if isinstance(error, sqlite3.DatabaseError) and passing(error):
                raise
            remove(path)
            return cls(_connect(path))

    def close(self) -> None:
        self._db.close()

    def begin(self, epoch: str) -> None:
        self._db.execute("UPDATE state SET epoch = ?", (epoch,))
        self.epoch = epoch

    def add(self, texts: Iterable[IndexedText], cursor: int) -> None:
        with self._db:
            self._db.execute("BEGIN")
            for said in texts:
                folded = said.text.casefold()
                row = (said.session, said.pos, said.turn, folded.encode())
                ident = self._db.execute("INSERT INTO texts (session, pos, turn, folded) VALUES (?, ?, ?, ?)", row)
                self._db.execute("INSERT INTO grams (rowid, folded) VALUES (?, ?)", (ident.lastrowid, _plain(folded)))
            self._db.execute("UPDATE state SET cursor = ?", (cursor,))
        self.cursor = cursor

    def sessions(self) -> set[str]:
        return {session for (session,) in self._db.execute("SELECT DISTINCT session FROM texts")}

    def forget(self, session: str) -> None:
        """Delete a session. A contentless table needs the old texts to delete them."""
        with self._db:
            self._db.execute("BEGIN")
            rows = self._db.execute("SELECT id, folded FROM texts WHERE session = ?", (session,)).fetchall()
            self._db.executemany(
                "INSERT INTO grams (grams, rowid, folded) VALUES ('delete', ?, ?)",
                [(ident, _plain(folded.decode())) for ident, folded in rows],
            )
            self._db.execute("DELETE FROM texts WHERE session = ?", (session,))
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def find(self, wanted: str, seconds: float) -> list[IndexHit] | None:
        """The first place in each turn of each session, oldest first; None when the time was not enough.
        `wanted` is case-folded."""
        end = time.monotonic() + seconds
        self._db.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        query = _query(wanted)
        chosen = "id IN (SELECT rowid FROM grams WHERE grams MATCH :query) AND " if query else ""
        sql = f"SELECT session, pos, turn, min(id) FROM texts WHERE {chosen}instr(folded, :wanted)"
        try:
            rows = self._db.execute(
                f"{sql} GROUP BY session, turn ORDER BY 4", {"query": query, "wanted": wanted.encode()}
            ).fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            return None
        finally:
            self._db.set_progress_handler(None, 0)
        return [IndexHit(session, pos, turn) for session, pos, turn, _ in rows]


def passing(error: sqlite3.Error | OSError) -> bool:
    """Whether the error is temporary, such as a full disk: the index is still valid."""
    return isinstance(error, OSError) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING


def remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with contextlib.ExitStack() as failing:
        failing.callback(db.close)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA secure_delete = ON")  # what is deleted is gone from the file, too
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            db.execute("BEGIN")
            for statement in _TABLES:
                db.execute(statement)
            db.execute("COMMIT")
        elif version != VERSION:
            raise sqlite3.DatabaseError(f"version {version}")
        failing.pop_all()
    return db


def _plain(folded: str) -> str:
    """Replace NUL characters, at which the tokenizer stops."""
    return folded.replace("\0", "\ufffd")


def _query(wanted: str) -> str:
    """Pieces of three letters that a text must have, all of them; empty when there is none to ask for."""
    pieces = [wanted[at : at + 3] for at in range(len(wanted) - 2)]
    pieces = [piece for piece in dict.fromkeys(pieces) if "\0" not in piece]
    step = max(1, len(pieces) // PIECES)
    return " AND ".join('"' + piece.replace('"', '""') + '"' for piece in pieces[::step])

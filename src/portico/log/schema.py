"""The tables, their version, and how older data becomes newer.

Each step runs in one transaction together with the new version number: a kill in the middle leaves the old
version whole, and the next start does the step again.
"""

import sqlite3

from portico import faults
from portico.errors import LogTooNew

VERSION = 2

# Channel 0 keeps the last seq: deleted events must not give their numbers back.
TABLES_1 = """
CREATE TABLE channels (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, pos INTEGER NOT NULL) STRICT;
INSERT INTO channels VALUES (0, '', 0);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, channel INTEGER NOT NULL, pos INTEGER NOT NULL, time INTEGER NOT NULL, data BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_channel ON events (channel, pos);
CREATE TABLE notes (
    channel INTEGER NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (channel, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE blobs (digest TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT;
"""

# Version 2 marks deltas, so that compaction finds them without decoding everything: `delta` is the id of the part
# that the event is a piece of, and NULL for whole events.
STEPS: dict[int, str] = {
    2: """
ALTER TABLE events ADD COLUMN delta TEXT;
UPDATE events SET delta = json_extract(CAST(data AS TEXT), '$.part')
    WHERE json_extract(CAST(data AS TEXT), '$.type') IN ('part.delta', 'tool.input', 'tool.output');
CREATE INDEX events_deltas ON events (time) WHERE delta IS NOT NULL;
"""
}


def prepare(db: sqlite3.Connection) -> None:
    """Creates or migrates the tables, up to `VERSION`."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise LogTooNew(
            f"The log has schema version {version}, this Portico knows {VERSION}. Start a newer Portico on it, "
            "or choose another home folder."
        )
    if version == 0:
        _step(db, 1, TABLES_1)
        version = 1
    for target in range(version + 1, VERSION + 1):
        _step(db, target, STEPS[target])


def _step(db: sqlite3.Connection, target: int, script: str) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        for statement in script.split(";\n"):
            if statement.strip():
                db.execute(statement)
                faults.reach("migration")
        db.execute(f"PRAGMA user_version = {target}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")

"""The tables, their version, and how older data becomes newer.

Each step runs in one transaction together with the new version number: a kill in the middle leaves the old
version whole, and the next start does the step again.
"""

import re
import sqlite3
from collections.abc import Callable

import msgspec

from portico.kernel import faults
from portico.kernel.errors import LogTooNew
from portico.kernel.events import HOST

VERSION = 3

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
""",
    # Version 3: checksums (what older versions wrote has none), who refers to a blob, when a note was last written,
    # and which log this is.
    3: """
ALTER TABLE events ADD COLUMN sum INTEGER;
ALTER TABLE channels ADD COLUMN sum INTEGER;
ALTER TABLE notes ADD COLUMN sum INTEGER;
ALTER TABLE notes ADD COLUMN time INTEGER NOT NULL DEFAULT 0;
UPDATE notes SET time = CAST(strftime('%s', 'now') AS INTEGER) * 1000;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE blob_users (digest TEXT NOT NULL, channel INTEGER NOT NULL, PRIMARY KEY (digest, channel))
    STRICT, WITHOUT ROWID;
CREATE INDEX blob_users_by_channel ON blob_users (channel);
""",
}

_DIGEST = re.compile(r"[0-9a-f]{64}")
_REFERRING = ("tool.ended", "turn.step", "history.copied")
"""Events with a blob that the host itself has stored."""


class _Reference(msgspec.Struct):
    blob: str | None = None


class _Turn(msgspec.Struct):
    parts: list[_Reference] = []
    steps: list[_Reference] = []


class _Referring(msgspec.Struct):
    type: str = ""
    blob: str | None = None
    turns: list[_Turn] = []


def blobs_in(data: bytes) -> set[str]:
    """The blobs that an event refers to, also those of a copied history. The attack: a message names the hash of
    another person's blob, in an attachment or in free JSON. So only the fields count that the host fills in."""
    if b'"blob":"' not in data:
        return set()
    try:
        event = msgspec.json.decode(data, type=_Referring)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return set()
    if event.type not in _REFERRING:
        return set()
    copied = [each.blob for turn in event.turns for each in (*turn.parts, *turn.steps)]
    return {blob for blob in (event.blob, *copied) if blob is not None and _DIGEST.fullmatch(blob)}


_FIRST = {f"{kind}.started" for kind in ("host", "session", "task", "job", "terminal")} | {
    "run.claimed",
    "automation.created",
}
"""The first events of channels. They name what their channel is about in a field of that name."""


def channel_of(first: bytes) -> str | None:
    """The name of a channel with a damaged row, from its first event; None if the event does not contain it."""
    try:
        event = msgspec.json.decode(first, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    kind = str(event.get("type"))
    prefix = kind.partition(".")[0]
    if kind not in _FIRST:
        return None
    return HOST if prefix == HOST else f"{prefix}/{event[prefix]}" if prefix in event else None


def _find_blob_users(db: sqlite3.Connection) -> None:
    rows = db.execute('SELECT channel, data FROM events WHERE instr(data, CAST(\'"blob":"\' AS BLOB))')
    users = {(digest, channel) for channel, data in rows for digest in blobs_in(data)}
    db.executemany("INSERT INTO blob_users VALUES (?, ?)", sorted(users))


FILLS: dict[int, Callable[[sqlite3.Connection], None]] = {3: _find_blob_users}
"""What a step does besides its SQL, in the same transaction."""


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
        if target in FILLS:
            FILLS[target](db)
        db.execute(f"PRAGMA user_version = {target}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")

"""Notes beside a channel and blobs under their hash."""

import asyncio
import hashlib
import json
import sqlite3
import time
from pathlib import Path

import pytest

from portico.kernel import limits
from portico.kernel.errors import NotFound, TooLarge
from portico.kernel.events import HistoryCopied, ToolEnded
from portico.kernel.host import Host
from portico.kernel.log import notes
from portico.kernel.log.sqlite import SqliteLog, journal
from portico.kernel.log.stored.log import StoredLog
from portico.kernel.session import Session
from tests.log.conftest import LogOpener
from tests.log.events import fact


async def test_notes_are_kept_replaced_and_removed(log: StoredLog) -> None:
    log.put_kv("a", "title", b"one")
    log.put_kv("a", "title", b"two")
    log.put_kv("b", "title", b"three")
    log.put_kv("b", "other", b"four")
    await log.flush()
    assert await log.list_kv("title") == {"a": b"two", "b": b"three"}
    log.put_kv("a", "title", None)
    log.put_kv("a", "never", None)
    await log.flush()
    assert await log.get_kv("a", "title") is None
    assert await log.list_kv("title") == {"b": b"three"}


@pytest.mark.parametrize(
    ("stored", "old", "new", "replaced"),
    [
        (None, None, b"new", True),
        (b"mine", b"mine", b"new", True),
        (b"mine", b"mine", None, True),
        (None, None, None, True),
        (b"theirs", b"mine", b"new", False),
        (b"theirs", None, b"new", False),
        (b"theirs", None, None, False),
        (b"theirs", b"mine", None, False),
        (None, b"mine", b"new", False),
    ],
)
async def test_a_note_is_replaced_only_where_it_is_still_the_old_one(
    log: StoredLog, stored: bytes | None, old: bytes | None, new: bytes | None, replaced: bool
) -> None:
    assert await log.replace_kv("a", "k", None, stored)
    assert await log.replace_kv("a", "k", old, new) == replaced
    assert await log.get_kv("a", "k") == (new if replaced else stored)


async def test_of_many_who_replace_one_note_at_once_one_does(log: StoredLog) -> None:
    for old in (None, b"won"):
        done = await asyncio.gather(*(log.replace_kv("a", "k", old, b"%d" % i) for i in range(20)))
        assert done.count(True) == 1
        assert await log.get_kv("a", "k") == b"%d" % done.index(True)
        assert await log.replace_kv("a", "k", b"%d" % done.index(True), b"won")


async def test_a_note_is_in_the_commit_of_the_event_behind_it(
    sqlite_log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more pending than one batch takes, note and event were parted: a kill between them kept only one."""
    monkeypatch.setattr(limits, "BATCH_EVENTS", 3)
    found: list[tuple[bool, bool]] = []

    def look(records: object) -> None:
        other = sqlite3.connect(tmp_path / "log.db")
        note = other.execute("SELECT count(*) FROM notes WHERE key = 'k'").fetchone()[0]
        event = other.execute("SELECT count(*) FROM events WHERE CAST(data AS TEXT) LIKE '%marked%'").fetchone()[0]
        other.close()
        found.append((bool(note), bool(event)))

    sqlite_log.on_commit(look)
    for i in range(7):
        sqlite_log.post("a", fact(i))
    sqlite_log.put_kv("a", "k", b"v")
    await sqlite_log.append("a", fact("marked"))
    assert set(found) <= {(False, False), (True, True)}
    assert (True, True) in found


async def test_blobs_are_addressed_by_their_hash(log: StoredLog) -> None:
    digest = await log.put_blob(b"whole output")
    assert digest == hashlib.sha256(b"whole output").hexdigest()
    assert await log.put_blob(b"whole output") == digest
    assert await log.blob(digest) == b"whole output"
    with pytest.raises(NotFound):
        await log.blob("no such")


async def test_a_blob_is_bounded(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BLOB_BYTES", 10)
    await log.put_blob(b"x" * 10)
    with pytest.raises(TooLarge):
        await log.put_blob(b"x" * 11)


async def test_a_commit_of_notes_alone_takes_no_number_back(open_log: LogOpener) -> None:
    log = await open_log()
    await log.append("a", fact(1), fact(2))
    log.put_kv("a", "k", b"v")
    await log.close()
    log = await open_log()
    assert await log.append("a", fact(3)) == 3
    await log.close()


async def test_what_was_on_its_way_is_deleted_too(log: StoredLog) -> None:
    await log.append("b", fact(1))
    log.post("b", fact("keeps the writer busy"))
    log.post("a", fact(2))
    log.put_kv("a", "k", b"v")
    await log.delete("a")
    assert (await log.read("a"), await log.get_kv("a", "k")) == ([], None)
    assert len(await log.read("b")) == 2


def ran(blob: str) -> ToolEnded:
    return ToolEnded(turn="t1", call="c1", ok=True, output="cut", blob=blob)


async def test_blobs_go_with_the_last_channel_that_refers_to_them(log: StoredLog) -> None:
    """The outputs of a deleted session stayed for ever, and whoever knew their hash could still read them."""
    own, shared = await log.put_blob(b"of a alone"), await log.put_blob(b"of both")
    await log.append("a", ran(own), ran(shared))
    await log.append("b", HistoryCopied(turns=[{"parts": [{"blob": shared}]}]))
    await log.delete("a")
    with pytest.raises(NotFound):
        await log.blob(own)
    assert await log.blob(shared) == b"of both"
    await log.delete("b")
    with pytest.raises(NotFound):
        await log.blob(shared)


async def test_deleting_a_channel_with_a_blob_does_not_read_the_log(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To find out who else has the blob, every event of every channel was read."""
    digest = await log.put_blob(b"output")
    await log.append("a", ran(digest))

    async def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("The log was read.")

    for name in ("read", "read_all"):
        monkeypatch.setattr(log, name, refuse)
    await log.delete("a")
    with pytest.raises(NotFound):
        await log.blob(digest)


async def test_a_blob_that_is_stored_again_meanwhile_stays(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = await log.put_blob(b"the same output")
    await log.append("a", ran(digest))
    look = log._store.own_blobs

    async def meanwhile(channel: str) -> set[str]:
        found = await look(channel)
        await log.put_blob(b"the same output")
        return found

    monkeypatch.setattr(log._store, "own_blobs", meanwhile)
    await log.delete("a")
    assert await log.blob(digest) == b"the same output"


def content(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_nothing_of_a_deleted_channel_stays_in_the_file(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    await log.append("a", fact("secret-in-an-event"), ran(await log.put_blob(b"secret-in-a-blob" * 1000)))
    log.put_kv("a", "k", b"secret-in-a-note")
    await log.append("b", fact("stays"))
    await log.delete("a")
    await log.close()
    assert b"stays" in content(tmp_path)
    assert b"secret-in" not in content(tmp_path)


async def test_a_deleted_channel_is_forgotten_but_its_numbers_are_not(open_log: LogOpener) -> None:
    log = await open_log()
    log.put_kv("a", "k", b"v")
    await log.append("a", fact(1), fact(2))
    await log.append("b", fact(3))
    await log.delete("a")
    assert await log.read("a") == []
    assert await log.get_kv("a", "k") is None
    assert [r.seq for r in await log.read_all()] == [3]
    await log.close()

    log = await open_log()
    assert log.channels("") == ["a", "b"]
    assert await log.append("a", fact(4)) == 4
    assert [r.pos for r in await log.read("a")] == [3]
    await log.delete("b")
    await log.delete("a")
    await log.close()

    log = await open_log()
    assert log.seq == 4, "deleted events do not give their numbers back"
    await log.close()


async def test_a_lone_event_is_one_commit(host: Host, session: Session) -> None:
    """Its summary was a second one."""
    log = host.log
    assert isinstance(log, SqliteLog)
    await log.flush()
    before = log.commits
    await session.rename("one", by="test")
    await session.rename("two", by="test")
    await asyncio.sleep(0.05)
    assert log.commits == before + 2
    assert json.loads((await log.list_kv("summary"))[session.channel])["title"] == "two", "it holds at once"


async def test_lazy_notes_go_with_the_next_commit_or_the_end(open_log: LogOpener) -> None:
    log = await open_log()
    log.put_kv("a", "one", b"1", lazy=True)
    await log.append("b", fact(1))
    assert await log._store.get_kv("a", "one") == b"1"
    log.put_kv("a", "two", b"2", lazy=True)
    await log.close()
    log = await open_log()
    assert (await log.get_kv("a", "one"), await log.get_kv("a", "two")) == (b"1", b"2")
    await log.close()


async def test_lazy_notes_are_not_written_with_every_commit(
    open_log: LogOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A summary changes with every event of a turn: it was written four times."""
    monkeypatch.setattr(notes, "LAZY_SECONDS", 3600.0)
    log = await open_log()
    for number in (b"1", b"2", b"3"):
        log.put_kv("a", "summary", number, lazy=True)
        await log.append("a", fact(1))
        assert await log.get_kv("a", "summary") == number, "it holds at once"
        assert await log._store.get_kv("a", "summary") == b"1"
    log.put_kv("b", "summary", b"4", lazy=True)
    await log.close()
    log = await open_log()
    assert await log.list_kv("summary") == {"a": b"3", "b": b"4"}
    await log.close()


async def test_a_journaled_note_survives_a_kill_without_a_commit(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("a", fact(1))
    before = log.commits
    log.journal("a", "cursor", b"1")
    log.journal("a", "cursor", b"2")
    log.journal("a", "told", b"x")
    log.journal("a", "told", None)
    log.journal("gone", "cursor", b"3")
    assert await log.get_kv("a", "cursor") == b"2"
    assert log.commits == before
    left = path.with_name("log.db-notes").read_bytes()
    await log.close()

    for data in (left, left + b"\0\0\0\7torn"):
        path.with_name("log.db-notes").write_bytes(data)
        db = sqlite3.connect(path)
        db.execute("DELETE FROM notes")
        db.commit()
        db.close()
        log = await SqliteLog.open(path)
        assert await log.get_kv("a", "cursor") == b"2"
        assert await log.get_kv("a", "told") is None
        assert await log.get_kv("gone", "cursor") is None, "a channel without events was deleted"
        assert path.with_name("log.db-notes").stat().st_size == 0
        await log.close()


async def test_a_journal_is_emptied_when_all_of_it_is_committed(
    sqlite_log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_BYTES", 100)
    await sqlite_log.append("a", fact(1))
    for number in range(10):
        sqlite_log.journal("a", "cursor", b"%d" % number)
    assert (tmp_path / "log.db-notes").stat().st_size > 100
    await sqlite_log.append("a", fact(2))
    assert (tmp_path / "log.db-notes").stat().st_size == 0
    assert await sqlite_log.get_kv("a", "cursor") == b"9"


async def test_notes_of_clients_that_never_came_back_go(log: StoredLog) -> None:
    for key in ("live:one", "live:two", "summary"):
        log.put_kv("a", key, b"x")
    await log.flush()
    assert await log.expire_kv("live", int(time.time() * 1000) - 1000) == 0
    assert await log.expire_kv("live", int(time.time() * 1000) + 1000) == 2
    assert await log.get_kv("a", "summary") == b"x"


async def test_a_deletion_reads_nothing_but_its_own_channel(sqlite_log: SqliteLog) -> None:
    """It read the whole log to learn who else refers to a blob."""
    digests = [await sqlite_log.put_blob(data) for data in (b"own", b"shared")]
    for channel, referred in (("session/a", digests), ("session/b", digests[1:])):
        await sqlite_log.append(channel, *(ran(digest) for digest in referred))
    steps: list[int] = []
    connection = sqlite_log._database._reading
    for index in range(2_000):
        sqlite_log.post("session/c", fact(f"{index}"))
    await sqlite_log.flush()

    def counting() -> sqlite3.Connection:
        db = connection()
        db.set_progress_handler(lambda: steps.append(1), 100)
        return db

    sqlite_log._database._reading = counting  # type: ignore[method-assign]
    await sqlite_log.delete("session/a")
    assert len(steps) < 10
    sqlite_log._database._reading = connection  # type: ignore[method-assign]
    with pytest.raises(NotFound):
        await sqlite_log.blob(digests[0])
    assert await sqlite_log.blob(digests[1]) == b"shared"

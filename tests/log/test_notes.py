"""Notes beside a channel and blobs under their hash."""

import asyncio
import hashlib
import sqlite3
from pathlib import Path

import pytest

from portico import limits
from portico.errors import NotFound, TooLarge
from portico.events import HistoryCopied, ToolEnded
from portico.log.sqlite import SqliteLog
from tests.log.events import fact


async def test_notes_are_kept_replaced_and_removed(log: SqliteLog) -> None:
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


async def test_a_note_is_in_the_commit_of_the_event_behind_it(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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

    log.on_commit(look)
    for i in range(7):
        log.post("a", fact(i))
    log.put_kv("a", "k", b"v")
    await log.append("a", fact("marked"))
    assert set(found) <= {(False, False), (True, True)}
    assert (True, True) in found


async def test_blobs_are_addressed_by_their_hash(log: SqliteLog) -> None:
    digest = await log.put_blob(b"whole output")
    assert digest == hashlib.sha256(b"whole output").hexdigest()
    assert await log.put_blob(b"whole output") == digest
    assert await log.blob(digest) == b"whole output"
    with pytest.raises(NotFound):
        await log.blob("no such")


async def test_a_blob_is_bounded(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BLOB_BYTES", 10)
    await log.put_blob(b"x" * 10)
    with pytest.raises(TooLarge):
        await log.put_blob(b"x" * 11)


async def test_a_commit_of_notes_alone_takes_no_number_back(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    await log.append("a", fact(1), fact(2))
    log.put_kv("a", "k", b"v")
    await log.close()
    log = await SqliteLog.open(tmp_path / "log.db")
    assert await log.append("a", fact(3)) == 3
    await log.close()


async def test_what_was_on_its_way_is_deleted_too(log: SqliteLog) -> None:
    await log.append("b", fact(1))
    log.post("b", fact("keeps the writer busy"))
    log.post("a", fact(2))
    log.put_kv("a", "k", b"v")
    await log.delete("a")
    assert (await log.read("a"), await log.get_kv("a", "k")) == ([], None)
    assert len(await log.read("b")) == 2


def ran(blob: str) -> ToolEnded:
    return ToolEnded(turn="t1", call="c1", ok=True, output="cut", blob=blob)


async def test_blobs_go_with_the_last_channel_that_refers_to_them(log: SqliteLog) -> None:
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


async def test_a_blob_that_is_stored_again_meanwhile_stays(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = await log.put_blob(b"the same output")
    await log.append("a", ran(digest))
    loop, look = asyncio.get_running_loop(), log._database.own_blobs

    def meanwhile(channel: str) -> set[str]:
        found = look(channel)
        asyncio.run_coroutine_threadsafe(log.put_blob(b"the same output"), loop).result(10)
        return found

    monkeypatch.setattr(log._database, "own_blobs", meanwhile)
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


async def test_a_deleted_channel_is_forgotten_but_its_numbers_are_not(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    log.put_kv("a", "k", b"v")
    await log.append("a", fact(1), fact(2))
    await log.append("b", fact(3))
    await log.delete("a")
    assert await log.read("a") == []
    assert await log.get_kv("a", "k") is None
    assert [r.seq for r in await log.read_all()] == [3]
    await log.close()

    log = await SqliteLog.open(tmp_path / "log.db")
    assert log.channels("") == ["a", "b"]
    assert await log.append("a", fact(4)) == 4
    assert [r.pos for r in await log.read("a")] == [3]
    await log.delete("b")
    await log.delete("a")
    await log.close()

    log = await SqliteLog.open(tmp_path / "log.db")
    assert log.seq == 4, "deleted events do not give their numbers back"
    await log.close()

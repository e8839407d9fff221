"""What the disk has damaged is one gap with a name; everything around it is read as ever."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from portico.kernel.errors import LogDamaged
from portico.kernel.events import Event, Message, Unreadable
from portico.kernel.fold import fold
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.state import SessionState
from portico.testing.fixtures import HostOpener
from tests.log.events import fact


def damage(path: Path, sql: str, *args: object) -> None:
    db = sqlite3.connect(path)
    assert db.execute(sql, args).rowcount > 0
    db.commit()
    db.close()


async def events(log: SqliteLog, channel: str = "a") -> list[Event]:
    return [record.event for record in await log.read(channel)]


@pytest.mark.parametrize(
    "harm",
    [
        "data = CAST(replace(CAST(data AS TEXT), 'audit', 'audio') AS BLOB)",
        "data = X'ff'",
        "data = X''",
        "time = time + 1",
        "sum = sum + 1",
    ],
)
async def test_a_damaged_event_is_one_gap_for_every_reader(tmp_path: Path, harm: str) -> None:
    """It was a 500 for its session and broken JSON for everybody who followed everything."""
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("a", *(fact(number) for number in range(3)))
    await log.append("b", fact("other"))
    await log.close()
    damage(path, f"UPDATE events SET {harm} WHERE seq = 2")
    log = await SqliteLog.open(path)
    expected = [fact(0), Unreadable(reason="checksum"), fact(2)]
    assert await events(log) == expected
    assert [record.event for record in await log.read_all()] == [*expected, fact("other")]
    following = log.follow("a")
    assert [record.event for record in await anext(aiter(following))] == expected
    assert await log.append("a", fact(3)) == 5
    await log.close()


async def test_an_event_that_took_anothers_place_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("a", fact(0), fact(1))
    await log.close()
    damage(
        path,
        "UPDATE events SET data = (SELECT data FROM events WHERE seq = 1), sum = (SELECT sum FROM events "
        "WHERE seq = 1) WHERE seq = 2",
    )
    log = await SqliteLog.open(path)
    assert await events(log) == [fact(0), Unreadable(reason="checksum")]
    await log.close()


@pytest.mark.parametrize(
    ("harm", "lost"),
    [((3, 1), [3]), ((3, 4), [3]), ((3, 100), [3]), ((3, 3), []), ((5, 3), [])],
    ids=["an event of the channel", "one of another channel", "no event", "whole", "another position"],
)
async def test_an_index_that_lies_shows_no_event_twice(tmp_path: Path, harm: tuple[int, int], lost: list[int]) -> None:
    """A flipped bit in a position of the index gave two events the same one, and none the one it had been."""
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("a", *(fact(number) for number in range(3)))
    await log.append("b", fact("other"))
    await log.append("a", *(fact(number) for number in range(3, 5)))
    await log.close()
    pos, points_at = harm
    stored, entry = path.read_bytes(), bytes([4, 9, 1, 1])  # of channel 1: its position, and the number of the event
    assert stored.count(entry + bytes([3, 3])) == 1
    path.write_bytes(stored.replace(entry + bytes([3, 3]), entry + bytes([pos, points_at])))
    log = await SqliteLog.open(path)
    records = await log.read("a")
    assert [(each.channel, each.pos) for each in records] == [("a", number) for number in range(1, 6)]
    assert [each.pos for each in records if isinstance(each.event, Unreadable)] == lost
    assert all(each.event == fact(each.pos - 1) for each in records if each.pos not in lost)
    await log.close()


async def test_a_channel_whose_name_became_a_number_is_lost_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its row had no checksum any more either, and its events were told under that number."""
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("aaaa", fact(0))
    await log.append("b", fact("other"))
    await log.close()
    schema = "PRAGMA writable_schema = ON", "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = 'channels'"
    kinds = "name TEXT NOT NULL UNIQUE, pos INTEGER NOT NULL", "name BLOB NOT NULL UNIQUE, pos BLOB NOT NULL"
    for old, new in (kinds, kinds[::-1]):  # a column that takes anything, for a moment
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(schema[0])
            db.execute(schema[1], (old, new))
            db.execute("UPDATE sqlite_schema SET sql = replace(sql, ' STRICT', '') WHERE name = 'channels'")
        if new == kinds[1]:
            damage(path, "UPDATE channels SET name = 40, sum = NULL WHERE name = 'aaaa'")
    log = await SqliteLog.open(path)
    assert "the log lost a channel" in caplog.text
    found = [(each.channel, each.event) for each in await log.read_all()]
    assert all(isinstance(event, Unreadable) for channel, event in found if channel != "b")
    assert [event for channel, event in found if channel == "b"] == [fact("other")]
    await log.close()


async def test_what_a_version_without_checksums_wrote_must_at_least_be_json(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("a", fact(0), fact(1))
    await log.close()
    damage(path, "UPDATE events SET sum = NULL, data = CASE seq WHEN 1 THEN X'7b22' ELSE data END")
    log = await SqliteLog.open(path)
    assert await events(log) == [Unreadable(reason="checksum"), fact(1)]
    await log.close()


async def test_a_damaged_note_counts_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    log.put_kv("a", "snapshot", b"right")
    log.put_kv("b", "snapshot", b"right")
    await log.append("a", fact(0))
    await log.close()
    damage(path, "UPDATE notes SET data = X'00' WHERE channel = (SELECT id FROM channels WHERE name = 'a')")
    log = await SqliteLog.open(path)
    assert await log.get_kv("a", "snapshot") is None
    assert await log.list_kv("snapshot") == {"b": b"right"}
    await log.close()


async def test_a_damaged_blob_is_not_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    digest = await log.put_blob(b"whole")
    await log.close()
    damage(path, "UPDATE blobs SET data = X'00'")
    log = await SqliteLog.open(path)
    with pytest.raises(LogDamaged, match="its content is lost"):
        await log.blob(digest)
    await log.close()


@pytest.mark.parametrize(
    ("harm", "head"), [("pos = 1", 3), ("pos = 99", 3), ("name = 'c'", 0)], ids=["behind", "ahead", "another name"]
)
async def test_a_damaged_head_follows_from_the_events(tmp_path: Path, harm: str, head: int) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("a", *(fact(number) for number in range(3)))
    await log.append("b", fact("other"))
    await log.close()
    damage(path, f"UPDATE channels SET {harm} WHERE name = 'a'")
    log = await SqliteLog.open(path)
    assert (log.head("a"), log.head("c"), log.head("b")) == (head, 0, 1)
    assert len(await log.read("a")) == head
    await log.close()


async def test_a_session_with_a_gap_opens_and_goes_on(open_host: HostOpener) -> None:
    host = await open_host()
    session = await host.start(by="test", cwd="/", title="kept")
    for text in ("[[say:one]]", "[[say:two]]"):
        await session.wait(await session.send(Message(text), by="test"))
    await open_host.close()
    # The beginning, and the text of the first turn.
    damage(open_host.path, "UPDATE events SET data = X'00' WHERE pos IN (1, 8)")
    damage(open_host.path, "DELETE FROM notes")
    host = await open_host()
    session = await host.get("session-1")
    assert [turn.outcome for turn in session.state.turns] == ["completed", "completed"]
    assert (await session.wait(await session.send(Message("[[say:three]]"), by="test"))).id


def test_a_gap_is_folded_into_nothing() -> None:
    from portico.kernel.events import Record, encode

    state = SessionState("s")
    fold(state, Record(1, "session/s", 1, 0, encode(Unreadable(reason="page"))))
    assert state.pos == 1
    assert state.turns == []


async def test_a_log_that_lost_its_identity_reads_its_events_by_the_mark(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("a", fact(0))
    await log.close()
    damage(path, "DELETE FROM meta")
    log = await SqliteLog.open(path)
    assert await events(log) == [fact(0)]
    await log.close()

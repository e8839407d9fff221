"""A newer Portico opens older data; an older Portico leaves newer data alone."""

import sqlite3
from pathlib import Path

import pytest

from portico.kernel.errors import LogDamaged, LogTooNew
from portico.kernel.events import Event, Unknown, decode
from portico.kernel.log.sqlite import SqliteLog, schema
from portico.testing.fixtures import HostOpener
from tests.log.events import fact

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def schema1(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    db = sqlite3.connect(path)
    db.executescript((FIXTURES / "schema1.sql").read_text())
    db.close()
    return path


def version(path: Path) -> int:
    db = sqlite3.connect(path)
    found: int = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    return found


async def events(log: SqliteLog, channel: str) -> list[Event]:
    return [record.event for record in await log.read(channel)]


async def test_every_old_version_has_a_fixture_and_a_step() -> None:
    assert sorted(schema.STEPS) == list(range(2, schema.VERSION + 1))
    for old in range(1, schema.VERSION):
        assert (FIXTURES / f"schema{old}.sql").exists()


async def test_version_1_is_migrated_with_everything_in_it(schema1: Path) -> None:
    log = await SqliteLog.open(schema1)
    assert version(schema1) == schema.VERSION
    assert (log.seq, log.head("host"), log.head("session/session-1")) == (20, 3, 13)
    assert [r.pos for r in await log.read("session/session-1")] == list(range(1, 14))
    assert await log.get_kv("session/session-1", "title") == b"Say hello"
    assert await log.blob("5d5766cf2d78701614200418ee1450690d9af12c84d52545e4802f001ad53099") == b"whole"
    assert not any(isinstance(event, Unknown) for event in await events(log, "session/session-1"))
    assert await log.append("host", fact("more")) == 21

    assert await log.compact(1_800_000_000_000, {"session/session-2": 2}) == 4, "old deltas were marked"
    assert await log.compact(1_800_000_000_000) == 1
    await log.close()


async def test_a_host_goes_on_with_version_1(schema1: Path, open_host: HostOpener) -> None:
    host = await open_host()
    done, open_ = await host.get("session-1"), await host.get("session-2")
    assert [part.done for part in done.state.turns[0].parts] == [True, True]
    assert done.state.title == "Say hello"
    assert open_.state.turns[0].outcome == "interrupted"
    assert (await host.start(by="test", cwd="/")).id == "session-3"


async def test_a_migration_happens_once(schema1: Path) -> None:
    for _ in range(2):
        log = await SqliteLog.open(schema1)
        assert log.seq == 20
        await log.close()


async def test_a_failed_step_leaves_the_old_version_whole(schema1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(schema.STEPS, 2, schema.STEPS[2] + "INSERT INTO nowhere VALUES (1);\n")
    with pytest.raises(LogDamaged):
        await SqliteLog.open(schema1)
    assert version(schema1) == 1
    monkeypatch.undo()
    log = await SqliteLog.open(schema1)
    assert log.seq == 20
    await log.close()


async def test_newer_data_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    await (await SqliteLog.open(path)).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    db.close()
    with pytest.raises(LogTooNew, match="newer Portico"):
        await SqliteLog.open(path)
    assert version(path) == schema.VERSION + 1


def test_an_event_of_a_newer_portico_stays_readable() -> None:
    assert decode(b'{"type":"session.sang","song":"la"}') == Unknown(raw={"type": "session.sang", "song": "la"})

"""A damaged log: what is wrong is told, and what can be read is kept."""

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from portico.log.sqlite import SqliteLog
from portico.maintenance.repair import check, repair
from tests.doors.standing import standing
from tests.log.events import fact
from tests.process import inside

PAGE = 4096


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Some sessions, and a blob."""

    async def talk() -> None:
        async with standing(tmp_path) as here:
            for number in range(3):
                session = await here.start(cwd=str(tmp_path), title=f"number {number}")
                for _ in range(10):
                    await here.say(session, f"[[say:{'x' * 3000} of {number}]]")
            await here.server.host.log.put_blob(b"y" * 100_000)

    asyncio.run(talk())
    return tmp_path / "home"


def counts(path: Path) -> tuple[int, int]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT count(*), max(seq) FROM events").fetchone()  # type: ignore[no-any-return]


def test_a_whole_log_is_whole(home: Path) -> None:
    found = check(home / "log.db")
    assert (found.damage, found.events, found.blobs) == ([], counts(home / "log.db")[0], 1)
    done = inside(home, "log", "check")
    assert (done.returncode, done.stderr.startswith("Whole: ")) == (0, True)
    assert inside(home, "log", "check", "--repair", "--json").returncode == 0
    assert not [each for each in home.iterdir() if "damaged" in each.name], "a whole log is not replaced"


def ruin(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek(page * PAGE)
        file.write(b"\xde\xad\xbe\xef" * (PAGE // 4))


def test_what_can_be_read_is_kept_wherever_the_damage_is(home: Path, tmp_path: Path) -> None:
    """Every twelfth page in turn: the log opens again, and a host works on it."""
    path = home / "log.db"
    whole, total = path.read_bytes(), counts(path)[0]
    pages = len(whole) // PAGE
    kept: list[int] = []
    for page in range(1, pages, max(1, pages // 12)):
        path.write_bytes(whole)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        ruin(path, page)
        found = check(path)
        assert found.damage, f"page {page} is damaged, and nobody noticed"
        repaired = repair(path)
        kept.append(repaired.events)
        again = check(path)
        assert [each for each in again.damage if "blob" not in each] == [], f"page {page}"
        assert Path(repaired.kept_as).read_bytes()[page * PAGE : page * PAGE + 4] == b"\xde\xad\xbe\xef"
        Path(repaired.kept_as).unlink()
    assert max(kept) >= total - 5
    assert sorted(kept)[len(kept) // 2] > total * 0.8, kept
    asyncio.run(_works(tmp_path))


async def _works(folder: Path) -> None:
    async with standing(folder) as here:
        session = await here.start(cwd=str(folder))
        assert (await here.say(session, "[[say:on we go]]"))["turns"][-1]["outcome"] == "completed"


def test_a_changed_event_and_a_missing_blob_are_named(home: Path) -> None:
    path = home / "log.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        seq = db.execute("SELECT seq FROM events WHERE instr(data, CAST('number 1' AS BLOB)) LIMIT 1").fetchone()[0]
        db.execute("UPDATE events SET data = replace(CAST(data AS TEXT), 'number 1', 'number 9') WHERE 0")
        db.execute("UPDATE events SET time = time + 1 WHERE seq = ?", (seq,))
        db.execute("UPDATE blobs SET data = CAST('z' AS BLOB)")
    done = inside(home, "log", "check", "--json")
    assert done.returncode == 1
    damage = "\n".join(json.loads(done.stdout)["damage"])
    assert f"event {seq} (" in damage
    assert "its content is not what was stored" in damage
    told = inside(home, "log", "check", "--repair")
    assert (told.returncode, "The damaged one is kept" in told.stderr) == (0, True)
    assert f"event {seq} (" in told.stdout, "a repair says what it could not keep"
    done = inside(home, "log", "check")
    assert (done.returncode, done.stdout) == (0, ""), "it was named damaged again, and to be repaired again, for ever"


def test_a_file_that_is_no_database_leads_to_the_backup(home: Path) -> None:
    ruin(home / "log.db", 0)
    done = inside(home, "log", "check", "--repair")
    assert (done.returncode, "portico restore FILE" in done.stderr) == (74, True), done.stderr
    assert (home / "log.db").exists()


@pytest.mark.parametrize("mark", [True, False], ids=["known by the mark", "lost"])
def test_events_stay_readable_when_the_logs_identity_is_lost(home: Path, mark: bool) -> None:
    """Without the salt of its sums every event of a repaired log was unreadable."""
    path = home / "log.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM meta")
        db.commit()
    if not mark:
        path.with_name("log.db-mark").unlink()
    assert check(path).damage == []
    repair(path)

    async def read() -> set[str]:
        log = await SqliteLog.open(path)
        found = {type(record.event).__name__ for record in await log.read_all(limit=10_000)}
        await log.close()
        return found

    found = asyncio.run(read())
    assert "PartEnded" in found
    assert "Unreadable" not in found


def test_a_schema_that_is_no_text_is_told(tmp_path: Path) -> None:
    """SQLite quotes it in its message: the host, `log check`, `doctor` and a backup ended with a traceback."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    path = home / "log.db"

    async def write() -> None:
        log = await SqliteLog.open(path)
        await log.append("a", fact(0))
        await log.close()

    asyncio.run(write())
    stored = path.read_bytes()
    assert b"CREATE TABLE meta" in stored
    path.write_bytes(stored.replace(b"CREATE TABLE meta", b"CREATE T\xceBLE meta"))
    for words in (("serve", "0"), ("log", "check"), ("log", "check", "--repair"), ("doctor",), ("backup", "b.tar")):
        done = inside(home, *words)
        assert done.returncode != 0, words
        assert "damaged" in (said := done.stdout + done.stderr) or "cannot be" in said, words
        assert "Traceback" not in said, words

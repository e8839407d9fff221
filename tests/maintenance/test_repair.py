"""A damaged log: what is wrong is told, and what can be read is kept."""

import asyncio
import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from portico.kernel.events import ToolEnded
from portico.kernel.log.sqlite import SqliteLog
from portico.server.maintenance.repair import check, repair
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


# -- every column of every table -------------------------------------------------------------------------------

HARMLESS = {
    ("notes", "time"): "only when an old note may be deleted",
    ("meta", "value of lost"): "only a number that new ids skip",
}
SUBJECTS = {
    "channels": ["host", "session/session-1", "session/session-2", ""],
    "meta": ["epoch", "salt"],
}
"""Which rows are damaged, by their name; of other tables the first one."""


def columns(path: Path) -> list[tuple[str, str, str]]:
    """Of every table: the table, one of its columns, and the row that is to be damaged."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found = {table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")] for table in tables}
    return [
        (table, column, subject)
        for table, names in found.items()
        for column in names
        for subject in SUBJECTS.get(table, [""])
        if (table, column) not in HARMLESS
    ]


def where(table: str, subject: str) -> str:
    named = {"channels": "name", "meta": "key"}.get(table)
    if named is not None:
        return f"{named} = '{subject}'"
    if table in ("events", "blobs"):
        return f"rowid = (SELECT max(rowid) FROM {table})"
    first = {"notes": "(channel, key) = (SELECT channel, key FROM notes LIMIT 1)"}
    return first.get(table, "(digest, channel) = (SELECT digest, channel FROM blob_users LIMIT 1)")


def harm(path: Path, table: str, column: str, subject: str) -> bool:
    """Another value of the same type. False: SQLite does not allow it."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        chosen = where(table, subject)
        (value,) = db.execute(f"SELECT {column} FROM {table} WHERE {chosen}").fetchone()
        other: object = value + 7 if isinstance(value, int) else b"x" + value if isinstance(value, bytes) else "x/y"
        try:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {chosen}", (other,))
        except sqlite3.IntegrityError:
            return False
        db.commit()
    return True


def served(folder: Path) -> list[str]:
    """The titles of the sessions that a host serves, each with whether all of its turns can be read."""

    async def look() -> list[str]:
        async with standing(folder) as here:
            listed = (await here.http.get("/v1/sessions")).json()["sessions"]
            found = []
            for each in sorted(listed, key=lambda each: each["id"]):
                state = (await here.http.get(f"/v1/sessions/{each['id']}")).json()
                found.append(f"{each['title']}: {len(state.get('turns', []))}")
            session = await here.start(cwd=str(folder))
            await here.say(session, "[[say:on we go]]")
            return found

    return asyncio.run(look())


async def _small(folder: Path) -> None:
    async with standing(folder) as here:
        blob = await here.server.host.log.put_blob(b"y" * 1000)
        for number in range(2):
            session = await here.start(cwd=str(folder), title=f"number {number}")
            await here.say(session, f"[[say:{number}]]")
        ended = ToolEnded(turn="t", call="c", ok=True, blob=blob)
        await here.server.host.log.append("session/session-1", ended)
        here.server.host.log.put_kv("session/session-1", "note", b"x")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    asyncio.run(_small(folder))
    return folder


def test_damage_in_any_column_is_found_and_repaired(small: Path, tmp_path: Path) -> None:
    """Bug: with one damaged row in `channels` the host did not start (UNIQUE constraint failed), or a session was not
    found any more although its events were whole. `log check` reported a whole log."""
    original = small / "home/log.db"
    assert check(original).damage == []
    whole = original.read_bytes()
    missed, unrepaired, lost = [], [], []
    for number, (table, column, subject) in enumerate(columns(original)):
        path = tmp_path / f"{number}.db"
        path.write_bytes(whole)
        if not harm(path, table, column, subject):
            continue
        place = f"{table}.{column} of {subject!r}"
        before = check(path)
        if not before.damage:
            missed.append(place)
        if not before.damage or repair(path).kept_as == "":
            continue
        if again := [line for line in check(path).damage if "blob" not in line]:  # what is gone is gone
            unrepaired.append((place, again))
        with contextlib.closing(sqlite3.connect(path)) as db:
            names = {name for (name,) in db.execute("SELECT name FROM channels")}
        if not names >= {"host", "session/session-1", "session/session-2"}:
            lost.append((place, sorted(names)))
    assert (missed, unrepaired, lost) == ([], [], [])


@pytest.mark.parametrize("repaired", [False, True], ids=["as it is", "repaired"])
@pytest.mark.parametrize("subject", ["host", "session/session-1"])
@pytest.mark.parametrize("column", ["name", "pos", "sum"])
def test_a_host_serves_everything_with_a_damaged_channel(
    small: Path, tmp_path: Path, column: str, subject: str, repaired: bool
) -> None:
    shutil.copytree(small, tmp_path / "copy")
    path = tmp_path / "copy/home/log.db"
    assert harm(path, "channels", column, subject)
    if repaired:
        repair(path)
    assert served(tmp_path / "copy")[:2] == ["number 0: 1", "number 1: 1"]

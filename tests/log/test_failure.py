"""The disk is full, read-only, locked or damaged: a clear error, nothing acknowledged lost, and it goes on."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portico.kernel import limits
from portico.kernel.errors import LogDamaged, LogUnavailable
from portico.kernel.events import Audited, Unreadable
from portico.kernel.log import group_commit
from portico.kernel.log.sqlite import SqliteLog, error_text
from portico.kernel.log.sqlite.database import Batch, Database
from portico.kernel.log.sqlite.worker import Workers
from tests.log.events import fact

HERE = Path(__file__).parent


def pragma(log: SqliteLog, text: str) -> None:
    """On the writer's own connection: SQLite keeps these settings per connection."""
    log._database._db.execute(f"PRAGMA {text}").fetchall()


@pytest.fixture(autouse=True)
def _quick_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)


@pytest.mark.parametrize(
    ("break_", "mend", "words"),
    [
        ("max_page_count = 1", "max_page_count = 1000000", "disk of .* is full.*goes on by itself"),
        ("query_only = ON", "query_only = OFF", "read-only.*goes on"),
    ],
    ids=["full", "read-only"],
)
async def test_a_failed_commit_is_told_and_leaves_no_hole(tmp_path: Path, break_: str, mend: str, words: str) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    failures: list[LogUnavailable] = []
    log.on_failure(failures.append)
    await log.append("a", fact(1))
    pragma(log, break_)

    big = fact("x" * 100_000)
    results = await asyncio.gather(*(log.append("a", big) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(result, LogUnavailable) for result in results)
    assert log.down is not None
    assert len(failures) == 1
    with pytest.raises(LogUnavailable, match=words):
        await log.append("a", fact("refused"))
    with pytest.raises(LogUnavailable):
        log.post("a", fact("refused"))
    with pytest.raises(LogUnavailable, match=words):
        await log.flush()
    assert [r.event for r in await log.read("a")] == [fact(1)], "reading goes on"

    pragma(log, mend)
    await asyncio.wait_for(log.available(), 60)
    assert await log.append("a", fact(2)) == 2
    assert [(r.pos, r.event) for r in await log.read("a")] == [(1, fact(1)), (2, fact(2))]
    await log.close()

    log = await SqliteLog.open(tmp_path / "log.db")
    assert log.seq == 2
    await log.close()


async def test_refusals_while_the_disk_is_full_do_not_pile_up(tmp_path: Path) -> None:
    """One shared exception kept the traceback of every refusal: 16 MB after 5,000."""
    log = await SqliteLog.open(tmp_path / "log.db")
    pragma(log, "query_only = ON")
    waiting = [asyncio.ensure_future(log.append("a", fact(number))) for number in range(3)]
    await asyncio.wait(waiting)
    errors: list[BaseException | None] = [each.exception() for each in waiting]
    for attempt in (log.append("a", fact(4)), log.append("a", fact(5)), log.flush(), log.flush()):
        with pytest.raises(LogUnavailable) as refusal:
            await attempt
        errors.append(refusal.value)
    assert len({id(error) for error in errors}) == len(errors)
    assert log.down is not None
    assert log.down.__traceback__ is None
    pragma(log, "query_only = OFF")
    await log.close()


async def test_nobody_is_told_that_a_lost_note_is_safe(tmp_path: Path) -> None:
    """`settled` returned normally when the log was down, so a door acknowledged what was not durable; also when the
    disk came back before the waiting task ran again."""
    log = await SqliteLog.open(tmp_path / "log.db")
    pragma(log, "query_only = ON")
    log.put_kv("host", "projects", b"lost")
    settling = asyncio.ensure_future(log.flush())

    def come_back(_: LogUnavailable) -> None:
        log._down = None

    log.on_failure(come_back)
    with pytest.raises(LogUnavailable):
        await asyncio.wait_for(settling, 60)
    pragma(log, "query_only = OFF")
    await log.append("host", fact(1))
    assert await log.get_kv("host", "projects") is None
    await log.close()


class FailingCommit:
    """A connection whose next COMMIT meets a dead disk, after everything else went well."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.armed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and self.armed:
            self.armed = False
            raise sqlite3.OperationalError("disk I/O error")
        return self._db.execute(sql, *args)


@pytest.mark.parametrize("first", ["probe", "write"])
def test_a_rolled_back_channel_is_forgotten(tmp_path: Path, first: str) -> None:
    """The probe remembered the number of a channel that its rolled back transaction had made."""
    database = Database.open(tmp_path / "log.db", full=False)
    database._db = FailingCommit(database._db)  # type: ignore[assignment]
    lost = Batch([(1, "host", 1, 0, None, b"{}")], {"host": 1}, [])
    with pytest.raises(LogUnavailable, match="disk I/O error"):
        database.probe() if first == "probe" else database.write(lost)
    database.write(Batch([(1, "a", 1, 0, None, b"{}")], {"a": 1}, []))
    database.write(Batch([(2, "host", 1, 0, None, b"{}")], {"host": 1}, []))
    assert database.heads() == (2, {"a": 1, "host": 1})
    assert [r.seq for r in database.read("host", 0, 9, 9)] == [2]
    database.close()


async def test_notes_of_a_failed_commit_do_not_come_back(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    await log.append("host", fact(0))
    pragma(log, "query_only = ON")
    log.put_kv("host", "grants", b"in the failing commit")
    first = asyncio.create_task(log.append("host", fact("grant")))
    await asyncio.sleep(0)
    log.put_kv("host", "grants", b"behind it")
    with pytest.raises(LogUnavailable):
        await log.append("host", fact("another"))
    await asyncio.wait({first})
    assert isinstance(first.exception(), LogUnavailable)
    pragma(log, "query_only = OFF")
    await log.available()
    await log.append("host", fact(1))
    assert await log.get_kv("host", "grants") is None
    await log.close()


async def test_what_a_dead_disk_refused_holds_nobody_up_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes no longer wait for the disk: an agent that waits for room would wait for ever."""
    monkeypatch.setattr(limits, "PENDING_BYTES", 10)
    log = await SqliteLog.open(tmp_path / "log.db")
    pragma(log, "query_only = ON")
    log.post("a", fact("x" * 100))
    with pytest.raises(LogUnavailable, match="read-only"):
        await asyncio.wait_for(log.flush(), 60)
    assert log.down is not None
    pragma(log, "query_only = OFF")
    await log.available()
    await asyncio.wait_for(log.wait_capacity(), 60)
    await log.close()


async def test_closing_with_a_dead_disk_returns(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    pragma(log, "query_only = ON")
    with pytest.raises(LogUnavailable):
        await log.append("a", fact(1))
    await asyncio.wait_for(log.close(), 60)


async def test_blobs_and_compaction_fail_clearly_too(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    await log.append("a", fact(1))
    pragma(log, "query_only = ON")
    for attempt in (log.put_blob(b"x"), log.compact(1), log.delete("a")):
        with pytest.raises(LogUnavailable, match="read-only"):
            await attempt
    await log.close()


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    monkeypatch.setattr(limits, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    yield other
    other.close()


async def test_a_lock_of_another_program_passes(tmp_path: Path, locked: sqlite3.Connection) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    await log.append("a", fact(1))
    locked.execute("BEGIN IMMEDIATE")
    with pytest.raises(LogUnavailable, match="Another program holds the log"):
        await log.append("a", fact(2))
    locked.execute("ROLLBACK")
    await asyncio.wait_for(log.available(), 60)
    assert await log.append("a", fact(3)) == 2
    await log.close()


async def test_a_short_lock_is_waited_for(tmp_path: Path, locked: sqlite3.Connection) -> None:
    limits.BUSY_SECONDS = 5  # restored by the fixture's monkeypatch
    log = await SqliteLog.open(tmp_path / "log.db")
    locked.execute("BEGIN IMMEDIATE")
    write = asyncio.create_task(log.append("a", fact(1)))
    await asyncio.sleep(0.05)
    assert not write.done()
    locked.execute("ROLLBACK")
    assert await write == 1
    await log.close()


async def test_a_locked_log_is_not_opened(tmp_path: Path, locked: sqlite3.Connection) -> None:
    locked.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LogUnavailable, match="locked"):
        await SqliteLog.open(tmp_path / "log.db")


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.write_bytes(b"this is not a database at all, but some other file" * 100)
    with pytest.raises(LogDamaged, match=r"Move it aside.*\.recover"):
        await SqliteLog.open(path)


async def test_another_programs_database(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    db = sqlite3.connect(path)
    db.executescript("CREATE TABLE songs (name TEXT); PRAGMA user_version = 2;")
    db.close()
    with pytest.raises(LogDamaged):
        await SqliteLog.open(path)


async def test_pages_overwritten_with_rubbish(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("a", *(fact("x" * 1000) for _ in range(200)))
    await log.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xde\xad" * ((size - 4096) // 2))
    with pytest.raises(LogDamaged):
        await SqliteLog.open(path)


async def test_damage_met_while_running(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("a", *(fact("x" * 1000) for _ in range(2000)))
    pragma(log, "wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        for page in range(20, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xde\xad" * 2048)
    pragma(log, "shrink_memory")
    records = await log.read("a", 0, 2000)
    assert [record.pos for record in records] == list(range(1, 2001)), "what is lost is named in its place"
    assert {Unreadable} <= {type(record.event) for record in records} <= {Audited, Unreadable}
    assert all(record.event == fact("x" * 1000) for record in records if isinstance(record.event, Audited))
    await log.close()


async def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(LogUnavailable, match="cannot be opened: No such file"):
        await SqliteLog.open(tmp_path / "nowhere" / "log.db")


async def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(LogUnavailable, match="Is a directory"):
        await SqliteLog.open(tmp_path)


def run(script: str, *args: str) -> str:
    command = [sys.executable, str(HERE / script), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_a_file_that_the_user_may_only_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "log.db"
        path.touch(0o444)
        Path(name).chmod(0o555)
        assert "cannot be opened: Permission denied" in run("unwritable.py", str(path))
        Path(name).chmod(0o755)


def test_a_host_on_a_really_full_disk(tmp_path: Path) -> None:
    report = json.loads(run("full_disk.py", str(tmp_path)))
    assert "cannot be written" in report.pop("refused")
    assert report == {"running": "failed", "after": "completed", "gapless": True, "kept": True}


@pytest.mark.parametrize(
    ("words", "room", "said"),
    [
        ("disk I/O error", False, "is full. Free some space; then start again."),
        ("disk I/O error", True, "cannot be written: disk I/O error."),
        ("unable to open database file", True, "cannot be opened. Make its folder readable and writable; then start"),
    ],
)
def test_what_sqlite_says_becomes_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, room: bool, said: str
) -> None:
    """On a full disk SQLite speaks of an I/O error when its shared memory finds no room, and a person looks for a
    broken disk."""
    monkeypatch.setattr(error_text, "has_room", lambda path: room)
    error = error_text.translate(sqlite3.OperationalError(words), tmp_path / "log.db", "then start again")
    assert said in error.message


async def test_channels_of_a_failed_commit_are_made_again(tmp_path: Path) -> None:
    """Their numbers went with the transaction: kept in memory, the next events would belong to no channel."""
    log = await SqliteLog.open(tmp_path / "log.db")
    await log.append("a", fact(1))
    pragma(log, "query_only = ON")
    with pytest.raises(LogUnavailable):
        await log.append_all(("b", fact("refused")), ("c", fact("refused")))
    pragma(log, "query_only = OFF")
    await log.available()
    await log.append_all(("c", fact(2)), ("a", fact(3)), ("b", fact(4)))
    await log.close()

    again = await SqliteLog.open(tmp_path / "log.db")
    shown = [(record.channel, record.pos) for record in await again.read_all()]
    assert shown == [("a", 1), ("c", 1), ("a", 2), ("b", 1)]
    await again.close()


async def test_what_a_worker_raises_comes_to_whoever_waits(tmp_path: Path) -> None:
    """Also what is no ordinary error; and the thread goes on with what was handed in behind it."""
    workers = Workers(1, "test")

    def leave() -> None:
        raise SystemExit("not the thread's business")

    refused, done = workers.run(leave), workers.run(threading.current_thread)
    with pytest.raises(SystemExit):
        await refused
    assert (await done).name == "test_0"
    await asyncio.to_thread(workers.shutdown)
    with pytest.raises(RuntimeError):
        workers.run(leave)

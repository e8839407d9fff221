"""Checkpoints run beside the commits: a commit that waits for one would be a stream that stands still."""

import asyncio
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from portico.kernel import limits
from portico.kernel.events import Audited
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.log.sqlite.database import Database

EVENT = Audited(action="x" * 1000, by="ada")


def watched(monkeypatch: pytest.MonkeyPatch) -> "asyncio.Queue[str]":
    """The thread of every checkpoint that has ended."""
    loop, threads, original = asyncio.get_running_loop(), asyncio.Queue[str](), Database.checkpoint

    def checkpoint(database: Database) -> int:
        size = original(database)
        loop.call_soon_threadsafe(threads.put_nowait, threading.current_thread().name)
        return size

    monkeypatch.setattr(Database, "checkpoint", checkpoint)
    return threads


def stored(path: Path) -> int:
    """Events in the database itself, without its write-ahead log."""
    alone = path.with_name("alone.db")
    shutil.copy(path, alone)
    with sqlite3.connect(alone) as db:
        count: int = db.execute("SELECT count(*) FROM events").fetchone()[0]
    return count


async def test_beside_the_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = watched(monkeypatch)
    log = await SqliteLog.open(tmp_path / "log.db")
    monkeypatch.setattr(limits, "CHECKPOINT_BYTES", 2 * (limits.COMMIT_BYTES + 2000))
    await log.append("host", EVENT)
    await log.append("host", EVENT)
    assert threads.empty()
    await log.append("host", EVENT)
    assert (await threads.get()).startswith("portico-checkpoint")
    assert stored(tmp_path / "log.db") == 3
    assert threads.empty()
    await log.close()


async def test_a_log_that_only_grows_is_emptied_in_place_of_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = watched(monkeypatch)
    log = await SqliteLog.open(tmp_path / "log.db")
    monkeypatch.setattr(limits, "CHECKPOINT_BYTES", 0)
    monkeypatch.setattr(limits, "WAL_BYTES", 0)
    await log.append("host", EVENT)
    assert [(await threads.get())[:13] for _ in range(2)] == ["portico-check", "portico-log_0"]
    monkeypatch.setattr(limits, "WAL_BYTES", limits.MIB)
    await log.append("host", EVENT)
    assert (await threads.get()).startswith("portico-checkpoint")
    await log.close()
    assert stored(tmp_path / "log.db") == 2

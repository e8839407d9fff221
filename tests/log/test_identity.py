"""A log has an identity: whoever kept a cursor learns when it is not the same log any more, and no number is given
twice."""

import asyncio
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from portico.kernel.errors import LogDamaged, LogUnavailable
from portico.kernel.events import HOST, LogLost
from portico.kernel.log import group_commit, sqlite
from portico.kernel.log.sqlite import SqliteLog
from portico.testing.fixtures import HostOpener
from tests.log.events import fact

ROOT = Path(__file__).parents[2]


async def write(path: Path, *channels: str) -> str:
    """Appends to each channel; returns the epoch."""
    log = await SqliteLog.open(path)
    for channel in channels:
        await log.append(channel, fact(1))
    await log.close()
    return log.epoch


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from portico.kernel.log.sqlite import SqliteLog
from tests.log.events import fact

async def main():
    log = await SqliteLog.open(Path(sys.argv[1]))
    for number in range(int(sys.argv[2])):
        await log.append("a", fact(number))
    print(log.epoch, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def killed(path: Path, count: int) -> str:
    """A process that writes so many events and is killed: its write-ahead log stays. Returns the epoch."""
    command = [sys.executable, "-c", KILLED, str(path), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.strip()


async def test_it_keeps_its_epoch_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    first = await write(path, "a")
    assert len(first) == 8
    assert await write(path, "a") == first
    log = await SqliteLog.open(path)
    assert (log.identity.why, log.identity.lost) == ("", 0)
    await log.close()


def older(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("DELETE FROM events WHERE seq > 3")
    db.execute("UPDATE channels SET pos = 3, sum = NULL WHERE id = 0 OR name = 'a'")
    db.commit()
    db.close()


def restored(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    os.replace(path.with_name("copy"), path)


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (older, "its last 2 events are gone"),
        (restored, "it was copied or restored"),
        (lambda path: path.with_name("log.db-mark").unlink(), "its mark is missing or of another log"),
        (lambda path: path.with_name("log.db-mark").write_bytes(b"x" * 60), "its mark is missing or of another log"),
    ],
    ids=["older content", "a copy", "no mark", "a damaged mark"],
)
async def test_what_gives_it_another_epoch(tmp_path: Path, harm: Callable[[Path], object], why: str) -> None:
    path = tmp_path / "log.db"
    first = await write(path, "a", "a", "a", "a", "a")
    harm(path)
    log = await SqliteLog.open(path)
    assert log.epoch != first
    assert log.identity.why == why
    assert await log.append("a", fact(6)) == 6, "no number is given twice"
    assert log.head("a") == 6
    await log.close()
    assert await write(path) == log.epoch


async def test_a_cut_write_ahead_log_is_told_at_the_start(tmp_path: Path, open_host: HostOpener) -> None:
    """Events that clients had seen were gone without a word, and their numbers given to others."""
    path = tmp_path / "log.db"
    epoch = killed(path, 20)
    wal = path.with_name("log.db-wal")
    os.truncate(wal, wal.stat().st_size - 3 * 4096)
    host = await open_host()
    lost = [record.event for record in await host.log.read(HOST) if isinstance(record.event, LogLost)]
    assert [(0 < event.count < 20, event.last) for event in lost] == [(True, 20)]
    assert host.log.epoch != epoch
    assert await host.log.append("a", fact("next")) > 20
    assert (await host.start(by="test", cwd="/")).id != "session-1", "nor is an id"


async def test_a_missing_log_beside_its_write_ahead_log_is_not_made_anew(tmp_path: Path) -> None:
    """SQLite made an empty one and threw the write-ahead log away."""
    path = tmp_path / "log.db"
    killed(path, 5)
    os.rename(path, tmp_path / "elsewhere")
    with pytest.raises(LogDamaged, match="Put the log back"):
        await SqliteLog.open(path)
    os.rename(tmp_path / "elsewhere", path)
    log = await SqliteLog.open(path)
    assert len(await log.read("a")) == 5
    await log.close()


@pytest.mark.parametrize("swapped", ["log.db", "log.db-wal"])
async def test_files_of_two_logs_are_not_mixed(tmp_path: Path, swapped: str) -> None:
    paths = [tmp_path / name / "log.db" for name in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        killed(path, 5)
    os.replace(paths[1].with_name(swapped), paths[0].with_name(swapped))
    with pytest.raises(LogDamaged, match="does not belong to the log"):
        await SqliteLog.open(paths[0])


async def test_a_log_that_is_moved_away_acknowledges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host went on acknowledging into a file that no start would find."""
    monkeypatch.setattr(sqlite, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)
    path = tmp_path / "log.db"
    log = await SqliteLog.open(path)
    await log.append("a", fact(1))
    failed = asyncio.Event()
    log.on_failure(lambda _: failed.set())
    os.rename(path, tmp_path / "elsewhere")
    await asyncio.wait_for(failed.wait(), 60)
    with pytest.raises(LogUnavailable, match="was moved away"):
        await log.append("a", fact(2))
    with contextlib.suppress(LogUnavailable):
        await log.read("a")
    assert not path.exists(), "no reader made an empty one in its place"
    os.rename(tmp_path / "elsewhere", path)
    await asyncio.wait_for(log.available(), 60)
    assert await log.append("a", fact(3)) == 2
    await log.close()


@pytest.mark.parametrize("harm", ["emptied", "missing"])
async def test_an_emptied_or_missing_log_is_named_as_lost(tmp_path: Path, open_host: HostOpener, harm: str) -> None:
    """To SQLite an empty file is a new database: everything was gone, nobody said so, and numbers began again."""
    path = tmp_path / "log.db"
    before = await write(path, "a", "b", "a")
    if harm == "emptied":
        os.truncate(path, 0)
    else:
        path.unlink()
    log = await SqliteLog.open(path)
    assert (log.epoch == before, log.identity.lost_now, log.identity.why) == (False, 3, "its last 3 events are gone")
    assert await log.append("a", fact(2)) > 3
    await log.close()

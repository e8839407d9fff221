"""A log moves between SQLite and PostgreSQL, both ways, and no number changes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from portico.cluster.postgres.connect import connect
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import PostgresOpening
from portico.kernel.errors import BadRequest, Conflict, LogDamaged
from portico.kernel.events import HOST, Record
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.log.stored.log import StoredLog
from portico.server.maintenance import copy as module
from portico.server.maintenance.copy import CopyReport, copy, opened
from tests.log.events import delta, ended, fact
from tests.log.test_notes import ran
from tests.postgres import Databases
from tests.process import inside


async def fill(log: StoredLog) -> str:
    """A bit of everything, with holes."""
    digest = await log.put_blob(b"output")
    await log.append_all(("session/a", fact(1)), (HOST, fact("é\u0000")), ("session/b", ran(digest)))
    await log.append("session/a", delta("x"), delta("y"), ended("xy"))
    await log.append("session/gone", fact("deleted"))
    await log.delete("session/gone")
    log.put_kv("session/a", "summary", b"{}")
    log.put_kv(HOST, "grants", b"\0\1")
    await log.flush()
    return digest


async def content(log: StoredLog) -> Any:
    heads = {channel: log.head(channel) for channel in log.channels("")}
    records: list[Record] = await log.read_all()
    return log.epoch, log.seq, heads, records, await log.list_kv("summary"), await log.list_kv("grants")


async def move(source: str, target: str) -> CopyReport:
    async with opened(source, new=False) as one, opened(target, new=True) as other:
        return await copy(one, other, lambda *_: None)


async def test_there_and_back_again(tmp_path: Path, databases: Databases) -> None:
    log: StoredLog = await SqliteLog.open(tmp_path / "log.db")
    digest = await fill(log)
    before = await content(log)
    await log.close()
    url = await databases.new()
    report = await move(str(tmp_path), url)
    assert (report.events, report.blobs, report.same, report.seq) == (6, 1, True, 7)

    log = await PostgresLog.open(PostgresOpening(url, tmp_path))
    assert await content(log) == before
    assert await log.blob(digest) == b"output"
    assert await log.append("session/a", fact("new")) == 8
    assert await log.append("session/gone", fact("not again")) == 9
    assert log.head("session/gone") == 2
    before = await content(log)
    await log.close()
    await move(url, str(tmp_path / "back"))

    log = await SqliteLog.open(tmp_path / "back" / "log.db")
    assert await content(log) == before
    assert log.identity.why == ""
    await log.delete("session/b")
    assert await log.append("session/a", fact("newer")) == 10
    await log.close()


async def test_a_copy_that_was_cut_off_goes_on(
    tmp_path: Path, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    log = await SqliteLog.open(tmp_path / "log.db")
    await fill(log)
    before = await content(log)
    await log.close()
    url = await databases.new()

    def cut(what: str, done: int, total: int) -> None:
        if done >= 4:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        async with opened(str(tmp_path), new=False) as one, opened(url, new=True) as other:
            await copy(one, other, cut)
    with pytest.raises(LogDamaged, match="not finished"):
        await PostgresLog.open(PostgresOpening(url, tmp_path))
    report = await move(str(tmp_path), url)
    assert (report.resumed_after, report.events) == (4, 6)
    copied = await PostgresLog.open(PostgresOpening(url, tmp_path))
    assert await content(copied) == before
    await copied.close()


async def test_what_is_not_empty_or_in_use_is_refused(tmp_path: Path, databases: Databases) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        log = await SqliteLog.open(tmp_path / name / "log.db")
        await log.append("session/a", fact(1))
        await log.close()
    with pytest.raises(BadRequest, match="has a log already"):
        await move(str(tmp_path / "one"), str(tmp_path / "two"))
    with pytest.raises(BadRequest, match="There is no log"):
        await move(str(tmp_path / "three"), str(tmp_path / "four"))
    url = await databases.new()
    running = await PostgresLog.open(PostgresOpening(url, tmp_path, host="busy"))
    with pytest.raises(Conflict, match="'busy' runs"):
        await move(str(tmp_path / "one"), url)
    await running.close()
    with pytest.raises(BadRequest, match="has no log"):
        await move(await databases.new(empty=True), str(tmp_path / "five"))


async def test_a_damaged_copy_is_noticed(tmp_path: Path, databases: Databases) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    await fill(log)
    await log.close()
    url = await databases.new()

    async def damage() -> None:
        db = await connect(url, "test")
        await db.execute("UPDATE events SET data = 'x' WHERE seq = 2")
        await db.close()

    async with opened(str(tmp_path), new=False) as one, opened(url, new=True) as other:
        put = other.put_users

        async def meanwhile(users: Any) -> None:
            await put(users)
            await damage()

        other.put_users = meanwhile  # type: ignore[method-assign]
        with pytest.raises(LogDamaged, match="differs behind event 0"):
            await copy(one, other, lambda *_: None)


async def test_by_the_command(tmp_path: Path, databases: Databases) -> None:
    home = tmp_path / "home"
    home.mkdir()
    log = await SqliteLog.open(home / "log.db")
    await fill(log)
    await log.close()
    done = await asyncio.to_thread(inside, tmp_path, "log", "copy", str(home), await databases.new(), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "events": 6,
        "channels": 4,
        "notes": 2,
        "blobs": 1,
        "seq": 7,
        "resumed_after": 0,
        "same": True,
    }
    done = await asyncio.to_thread(inside, tmp_path, "log", "copy", str(home), "mysql://x/y")
    assert (done.returncode, "postgresql://" in done.stderr) == (64, True)
    missing, new = tmp_path / "nosuch", tmp_path / "new"
    for one, other, words in (
        (str(missing), str(new), "There is no log"),
        (str(home), str(home / "log.db"), "are the same log"),
        ("postgresql://x/y", "postgresql://x/y", "are the same log"),
    ):
        done = await asyncio.to_thread(inside, tmp_path, "log", "copy", one, other)
        assert (done.returncode, words in done.stderr) == (64, True), done.stderr
    assert [await asyncio.to_thread(each.exists) for each in (missing, new)] == [False, False]

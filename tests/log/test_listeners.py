"""A commit listener that raises is logged; nobody else notices."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Record, SessionRenamed
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.log.stored.log import StoredLog
from portico.kernel.session import Session
from portico.kernel.state import Summary
from tests.log.events import fact
from tests.log.test_failure import pragma


def broken(*_: object) -> None:
    raise RuntimeError("a bug")


async def test_an_append_returns_and_a_follower_misses_nothing(
    log: StoredLog, caplog: pytest.LogCaptureFixture
) -> None:
    """The append never returned, its caller's lock stayed taken, and followers missed a durable record."""
    heard: list[int] = []
    log.on_commit(broken)
    log.on_commit(lambda records: heard.extend(record.seq for record in records))
    following = aiter(log.follow("a"))
    first = asyncio.ensure_future(anext(following))
    await asyncio.sleep(0)
    assert await asyncio.wait_for(log.append("a", fact(1)), 60) == 1
    assert [record.seq for record in await asyncio.wait_for(first, 60)] == [1]
    assert heard == [1]
    assert "broken failed" in caplog.text
    assert "a bug" in caplog.text


async def test_a_failure_listener_that_raises_keeps_nobody_from_hearing(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    heard: list[LogUnavailable] = []
    log.on_failure(broken)
    log.on_failure(heard.append)
    pragma(log, "query_only = ON")
    with pytest.raises(LogUnavailable):
        await asyncio.wait_for(log.append("a", fact(1)), 60)
    assert len(heard) == 1
    pragma(log, "query_only = OFF")
    await asyncio.wait_for(log.available(), 60)
    await log.close()


async def test_a_session_that_cannot_follow_does_not_hold_up_the_others(
    host: Host, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await host.start(by="test", cwd=str(tmp_path))

    def apply(records: Sequence[Record]) -> None:
        raise RuntimeError("a bug in the fold")

    monkeypatch.setattr(session, "apply", apply)
    first, second = SessionRenamed(title="one", by="test"), SessionRenamed(title="two", by="test")
    await asyncio.wait_for(host.log.append_all((session.channel, first), (other.channel, second)), 60)
    assert other.summary.title == "two"


async def test_a_watcher_that_raises_does_not_hold_up_the_others(host: Host, session: Session) -> None:
    seen: list[Summary | None] = []
    host.watch(broken)
    end = host.watch(lambda _, summary: seen.append(summary))
    await session.rename("new", by="test")
    assert [each.title for each in seen if each is not None] == ["new"]
    end()
    await session.rename("newer", by="test")
    assert len(seen) == 1

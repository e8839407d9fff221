"""The log's tests run over both logs: `log` is one of either kind, `open_log` opens it (again)."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal

import pytest

from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import PostgresOpening
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.log.stored.log import StoredLog
from tests.postgres import Databases

Kind = Literal["sqlite", "postgres"]


class LogOpener:
    """Opens the log of one test, again and again; whatever is open at its end is closed."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self.folder = folder
        self.url = url
        self._opened: list[StoredLog] = []

    async def __call__(self, *, clock: Callable[[], float] | None = None) -> StoredLog:
        log: StoredLog
        if self.url is not None:
            log = await PostgresLog.open(PostgresOpening(self.url, self.folder, clock=clock))
        elif clock is not None:
            log = await SqliteLog.open(self.folder / "log.db", clock=clock)
        else:
            log = await SqliteLog.open(self.folder / "log.db")
        self._opened.append(log)
        return log

    async def close(self) -> None:
        for log in self._opened:
            await log.close()


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
async def open_log(tmp_path: Path, kind: Kind, request: pytest.FixtureRequest) -> AsyncIterator[LogOpener]:
    if kind == "sqlite":
        opener = LogOpener(tmp_path, None)
        yield opener
        await opener.close()
        return
    databases: Databases = request.getfixturevalue("databases")
    opener = LogOpener(tmp_path, await databases.new())
    yield opener
    await opener.close()
    databases.give_back(str(opener.url))


@pytest.fixture
async def log(open_log: LogOpener) -> StoredLog:
    return await open_log()


@pytest.fixture
async def sqlite_log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    """For what only a file can show."""
    log = await SqliteLog.open(tmp_path / "log.db")
    yield log
    await log.close()

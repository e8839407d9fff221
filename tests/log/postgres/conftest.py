"""Several hosts on one database."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from portico.cluster.postgres import log as module
from portico.cluster.postgres.connect import connect
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import PostgresOpening
from tests.postgres import Databases


class Hosts:
    """Opens logs of hosts by name, each with a folder of its own; closes what is open at the end."""

    def __init__(self, url: str, folder: Path, databases: Databases) -> None:
        self.url = url
        self.folder = folder
        self.databases = databases
        self.opened: list[PostgresLog] = []

    async def __call__(self, name: str = "a", *, folder: str = "", lease: float = 10.0, url: str = "") -> PostgresLog:
        place = self.folder / (folder or name)
        place.mkdir(exist_ok=True)
        log = await PostgresLog.open(PostgresOpening(url or self.url, place, host=name, lease_seconds=lease))
        self.opened.append(log)
        return log

    async def sql(self, text: str, *args: Any) -> list[Any]:
        other = await connect(self.url, "test")
        try:
            found: list[Any] = await other.fetch(text, *args)
            return found
        finally:
            await other.close()

    async def cut(self, name: str = "") -> int:
        """Ends the connections of a host (of all), as a network does."""
        like = f"portico {name}%"
        rows = await self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid != pg_backend_pid() AND application_name LIKE $1",
            like,
        )
        return len(rows)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less patience than with a real database."""
    monkeypatch.setattr("portico.kernel.log.group_commit.PROBE_SECONDS", 0.02)
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(module, "OUTAGE_SECONDS", 0.3)


@pytest.fixture
async def hosts(databases: Databases, tmp_path: Path) -> AsyncIterator[Hosts]:
    url = await databases.new()
    hosts = Hosts(url, tmp_path, databases)
    yield hosts
    for log in hosts.opened:
        await log.close()
    databases.give_back(url)

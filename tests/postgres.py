"""Databases for tests: one server for all tests of a process, a fresh database for each test."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from portico.cluster.postgres.connect import connect
from portico.cluster.postgres.schema import prepare
from portico.testing.postgres import PostgresServer

_TEMPLATE = "portico_template"


class Databases:
    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self._count = 0
        self._free: list[str] = []

    async def new(self, *, empty: bool = False) -> str:
        """The address of a database with the log's tables and nothing in them, or of an empty one."""
        if self._free and not empty:
            return await self._emptied(self._free.pop())
        admin = await asyncpg.connect(self.server.url())
        try:
            if self._count == 0:
                await admin.execute(f"CREATE DATABASE {_TEMPLATE}")
                maker = await connect(self.server.url(_TEMPLATE), "template")
                await prepare(maker)
                await maker.close()
            self._count += 1
            name = f"test_{self._count}"
            await admin.execute(f"CREATE DATABASE {name} TEMPLATE {'template0' if empty else _TEMPLATE}")
        finally:
            await admin.close()
        return self.server.url(name)

    async def _emptied(self, url: str) -> str:
        """Making one takes ten times as long."""
        owner = await connect(url, "test")
        await owner.execute(
            "TRUNCATE events, notes, blobs, blob_users, hosts, owners, batches, channels, packs RESTART IDENTITY;"
            " DELETE FROM meta WHERE key NOT IN ('version', 'additions'); ALTER SEQUENCE seq RESTART"
        )
        await owner.close()
        return url

    def give_back(self, url: str) -> None:
        """Nobody is connected to it any more."""
        self._free.append(url)


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    with tempfile.TemporaryDirectory(prefix="portico-pg-") as folder:
        Path(folder).chmod(0o755)
        settings = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB"}
        server = PostgresServer(Path(folder) / "server", settings=settings).start()
        yield Databases(server)
        server.stop(at_once=True)

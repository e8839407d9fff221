"""A host in a fresh folder, for the benchmarks that need one."""

import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from portico.agents import script
from portico.agents.scripted import ScriptedAgent
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.server import memory
from portico.server.compose import build_host


@contextlib.asynccontextmanager
async def a_log() -> AsyncIterator[tuple[SqliteLog, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        log = await SqliteLog.open(Path(folder) / "log.db")
        try:
            yield log, Path(folder)
        finally:
            await log.close()


@contextlib.asynccontextmanager
async def a_host() -> AsyncIterator[tuple[Host, Path]]:
    async with a_log() as (log, folder):
        host = await build_host(log, [ScriptedAgent(script.Provider("scripted", "Scripted"))])
        memory.settle()  # as `portico serve` does
        try:
            yield host, folder
        finally:
            await host.close()


def serve(home: str) -> list[str]:
    """The command of a host of its own, which says when it is ready."""
    return [sys.executable, "-m", "portico", "serve", "--port", "0", "--print-ready", "--home", home]

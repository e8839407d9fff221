"""A host with the fake ACP agent whose program keeps sessions: each is a file, and each line of it a message."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from portico.kernel.clock import Clock
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.server.compose import build_host
from tests.agents.acp_agent import fake_agent

LISTS = json.dumps({"loadSession": True, "sessionCapabilities": {"list": {}, "close": {}}})
AGENT = "acp:fake"


@asynccontextmanager
async def native_host(folder: Path, clock: Clock | None = None, **env: str) -> AsyncIterator[Host]:
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    agent = fake_agent(folder, env={"FAKE_CAPS": LISTS, "FAKE_LIST": str(work), **env})
    log = await SqliteLog.open(folder / "log.db")
    host = await build_host(log, [agent], clock)
    try:
        yield host
    finally:
        await host.close()
        await log.close()


def write(folder: Path, name: str, *messages: str, ago: float = 60.0) -> None:
    """The program has these messages in the session now; it wrote the last one `ago` seconds before."""
    store = folder / "store"
    store.mkdir(exist_ok=True)
    path = store / name
    path.write_text("".join(f"{each}\n" for each in messages))
    changed = path.stat().st_mtime - ago
    os.utime(path, (changed, changed))

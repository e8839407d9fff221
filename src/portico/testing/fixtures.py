"""Fixtures for tests of Portico, its agents and its extensions: `pytest_plugins = ["portico.testing.fixtures"]`.

`host` is a host with the scripted agent and the demo in the test's own folder, `session` a session in it; `open_host`
opens hosts with other agents, and again on the same log, as after a restart.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico.agents import script
from portico.agents.agent import Agent, AgentContext
from portico.agents.scripted import ScriptedAgent, demo
from portico.kernel.clock import Clock
from portico.kernel.host import Host
from portico.kernel.log.log import Log
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.session import Session
from portico.server.compose import build_host
from portico.testing.clock import FakeClock


class HostOpener:
    """Opens hosts, one after the other, on the log of one folder; the last one is closed with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "log.db"
        self._host: Host | None = None
        self._log: Log | None = None

    async def __call__(self, *agents: Agent, rules: str = "", clock: Clock | None = None) -> Host:
        """Without agents the scripted one and the demo; `rules` is the text of a script."""
        await self.close()
        clock = clock or Clock()
        if not agents:
            parsed = script.parse(rules, "rules")
            providers = parsed.providers or [script.Provider("scripted", "Scripted")]
            agents = tuple(ScriptedAgent(provider, parsed.rules) for provider in providers)
            agents += tuple(demo(AgentContext(self.folder, {})))
        self._log = await SqliteLog.open(self.path, clock=clock.time)
        self._host = await build_host(self._log, agents, clock)
        return self._host

    async def close(self) -> None:
        if self._host is not None:
            await self._host.close()
            self._host = None
        if self._log is not None:
            await self._log.close()
            self._log = None


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    log = await SqliteLog.open(tmp_path / "log.db")
    yield log
    await log.close()


@pytest.fixture
async def open_host(tmp_path: Path) -> AsyncIterator[HostOpener]:
    opener = HostOpener(tmp_path)
    yield opener
    await opener.close()


@pytest.fixture
async def host(open_host: HostOpener) -> Host:
    return await open_host()


@pytest.fixture
async def session(host: Host, tmp_path: Path) -> Session:
    return await host.start(by="test", cwd=str(tmp_path))

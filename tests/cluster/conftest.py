"""Several hosts in one process, on one real database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from portico.cluster import cluster as module
from portico.cluster.cluster import Cluster
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import OWNED, PostgresOpening
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.turn import Turn
from portico.server.compose import build_host
from portico.server.settings import ClusterSettings
from portico.testing.play import PlayAgent
from tests.features import feature
from tests.postgres import Databases


class Plays(PlayAgent):
    """Says what it is asked; `wait` waits until it is let go, `ask` asks for approval."""

    def __init__(self) -> None:
        super().__init__(self._play)
        self.go = asyncio.Event()
        self.began = asyncio.Event()

    async def _play(self, message: Message, turn: Turn) -> None:
        turn.text(f"{message.text} heard")
        self.began.set()
        if message.text == "wait":
            await self.go.wait()
        if message.text == "ask":
            call = turn.tool("shell", '{"command": "make"}')
            await call.approve()
            await call.end(ok=True, output="made")


class Node:
    def __init__(self, log: PostgresLog, host: Host, agent: Plays) -> None:
        self.log, self.host, self.agent = log, host, agent
        self.dead = False

    @property
    def cluster(self) -> Cluster:
        return feature(self.host, Cluster)

    async def kill(self) -> None:
        """As `kill -9`: its lease is not given back, nothing more is written, nobody answers."""
        self.dead = True
        await self.pause()
        await self.cluster.link.close()
        self.log._closed, self.log._down = True, LogUnavailable("killed")
        self.log._writer.terminate()
        self.agent.go.set()
        await self.log._rows.close()

    async def pause(self) -> None:
        """As SIGSTOP: no sign of life any more, and all memory kept."""
        tasks = [*self.log._tasks, *self.cluster._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.log._tasks = self.cluster._tasks = []

    async def close(self) -> None:
        if not self.dead:
            await self.host.close()
            await self.host.members.close_link()
            await self.log.close()
            return
        with contextlib.suppress(Exception):
            for task in self.host.tasks(""):
                task.cancel()


class Nodes:
    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.nodes: list[Node] = []

    async def __call__(
        self,
        name: str,
        *,
        place: str = "here",
        lease: float = 30.0,
        capacity: int = 100,
        owned: tuple[str, ...] = OWNED,
        **more: Any,
    ) -> Node:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        log = await PostgresLog.open(PostgresOpening(self.url, folder, name, place, lease, owned=owned))
        agent = Plays()
        settings = ClusterSettings(host=name, place=place, capacity=capacity, **more)
        host = await build_host(log, [agent], before=[Cluster.room(log, settings)])
        host.workspaces = [self.folder]
        node = Node(log, host, agent)
        self.nodes.append(node)
        return node


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico.kernel.log.group_commit.PROBE_SECONDS", 0.02)
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr("portico.cluster.postgres.log.OUTAGE_SECONDS", 2.0)


@pytest.fixture
async def nodes(databases: Databases, tmp_path: Path) -> AsyncIterator[Nodes]:
    url = await databases.new()
    nodes = Nodes(url, tmp_path)
    yield nodes
    for node in nodes.nodes:
        await node.close()
    databases.give_back(url)

"""The Portal door behind the real gate, without a socket."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from portico.doors.jobs import JobsDoor
from portico.doors.portal import PortalDoor
from portico.features.jobs import Jobs
from portico.kernel.clock import Clock
from portico.kernel.host import Host
from portico.server.app import App
from portico.server.gate import Gate
from portico.server.home import Home
from portico.server.identity import Tokens
from portico.server.settings_load import load
from portico.testing.fixtures import HostOpener


class Portal:
    """A client of the door, and what stands behind it."""

    def __init__(self, host: Host, jobs: Jobs, client: httpx.AsyncClient, stopped: asyncio.Event) -> None:
        self.host = host
        self.jobs = jobs
        self.client = client
        self.stopped = stopped

    async def __call__(self, path: str, body: str | bytes = "") -> Any:
        answer = await self.client.post(f"/api/{path}", content=body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        return answer.json()

    async def session(self, cwd: Path) -> str:
        ident: str = (await self("copilot/session/start/gpt-5.2", str(cwd)))["sessionId"]
        return ident

    async def until(self, kind: str, ident: str, last: str, token: str = "k") -> list[dict[str, Any]]:
        """The elements of a live stream up to the one with this callback."""
        found: list[dict[str, Any]] = []
        while not any(element.get("callback") == last for element in found):
            answer = await self(f"copilot/{kind}/{ident}/live/{token}")
            assert "responses" in answer, (answer, found)
            found += answer["responses"]
        return found


class Opener:
    def __init__(self, open_host: HostOpener, folder: Path) -> None:
        self.open_host = open_host
        self.folder = folder
        self.clients: list[httpx.AsyncClient] = []
        self.gates: list[Gate] = []
        self.jobs: Jobs | None = None

    async def __call__(self, *, test: bool = True, clock: Clock | None = None, **options: Any) -> Portal:
        await self.close()
        host = await self.open_host(clock=clock)
        self.jobs = jobs = await Jobs.open(host)
        home = Home(self.folder / "home")
        home.make()
        stopped = asyncio.Event()
        host.workspaces = [self.folder]
        app = App(host, home, load(home.settings_path), stopped.set, test, test_folder=self.folder / "test", **options)
        gate = Gate(Tokens(home, required=False), hosts=frozenset({"127.0.0.1"}))
        app.gate, app.jobs = gate, jobs
        gate.add([*PortalDoor(app).routes, *JobsDoor(app).routes])
        self.gates.append(gate)
        client = httpx.AsyncClient(transport=httpx.ASGITransport(gate), base_url="http://127.0.0.1")
        self.clients.append(client)
        return Portal(host, jobs, client, stopped)

    async def close(self) -> None:
        """Jobs before their host, as the server does it."""
        if self.jobs is not None:
            await self.jobs.close()


@pytest.fixture
async def open_portal(open_host: HostOpener, tmp_path: Path) -> AsyncIterator[Opener]:
    opener = Opener(open_host, tmp_path)
    yield opener
    await opener.close()
    for client in opener.clients:
        await client.aclose()


@pytest.fixture
async def door(open_portal: Opener) -> Portal:
    return await open_portal()

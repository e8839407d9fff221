"""The supervisor of local models, with a child that is no model: started on demand, unloaded when nobody asks."""

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico.models.server import LocalServer, ServerAddress
from portico.workspace.child import environment
from tests.workspace.living import environ_of

IDLE = 0.05


class Stub(LocalServer):
    """Its child only says that it is ready."""

    starts = 0

    async def _start(self) -> ServerAddress:
        self.starts += 1
        self._spawn(["sh", "-c", f"echo READY http://127.0.0.1:{self.starts}; cat"], environment())
        return ServerAddress(await self._ready(), "", 1)


@pytest.fixture
async def server() -> AsyncIterator[Stub]:
    stub = Stub("stub", Path("stub.gguf"))
    yield stub
    await stub.close()


async def unloaded(server: Stub) -> None:
    async with asyncio.timeout(30):
        while server.running:  # noqa: ASYNC110 (no event tells it)
            await asyncio.sleep(0.01)


async def test_it_is_unloaded_when_idle_and_comes_back(server: Stub) -> None:
    assert (await server.address(IDLE)).url == "http://127.0.0.1:1"
    await unloaded(server)
    assert (await server.address(IDLE)).url == "http://127.0.0.1:2"


async def test_it_stays_while_somebody_waits_for_an_answer(server: Stub) -> None:
    await server.address(IDLE)
    with server.using():
        await asyncio.sleep(4 * IDLE)
        assert server.running
    await unloaded(server)


async def test_never_is_never(server: Stub) -> None:
    await server.address(IDLE)
    await server.address(0)  # the settings have changed
    await asyncio.sleep(4 * IDLE)
    assert server.running


async def test_its_process_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    environments: list[str] = []

    class Seen(LocalServer):
        def _spawn(self, command: list[str], env: dict[str, str]) -> None:
            super()._spawn(["sh", "-c", "echo READY http://127.0.0.1:1; cat"], env)
            assert self._child is not None
            environments.append(environ_of(self._child.pid))

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())  # whether or not the extra is here
    server = Seen("seen", Path("seen.gguf"))
    key = (await server.address(0)).key
    await server.close()
    assert key in environments[0]
    assert "canary" not in environments[0]

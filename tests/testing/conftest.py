from collections.abc import AsyncIterator

import httpx
import pytest

from portico.testing.model import ModelServer


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(clock=lambda: 1_700_000_000) as server:
        yield server


@pytest.fixture
async def client(server: ModelServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        yield client

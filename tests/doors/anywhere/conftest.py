"""Each test of this door has a server of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.doors.anywhere.bridge import Bridge, bridge


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Bridge]:
    async with bridge(tmp_path) as made:
        yield made

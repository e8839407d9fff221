"""Fixtures for modules whose tests share one running server; tests that change it make their own with `standing`.

Not in a conftest: other doors' tests have a loop each. A module takes them over with
`anyio_backend, shared = sharing.anyio_backend, sharing.shared`.
"""

from collections.abc import AsyncIterator

import pytest

from tests.doors.standing import Standing, standing


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Of the module, so that the shared server lives in the same loop as the tests."""
    return "asyncio"


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Standing]:
    async with standing(tmp_path_factory.mktemp("shared")) as here:
        yield here

"""The fixtures are part of the product: extension authors use the same ones."""

import asyncio
import gc
import os
from collections import Counter
from collections.abc import Generator
from functools import cache
from types import SimpleNamespace

import pytest
import uvicorn.server
from httpx._transports import default as transports
from hypothesis import settings

pytest_plugins = ["portico.testing.fixtures", "tests.postgres", "tests.temporal"]

# The same examples every time, so that a red run means a change; HYPOTHESIS_PROFILE=search looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A client of httpx reads 140 certificates when it is made, 25 ms each time. Of those that read the same, one is enough.
# httpx has no setting for this: its clients call a private name.
transports.create_ssl_context = cache(transports.create_ssl_context)  # type: ignore[attr-defined]

# When a server ends, it waits a tenth of a second and checks as often whether its connections have ended: one to three
# times in each of 2,000 tests. uvicorn has no setting for this. `server/embedded.py` replaces its other check.
uvicorn.server.asyncio = SimpleNamespace(**vars(asyncio))  # type: ignore[assignment,attr-defined]
uvicorn.server.asyncio.sleep = lambda seconds: asyncio.sleep(seconds / 20)  # type: ignore[attr-defined]

LONGEST = (
    "tests/cluster/test_chaos.py",
    "tests/live/",
    "tests/crash/",
    "tests/test_dist.py",
    "tests/cluster/",
    "tests/jobs/test_temporal.py",
    "tests/doors/test_fuzz.py",
    "tests/property/",
    "tests/models/test_toy.py",
    "tests/doors/ahp/test_story.py",
)
"""Few tests, and minutes of real agents, kills, leases and builds."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Several processes share the files: one that began a long file last would keep the others waiting."""
    if hasattr(config, "workerinput"):
        longest_first(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: a million objects that no search for garbage has to look at again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)  # collects less often: saves 7 % of a run
        gc.enable()


def longest_first(items: list[pytest.Item]) -> None:
    """The files above, then by the number of their tests; a file's own tests keep their order."""
    counts = Counter(_file(each) for each in items)
    items.sort(key=lambda each: (_rank(_file(each)), -counts[_file(each)]))


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _rank(file: str) -> int:
    return next((rank for rank, room in enumerate(LONGEST) if file.startswith(room)), len(LONGEST))

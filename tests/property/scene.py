"""A small world for property tests: an event loop and a log of its own for every example, and its settings."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from hypothesis import HealthCheck, settings

quick = settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

pure = settings(quick, max_examples=300)


def run(story: Callable[[Path], Awaitable[None]]) -> None:
    """Plays the story in a fresh folder. One that hangs is an error after two minutes."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(asyncio.wait_for(_as_coroutine(story, Path(folder)), 120))


async def _as_coroutine(story: Callable[[Path], Awaitable[None]], folder: Path) -> None:
    await story(folder)

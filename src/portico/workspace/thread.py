"""Runs blocking file operations for the event loop.

All public functions in this package that may block are coroutines: the blocking body runs in a thread, so that a slow
disk does not delay any stream. The body itself remains plain code that is easy to read and to test.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def threaded(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(function, *args, **kwargs)

    return call

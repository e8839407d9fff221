"""The bridge from blocking file work to the event loop.

Everything public in this package that may wait is a coroutine: the blocking body runs in a thread, so that a slow disk
holds up nobody's stream. The body itself stays plain code that is easy to read and to test.
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

"""Ending tasks, and reading how they ended: the error of a task that is being cancelled must not disappear."""

import asyncio
import logging
from typing import Any

from portico.kernel.errors import PorticoError

logger = logging.getLogger("portico.tasks")


def failed(task: "asyncio.Future[Any]") -> bool:
    """Whether it has ended without a result."""
    return task.done() and (task.cancelled() or task.exception() is not None)


async def end_tasks(*tasks: "asyncio.Future[Any]", expected: tuple[type[Exception], ...] = ()) -> None:
    """Cancels them and returns when they have ended; see `settle`."""
    for task in tasks:
        task.cancel()
    await settle(*tasks, expected=expected)


async def settle(*tasks: "asyncio.Future[Any]", expected: tuple[type[Exception], ...] = ()) -> None:
    """Returns when they have ended. What ended one of them is logged, unless it is a cancel, one of our own errors or
    `expected`: anything else is a bug."""
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for task, result in zip(tasks, results, strict=True):
        if isinstance(result, Exception) and not isinstance(result, (PorticoError, *expected)):
            name = task.get_name() if isinstance(task, asyncio.Task) else repr(task)
            logger.error("%s failed", name, exc_info=result)

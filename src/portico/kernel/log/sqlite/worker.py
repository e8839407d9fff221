"""Threads that do what the event loop hands them, in order.

An executor would do: its futures are made for threads that wait for each other, and passing one on to the event loop
cost a tenth of a turn. Only the loop waits here, so one call into it is enough.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Done = Callable[[Any, BaseException | None], None]
"""Called in the loop with the result or the exception of the function."""


class Workers:
    def __init__(self, count: int, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[Done, Callable[..., Any], tuple[object, ...]] | None] = SimpleQueue()
        self._closed = False
        self._threads = [threading.Thread(target=self._work, name=f"{name}_{n}", daemon=True) for n in range(count)]
        for each in self._threads:
            each.start()

    def run(self, function: Callable[..., T], *args: object) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self._loop.create_future()
        self.call(partial(_settle, future), function, *args)
        return future

    def call(self, done: Done, function: Callable[..., Any], *args: object) -> None:
        """Like `run`, without a future, which would report the result one loop iteration later."""
        if self._closed:
            raise RuntimeError("These threads have ended.")
        self._queue.put((done, function, args))

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            done, function, args = task
            result, failure = None, None
            try:
                result = function(*args)
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop has ended: there is no waiter
                self._loop.call_soon_threadsafe(done, result, failure)
            del task, done, args, result, failure  # do not keep them until the next task

    def shutdown(self) -> None:
        """Wait for all submitted tasks and end the threads."""
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for each in self._threads:
            each.join()


def _settle(future: "asyncio.Future[Any]", result: Any, failure: BaseException | None) -> None:
    if future.cancelled():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)

"""A database query shared by concurrent callers, whose result is never older than the call.

Callers that arrive while a query is running share the next one: the result of the running query may lack later commits.
Each request makes this query, and there are few connections."""

import asyncio
from collections.abc import Awaitable, Callable


class SharedQuestion:
    def __init__(self, ask: Callable[[], Awaitable[int]]) -> None:
        self._ask = ask
        self._now: asyncio.Task[int] | None = None
        self._next: asyncio.Task[int] | None = None

    async def answer(self) -> int:
        if self._now is None or self._now.done():
            self._now = self._begin(None)
            return await asyncio.shield(self._now)
        if self._next is None:
            self._next = self._begin(self._now)
        return await asyncio.shield(self._next)

    def _begin(self, before: "asyncio.Task[int] | None") -> "asyncio.Task[int]":
        asking = asyncio.get_running_loop().create_task(self._behind(before), name="log last")
        asking.add_done_callback(lambda asked: asked.cancelled() or asked.exception())  # there may be no waiter
        return asking

    async def _behind(self, before: "asyncio.Task[int] | None") -> int:
        if before is not None:
            await asyncio.wait({before})
            self._now, self._next = self._next, None
        return await self._ask()

    @property
    def asking(self) -> "list[asyncio.Task[int]]":
        return [task for task in (self._now, self._next) if task is not None]

"""Pages of missed events for followers: one disk read for all followers that request the same page."""

import asyncio
from collections.abc import Awaitable, Callable

from portico.kernel import limits
from portico.kernel.cache import Cache
from portico.kernel.events import Channel
from portico.kernel.log.page import Page

PageKey = tuple[tuple[Channel, ...], int, bool]
"""The channels that are followed, the cursor, and whether that is a seq."""


class SharedReplay:
    def __init__(self, read: Callable[[tuple[Channel, ...], int, int, bool], Awaitable[Page]]) -> None:
        self._read = read
        self._pages = Cache[PageKey, asyncio.Task[Page]](limits.REPLAY_PAGES)

    async def page(self, channels: tuple[Channel, ...], after: int, mark: int, by_seq: bool) -> Page:
        key = (channels, after, by_seq)
        reading = self._pages.get(key)
        if reading is None:
            reading = self._pages[key] = asyncio.get_running_loop().create_task(self._load(key, mark))
            reading.add_done_callback(lambda task: self._forget_empty(key, task))
        return await asyncio.shield(reading)

    async def _load(self, key: PageKey, mark: int) -> Page:
        channels, after, by_seq = key
        return await self._read(channels, after, mark, by_seq)

    def _forget_empty(self, key: PageKey, task: "asyncio.Task[Page]") -> None:
        if (task.cancelled() or task.exception() is not None or not task.result()) and self._pages.get(key) is task:
            del self._pages[key]

    def clear(self) -> None:
        """Clear the cached pages after the data on the disk has changed."""
        self._pages.clear()

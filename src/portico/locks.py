"""One lock per key: for one terminal, run or folder, where one lock for a whole feature would block the others."""

import asyncio
from weakref import WeakValueDictionary


class KeyedLocks:
    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: str) -> asyncio.Lock:
        """The same lock for the same key while a task holds it or waits for it."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

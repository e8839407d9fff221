"""Followers of new records, each with a bounded queue of shared batches.

A batch is delivered by reference, so each follower costs one pointer per batch, and a batch that a door has encoded is
reused for all readers of that door. A follower that exceeds its byte limit is ended. It never slows down anything else,
and its client can resume from the log with its cursor.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from weakref import WeakValueDictionary

from portico.kernel import limits
from portico.kernel.errors import TooSlow
from portico.kernel.events import Channel, Record
from portico.kernel.log.page import Page

_JOINED = 64
"""Seqs that one page may span, aligned for all readers: readers that fell behind at different times soon take the same
pages, and 1,000 stalled readers hold a few pages instead of 1,000."""


class Follower:
    """A queue between the commits and one reader, independent of the database."""

    def __init__(self, channels: Iterable[Channel] | None = None, limit: int | None = None) -> None:
        """`channels`: None means all channels."""
        self.channels = None if channels is None else dict.fromkeys(channels)
        """In the order in which they were added; more can be added while it is read."""
        self._feed: Feed | None = None
        self._batches: list[tuple[Page, int]] = []  # a deque takes 760 bytes from the start, for each reader
        self._bytes = 0
        self._limit = limits.FOLLOWER_BYTES if limit is None else limit
        self._waiter: asyncio.Future[None] | None = None
        self.ended = False
        """The follower has fallen behind and gets no more records."""

    def add(self, channel: Channel) -> None:
        """Follow this channel as well from now on."""
        if self.channels is not None and channel not in self.channels:
            self.channels[channel] = None
            if self._feed is not None:
                self._feed.add(self)

    def join(self, feed: "Feed") -> None:
        self._feed = feed
        feed.add(self)

    def leave(self) -> None:
        if self._feed is not None:
            self._feed.remove(self)
            self._feed = None

    def push(self, sized: tuple[Page, int]) -> None:
        if self.ended:
            return
        behind = bool(self._batches)  # one large batch alone is no sign of a slow reader
        self._batches.append(sized)
        self._bytes += sized[1]
        if behind and self._bytes > self._limit:
            self._batches.clear()
            self.ended = True
        self.wake()

    async def take(self, timeout: float | None = None) -> Page:
        """Return the records since the last call that fit into one page. Waits for at least one record; after `timeout`
        seconds the page is empty. All readers of the same channel, or of all channels, get the same page."""
        while not self._batches:
            if self.ended:
                raise TooSlow("This reader fell too far behind. Come back with your cursor: nothing is lost.")
            await self.wait(timeout)
            if timeout is not None and not self.waiting:
                return Page()
        (first, size), count = self._batches[0], 1
        for page, more in islice(self._batches, 1, None):
            if size + more > limits.REPLAY_BYTES or page[0].seq // _JOINED != first[0].seq // _JOINED:
                break
            size, count = size + more, count + 1
        taken = [page for page, _ in self._batches[:count]]
        del self._batches[:count]
        self._bytes -= size
        return first if count == 1 else self._join(taken)

    def _join(self, taken: list[Page]) -> Page:
        if self._feed is None or (self.channels is not None and len(self.channels) != 1):
            return Page(chain.from_iterable(taken))
        key = (*(self.channels or ("",)), taken[0][0].seq, taken[-1][-1].seq)
        joined = self._feed.joined.get(key) or Page(chain.from_iterable(taken))
        self._feed.joined[key] = joined
        return joined

    def drain(self) -> list[Record]:
        """Take all queued records without waiting."""
        found = [record for batch, _ in self._batches for record in batch]
        self._batches.clear()
        self._bytes = 0
        return found

    @property
    def waiting(self) -> bool:
        """Whether records are queued, or the follower has ended."""
        return bool(self._batches) or self.ended

    async def wait(self, seconds: float | None = None) -> None:
        """Wait for a record, for `wake`, or for `seconds`."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self.wake) if seconds is not None else None
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Feed:
    def __init__(self) -> None:
        self._by_channel: defaultdict[Channel, set[Follower]] = defaultdict(set)
        self._of_all: set[Follower] = set()
        self.joined: WeakValueDictionary[tuple[Channel | int, ...], Page] = WeakValueDictionary()
        """Pages joined by one follower, shared with the others while a reader still holds them."""

    def add(self, follower: Follower) -> None:
        if follower.channels is None:
            self._of_all.add(follower)
        for channel in follower.channels or ():
            self._by_channel[channel].add(follower)

    def remove(self, follower: Follower) -> None:
        self._of_all.discard(follower)
        for channel in follower.channels or ():
            followers = self._by_channel.get(channel)
            if followers is not None:
                followers.discard(follower)
                if not followers:
                    del self._by_channel[channel]

    @property
    def followers(self) -> int:
        return len(self._of_all) + sum(len(each) for each in self._by_channel.values())

    def channels(self) -> Iterable[Channel] | None:
        """The channels with followers; None: all."""
        return None if self._of_all else self._by_channel.keys()

    def publish(self, batch: Page) -> None:
        """Push to each follower the part of the batch that it follows, in order."""
        if self._of_all:
            self._push(self._of_all, batch)
        if not self._by_channel:
            return
        parts: dict[Channel, Page] = {}
        for record in batch:
            if record.channel in self._by_channel:
                parts.setdefault(record.channel, Page()).append(record)
        if len(parts) == 1:
            [(channel, part)] = parts.items()
            self._push(self._by_channel[channel], part)
        elif parts:
            self._publish_interleaved(batch, parts)

    def _publish_interleaved(self, batch: Page, parts: dict[Channel, Page]) -> None:
        # A follower of several channels must see them in the order of seq, so its parts are merged for it.
        wanted: defaultdict[Follower, list[Channel]] = defaultdict(list)
        for channel in parts:
            for follower in self._by_channel[channel]:
                wanted[follower].append(channel)
        merged: dict[tuple[Channel, ...], Page] = {}
        for follower, channels in wanted.items():
            key = tuple(channels)
            if key not in merged:
                chosen = set(key)
                merged[key] = parts[key[0]] if len(key) == 1 else Page(r for r in batch if r.channel in chosen)
            self._push((follower,), merged[key])

    @staticmethod
    def _push(followers: "Sequence[Follower] | set[Follower]", part: Page) -> None:
        sized = part, sum(len(record.data) for record in part)
        for follower in followers:
            follower.push(sized)

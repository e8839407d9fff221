"""Invariant 2: for any interleaving of drops, restarts and slow readers, what a reader has seen is a prefix of its
channel, with no gap and no repeat."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from portico.kernel import limits
from portico.kernel.errors import TooSlow
from portico.kernel.events import Audited, PartDelta, Record
from portico.kernel.log.sqlite import SqliteLog
from tests.property.scene import quick, run

CHANNELS = ["a", "b"]

write = st.tuples(st.sampled_from(["append", "post", "delta"]), st.sampled_from(CHANNELS), st.integers(1, 5))
read = st.tuples(st.sampled_from(["read", "drop"]), st.integers(0, 3), st.just(0))
other = st.tuples(st.sampled_from(["restart", "pause"]), st.just(""), st.just(0))
steps = st.lists(write | read | other, max_size=40)


class Reader:
    """Follows one channel (or everything), and comes back with its cursor whenever it was cut off."""

    def __init__(self, *channels: str) -> None:
        self.channels = channels
        self.seen: list[Record] = []
        self._batches: AsyncGenerator[list[Record], None] | None = None

    @property
    def cursor(self) -> int:
        if not self.seen:
            return 0
        return self.seen[-1].pos if len(self.channels) == 1 else self.seen[-1].seq

    async def read(self, log: SqliteLog, patience: float = 0.002) -> None:
        """Takes what comes next, if anything comes soon."""
        if self._batches is None:
            self._batches = cast(AsyncGenerator[list[Record], None], log.follow(*self.channels, after=self.cursor))
        try:
            self.seen += await asyncio.wait_for(anext(self._batches), patience)
        except (TimeoutError, TooSlow):
            await self.drop()

    async def drop(self) -> None:
        if self._batches is not None:
            await self._batches.aclose()
            self._batches = None


async def write_to(log: SqliteLog, kind: str, channel: str, count: int) -> None:
    for i in range(count):
        if kind == "append":
            await log.append(channel, Audited(action=str(i), by="x" * 20))
        elif kind == "post":
            log.post(channel, Audited(action=str(i), by="x" * 20))
        else:
            log.post(channel, PartDelta(turn="t", part="p", text=str(i)))


async def whole(log: SqliteLog, *channel: str) -> list[Record]:
    records: list[Record] = []
    while True:
        if channel:
            more = await log.read(channel[0], records[-1].pos if records else 0)
        else:
            more = await log.read_all(after=records[-1].seq if records else 0)
        if not more:
            return records
        records += more


@quick
@given(steps)
def test_every_reader_sees_a_prefix(steps: list[tuple[str, str | int, int]]) -> None:
    async def story(folder: Path) -> None:
        log = await SqliteLog.open(folder / "log.db")
        readers = [Reader("a"), Reader("b"), Reader("a", "b"), Reader()]
        for kind, target, count in steps:
            if kind in ("append", "post", "delta"):
                await write_to(log, kind, str(target), count)
            elif kind == "read":
                await readers[int(target)].read(log)
            elif kind == "drop":
                await readers[int(target)].drop()
            elif kind == "pause":
                await log.flush()
            else:
                for reader in readers:
                    await reader.drop()
                await log.close()
                log = await SqliteLog.open(folder / "log.db")
        await log.flush()
        for reader in readers:
            while reader.cursor < (log.head(reader.channels[0]) if len(reader.channels) == 1 else log.seq):
                await reader.read(log, patience=1)
            await reader.drop()
            if len(reader.channels) == 1:
                expected = await whole(log, reader.channels[0])
                assert [r.pos for r in reader.seen] == list(range(1, len(expected) + 1))
            else:
                expected = await whole(log)
                assert [r.seq for r in reader.seen] == list(range(1, log.seq + 1))
            assert reader.seen == expected
        assert log.followers == 0
        await log.close()

    with patch.object(limits, "FOLLOWER_BYTES", 200), patch.object(limits, "READ_EVENTS", 3):
        run(story)

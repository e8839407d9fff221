"""Both logs, step by step: whatever is done to them, they say the same."""

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import PostgresOpening
from portico.kernel.events import HOST
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.log.stored.log import StoredLog
from portico.testing.clock import FakeClock
from tests.log.events import delta, ended, fact
from tests.log.test_notes import ran
from tests.postgres import Databases

CHANNELS = st.sampled_from(["session/a", "session/b", HOST])
KEYS = st.sampled_from(["k", "live:1", "live:2"])


def test_both_logs_say_the_same(databases: Databases) -> None:
    class Same(RuleBasedStateMachine):
        @initialize()
        def open(self) -> None:
            self.runner = asyncio.Runner()
            self.folder = tempfile.TemporaryDirectory()
            self.clock = FakeClock()
            self.url = self.run(databases.new())
            self.logs: list[StoredLog] = self.run(self.opened())

        def run(self, work: Coroutine[Any, Any, Any]) -> Any:
            return self.runner.run(work)

        def both(self, name: str, *args: Any, **kwargs: Any) -> None:
            async def call() -> list[Any]:
                return [await getattr(log, name)(*args, **kwargs) for log in self.logs]

            one, other = self.run(call())
            assert one == other

        async def opened(self) -> list[StoredLog]:
            folder = Path(self.folder.name)
            return [
                await SqliteLog.open(folder / "log.db", clock=self.clock.time),
                await PostgresLog.open(PostgresOpening(self.url, folder, clock=self.clock.time)),
            ]

        @rule(events=st.lists(st.tuples(CHANNELS, st.integers(0, 9)), min_size=1, max_size=4))
        def append(self, events: list[tuple[str, int]]) -> None:
            self.both("append_all", *((channel, fact(number)) for channel, number in events))

        @rule(channel=CHANNELS, texts=st.lists(st.text(max_size=3), min_size=1, max_size=3), end=st.booleans())
        def stream(self, channel: str, texts: list[str], end: bool) -> None:
            for text in texts:
                self.both("append", channel, delta(text))
            if end:
                self.both("append", channel, ended("".join(texts)))

        @rule(channel=CHANNELS, key=KEYS, data=st.none() | st.binary(max_size=4), lazy=st.booleans())
        def note(self, channel: str, key: str, data: bytes | None, lazy: bool) -> None:
            async def put() -> None:
                for log in self.logs:
                    log.put_kv(channel, key, data, lazy=lazy)
                    await log.flush()

            self.run(put())

        @rule(channel=CHANNELS, data=st.sampled_from([b"one", b"two"]))
        def blob(self, channel: str, data: bytes) -> None:
            async def put() -> None:
                for log in self.logs:
                    await log.append(channel, ran(await log.put_blob(data)))

            self.run(put())

        @rule(seconds=st.integers(1, 100))
        def wait(self, seconds: int) -> None:
            self.clock.advance(seconds)

        @rule(age=st.integers(0, 100), keep=st.dictionaries(CHANNELS, st.integers(0, 5), max_size=2))
        def compact(self, age: int, keep: dict[str, int]) -> None:
            self.both("compact", int(self.clock.time() * 1000) - age * 1000, keep)

        @rule(channel=CHANNELS, below=st.integers(0, 9))
        def compact_channel(self, channel: str, below: int) -> None:
            self.both("compact_channel", channel, below)

        @rule(channel=CHANNELS)
        def delete(self, channel: str) -> None:
            self.both("delete", channel)

        @rule(age=st.integers(0, 100))
        def expire(self, age: int) -> None:
            self.both("expire_kv", "live", int(self.clock.time() * 1000) - age * 1000)

        @rule()
        def restart(self) -> None:
            async def again() -> list[StoredLog]:
                for log in self.logs:
                    await log.close()
                return await self.opened()

            self.logs = self.run(again())

        @rule(channel=CHANNELS, after=st.integers(0, 12), limit=st.integers(0, 5), whole=st.booleans())
        def read(self, channel: str, after: int, limit: int, whole: bool) -> None:
            self.both("read", channel, after, limit)
            self.both("read_all", channel, after=after, limit=limit, whole=whole)

        @invariant()
        def same(self) -> None:
            if not hasattr(self, "logs"):
                return
            one, other = self.logs
            assert (one.seq, sorted(one.channels(""))) == (other.seq, sorted(other.channels("")))
            for channel in one.channels(""):
                assert one.head(channel) == other.head(channel)
            self.both("read_all")
            for key in ("k", "live:1", "trail/p1"):
                self.both("list_kv", key)

        def teardown(self) -> None:
            if not hasattr(self, "logs"):
                return
            for log in self.logs:
                self.run(log.close())
            self.runner.close()
            self.folder.cleanup()
            databases.give_back(self.url)

    run_state_machine_as_test(Same, settings=settings(max_examples=8, stateful_step_count=20, deadline=None))

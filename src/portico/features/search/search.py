"""Full-text search over conversations: messages, answers, reasoning, outputs of calls.

An index beside the log is queried first. It follows the log from its own cursor in the background, so that writes
never wait for it. Where it is missing, damaged or too far behind, the log itself is read, newest
sessions first, until there are enough hits or the time is up; the results are the same. Deltas are passed over, since
a part's last event carries its whole text.
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from msgspec import Struct

from portico.features.search.index import Index, IndexedText, IndexHit, passing, remove
from portico.kernel import events as e
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Event, Record, SessionRemoved
from portico.kernel.feature import Feature, receive
from portico.kernel.host import Host
from portico.kernel.state import Summary
from portico.server.home import Home

logger = logging.getLogger("portico.search")
T = TypeVar("T")
Sessions = Callable[[], list[Summary]]

SECONDS = 2.0
"""Timeout of a search, for a person who types. Newer sessions are searched first."""
CATCH_UP_SECONDS = 0.5
"""How long a search waits for the index before it reads the log itself."""
KEEP_UP_SECONDS = 2.0
"""Interval between index updates. A search before the next update catches up first."""
AROUND = 80
"""Characters shown on each side of what was found."""
BATCH = 1000
"""Events that are read and compared per batch, in a thread: other streams continue between batches."""
_DELTAS = (b'{"type":"part.delta"', b'{"type":"tool.input"', b'{"type":"tool.output"')


class Hit(Struct, omit_defaults=True):
    session: str
    pos: int
    time: int
    excerpt: str
    turn: str | None = None


class Search(Feature):
    """The index is in the home folder. Without one the log is read."""

    name = "search"
    needs = (Home,)

    def __init__(self, host: Host, home: Home | None = None) -> None:
        super().__init__(host)
        self._host = host
        self._path = home.search_path if home is not None else None
        self._index: Index | None = None
        self._renewed = False
        self._gone: set[str] = set()
        self._thread = ThreadPoolExecutor(1, "portico-search")
        self._lock = asyncio.Lock()
        if home is not None:
            host.own(self._keep_up(), "search index")

    @property
    def cursor(self) -> int | None:
        """How far into the log the index knows everything; None: there is none (yet)."""
        return None if self._index is None else self._index.cursor

    async def close(self) -> None:
        self._path = None
        async with self._lock:
            if self._index is not None:
                await self._run(self._index.close)
                self._index = None
        self._thread.shutdown()

    async def find(
        self, wanted: str, limit: int, among: Sessions | None = None, seconds: float = SECONDS
    ) -> tuple[list[Hit], bool]:
        """At most one hit for each turn, newest sessions first; and whether everything was searched. `among` lists the
        sessions that are searched; all of them, when None."""
        sessions = (among or self._host.list)()
        hits: list[Hit] = []
        try:
            async with asyncio.timeout(seconds):
                places = await self._ask(wanted.casefold(), seconds)
                found = (
                    self._scan(wanted.casefold(), sessions)
                    if places is None
                    else self._show(places, wanted.casefold(), sessions)
                )
                async for hit in found:
                    hits.append(hit)
                    if len(hits) == limit:
                        return hits, False
        except TimeoutError:
            return hits, False
        return hits, True

    # -- with the index ----------------------------------------------------------------------------------------

    async def _ask(self, wanted: str, seconds: float) -> list[IndexHit] | None:
        """Query the index; None: it has no reliable answer."""
        if not await self._is_current():
            return None
        async with self._lock:
            index = self._index
            if index is None:
                return None
            try:
                return await self._run(partial(index.find, wanted, seconds))
            except sqlite3.DatabaseError as error:
                await self._discard(error)
                return None

    async def _is_current(self) -> bool:
        mark = self._host.log.seq
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                await self.catch_up()
        except TimeoutError:
            return False
        return self.cursor is not None and self.cursor >= mark

    async def _show(self, places: list[IndexHit], wanted: str, among: list[Summary]) -> AsyncIterator[Hit]:
        by_session: dict[str, list[IndexHit]] = {}
        for place in places:
            by_session.setdefault(place.session, []).append(place)
        for session in among:
            for place in by_session.get(session.id, ()):
                records = await self._host.log.read(f"session/{session.id}", place.pos - 1, 1)
                for hit in _hits(session.id, records, wanted):
                    if hit.turn == place.turn:
                        yield hit
                        break

    # -- keeping it up -----------------------------------------------------------------------------------------

    @receive(SessionRemoved)
    def _removed(self, record: Record) -> None:
        assert isinstance(record.event, SessionRemoved)
        self._gone.add(record.event.session)

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(KEEP_UP_SECONDS)
            with contextlib.suppress(LogUnavailable):  # the disk is not writable: retry later
                await self.catch_up()

    async def catch_up(self) -> None:
        """Update the index to the current end of the log. A cancellation leaves it consistent. A full disk leaves it
        unchanged until the next update."""
        async with self._lock:
            try:
                await self._follow()
            except (sqlite3.DatabaseError, OSError) as error:
                if passing(error):
                    logger.debug("the search index waits: %s", error)
                else:
                    await self._discard(error)

    async def _follow(self) -> None:
        index, log = await self._opened(), self._host.log
        mark = log.seq  # not further: under load there is always something new, and it can wait for the next time
        while index is not None and index.cursor < mark:
            records = await log.read_all(after=index.cursor, limit=BATCH, whole=True)
            cursor = records[-1].seq if records else mark
            await self._run(partial(index.add, _texts(records), cursor))
        while index is not None and self._gone:
            session = next(iter(self._gone))
            await self._run(partial(index.forget, session))
            self._gone.discard(session)  # not before: a full disk may have refused it

    async def _opened(self) -> Index | None:
        if self._index is not None or self._path is None:
            return self._index
        path = self._path
        index = await self._run(partial(Index.open, path))
        epoch = self._host.log.epoch
        if index.cursor and index.epoch != epoch:  # of another log, or of one that has lost what is in here
            await self._run(index.close)
            await self._run(partial(remove, path))
            index = await self._run(partial(Index.open, path))
        if index.epoch != epoch:
            await self._run(partial(index.begin, epoch))
        self._index = index
        self._gone |= {each for each in await self._run(index.sessions) if not self._host.has(each)}
        return index

    async def _discard(self, error: Exception) -> None:
        """A damaged index is made anew, once; where that does not help (no trigrams in this SQLite), this host searches
        without one."""
        index, self._index, path = self._index, None, self._path
        if index is not None:
            with contextlib.suppress(sqlite3.Error):
                await self._run(index.close)
        if index is None or self._renewed or path is None:
            logger.warning("searching without an index: %s", error)
            self._path = None
            return
        logger.warning("the search index is made anew: %s", error)
        self._renewed = True
        await self._run(partial(remove, path))

    async def _run(self, work: Callable[[], T]) -> T:
        """Run in the thread of the index. A cancelled caller keeps the lock until the work is done."""
        running = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait({running})
            raise

    # -- without it --------------------------------------------------------------------------------------------

    async def _scan(self, wanted: str, among: list[Summary]) -> AsyncIterator[Hit]:
        for session in among:
            async for hit in self._in_session(session.id, wanted):
                yield hit

    async def _in_session(self, session: str, wanted: str) -> AsyncIterator[Hit]:
        after = 0
        seen: set[str | None] = set()
        while records := await self._host.log.read(f"session/{session}", after, BATCH):
            after = records[-1].pos
            for hit in await asyncio.to_thread(lambda batch: list(_hits(session, batch, wanted)), records):
                if hit.turn not in seen:
                    seen.add(hit.turn)
                    yield hit


def _texts(records: list[Record]) -> Iterator[IndexedText]:
    for record in records:
        if record.channel.startswith("session/"):
            session = record.channel.removeprefix("session/")
            for turn, text in said(record.event):
                if text:
                    yield IndexedText(session, record.pos, turn, text)


def _hits(session: str, records: list[Record], wanted: str) -> Iterator[Hit]:
    verbatim = wanted.isascii() and wanted.isprintable() and not {'"', "\\"} & set(wanted)  # JSON writes it as it is
    needle = wanted.encode("utf-8", "replace")
    for record in records:
        data = record.data
        if verbatim and data.isascii() and needle not in data.lower():
            continue  # without decoding it; letters beyond ASCII may fold into what is wanted
        if not data.startswith(_DELTAS):
            for turn, text in said(record.event):
                if wanted in text.casefold():
                    yield Hit(session, record.pos, record.time, excerpt(text, wanted), turn)


def said(event: Event) -> Iterator[tuple[str | None, str]]:
    """The texts in an event, each with the turn it belongs to."""
    match event:
        case e.TurnStarted():
            yield event.turn, event.message.text
        case e.PartEnded():
            yield event.turn, event.text
        case e.ToolReady():
            yield event.turn, event.input
        case e.ToolEnded():
            yield event.turn, event.output
        case e.SessionRenamed():
            yield None, event.title
        case e.HistoryCopied():
            for turn in event.turns:
                for holder in (turn.get("message", {}), *turn.get("parts", [])):
                    yield turn.get("id"), str(holder.get("text", ""))


def excerpt(text: str, wanted: str) -> str:
    """One line around the first place. Folding can change lengths, so a place that is off is only a worse cut."""
    at = text.casefold().find(wanted)
    start, end = max(0, at - AROUND), at + len(wanted) + AROUND
    line = " ".join(text[start:end].split())
    return f"{'… ' if start > 0 else ''}{line}{' …' if end < len(text) else ''}"

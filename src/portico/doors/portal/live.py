"""Long polling: a reader is a cursor into a channel of the log, named by the token of the caller.

A response is sent as soon as there is data. A reader that got a response a moment ago waits a little longer, so that a
fast stream needs few responses. While a client polls, new records are passed to its reader by reference. A reader that
stops polling or falls behind keeps only its cursor and later reads from the log. Cursors are stored in the log with the
channel, so a reader resumes at its position after a restart. A response is sent only after the new cursor is in the
journal of the log, so a client that received it does not get the same data again after a crash of the host.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from portico.doors.portal.callbacks import Element, Open, Translate, closes, coalesce
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Channel, HostStopped, Record
from portico.kernel.host import Host
from portico.kernel.log.feed import Follower
from portico.kernel.log.log import Log

WAIT_SECONDS = 5.0
"""How long a call without data waits: the value that the clients use."""
WINDOW_SECONDS = 0.005
"""Minimum interval between two responses of a stream: not visible to people, and a poll costs more than many deltas."""
ANSWER_ELEMENTS = 10_000
"""Maximum elements per response: about 30 ms that block the event loop. The next call gets the rest."""
BUFFER_BYTES = 4 * 1024 * 1024
"""Buffer of a reader between two polls. Its next poll reads more from the log."""
SILENT_SECONDS = 15.0
"""A reader that has not polled for this long is detached from the log."""
KEPT_SECONDS = 3600.0
"""A reader that has not polled for this long is removed from memory. Its cursor is in the log."""
READERS = 10_000
"""Maximum readers in memory, about 2 KB each. Above it, the least recently used ones are removed early."""
_LONG_TOKEN = 80

Trouble = Literal["NotFound", "Closed", "Timeout", "Parallel"]
Closed = Callable[[], Awaitable[int | None]]
"""Returns when the channel was closed (milliseconds since the epoch); None: it is open."""
Left = Callable[[], Awaitable[None]]
"""Returns when the caller has disconnected."""


class Cursor(Struct, omit_defaults=True):
    """The stored state of a reader."""

    pos: int = 0
    open: Open = {}
    told: int = 0
    """Elements of the record after `pos` that were already sent: without a token, each response has one element."""
    epoch: str = ""
    """The epoch of the log; not stored by 0.1.0."""
    nonce: str = ""
    """In a cluster: makes the stored value of every response unique."""


class LiveReader:
    def __init__(
        self, channel: Channel, key: str, translate: Translate, cursor: Cursor, *, whole: bool, numbered: bool = False
    ) -> None:
        self.channel = channel
        self.key = key
        self.translate = translate
        self.whole = whole
        self.numbered = numbered
        self.pos = cursor.pos
        self.open = cursor.open
        self.unsent: list[tuple[Cursor, Element]] = []
        """Each element with the cursor before it. A whole response leaves nothing unsent, so only the order matters."""
        self._begun = cursor
        self.follower: Follower | None = None
        """Receives new records while a client polls."""
        self.busy = False
        self.closed = False
        self.told = False
        self.stored: bytes | None = None
        """The cursor in the log when this reader was created."""
        self.answered = 0.0
        self.used = 0.0

    def take(self, records: Iterable[Record]) -> None:
        for record in records:
            if record.pos <= self.pos:
                continue
            event = record.event
            before = {} if self.whole else dict(self.open)
            told = self._begun.told if record.pos == self._begun.pos + 1 else 0
            for index, element in enumerate(self.translate(event, self.open)):
                if self.numbered:
                    element["seq"] = record.seq
                if index >= told:
                    self.unsent.append((Cursor(record.pos - 1, before, index), element))
            closing = closes(event)
            self.closed = self.closed if closing is None else closing
            self.pos = record.pos

    @property
    def sent(self) -> Cursor:
        """The cursor before the first unsent element."""
        return self.unsent[0][0] if self.unsent else Cursor(self.pos, self.open)


class Live:
    def __init__(self, host: Host, countdown: float) -> None:
        self._host = host
        self._log: Log = host.log
        self._countdown = countdown
        self._readers: dict[tuple[Channel, str], LiveReader] = {}
        self._attached: set[LiveReader] = set()
        self._watching: asyncio.TimerHandle | None = None
        self._closed_again: dict[Channel, int] = {}
        self._stopping = False
        self._swept = 0.0
        host.commits.on("portal", self._stopped, HostStopped)

    def expired(self, channel: Channel, closed: int | None) -> bool:
        """Return whether it was closed (milliseconds since the epoch) so long ago that it counts as deleted."""
        if closed is None:
            return False
        closed = max(closed, self._closed_again.get(channel, 0))
        return self._host.now() - closed > self._countdown * 1000

    def restart_countdown(self, channel: Channel) -> None:
        now = self._host.now()
        again = self._closed_again
        again.pop(channel, None)
        again[channel] = now
        while now - again[oldest := next(iter(again))] >= self._countdown * 1000 and oldest != channel:
            del again[oldest]

    def stop_waiting(self) -> None:
        """End all waiting polls because the host stops."""
        self._stopping = True
        for reader in self._attached:
            if reader.follower is not None:
                reader.follower.wake()

    # -- one call ----------------------------------------------------------------------------------------------

    async def poll(
        self,
        channel: Channel,
        token: str | None,
        translate: Translate,
        closed: Closed,
        left: Left,
        *,
        numbered: bool = False,
    ) -> list[Element] | Trouble:
        """Wait for elements that the reader has not seen, and return them. Without a token, all callers share one
        reader, and a response has one element. A caller who has disconnected consumes nothing."""
        reader = await self._reader(channel, token, translate, closed, numbered)
        if reader is None or reader.told:
            return "NotFound"
        if reader.busy:
            return "Parallel"
        reader.busy = True
        leaving = asyncio.ensure_future(left())
        try:
            trouble = await self._patiently(reader, leaving)
            await asyncio.sleep(0)  # lets `leaving` finish if the caller disconnected while the data arrived
            if leaving.done() or trouble == "Timeout":
                return "Timeout"  # in the first case the response is not delivered
            return await (self._tell(reader) if trouble == "Closed" else self._answer(reader))
        finally:
            leaving.cancel()
            reader.busy = False
            reader.used = asyncio.get_running_loop().time()

    async def _reader(
        self, channel: Channel, token: str | None, translate: Translate, closed: Closed, numbered: bool
    ) -> LiveReader | None:
        key = "live" if token is None else f"live:{_short(token)}"
        reader = self._readers.get((channel, key))
        if reader is not None and self._host.members.several and not reader.busy:
            self._detach(reader)  # another host may have responded since
            del self._readers[channel, key]
            reader = None
        if reader is None:
            await self._host.members.catch_up()
            self._sweep()
            stored = await self._log.get_kv(channel, key)
            at = await closed()
            if stored is None and self.expired(channel, at):
                return None
            cursor = self._checked(channel, stored)
            made = LiveReader(channel, key, translate, cursor, whole=token is not None, numbered=numbered)
            made.closed, made.stored = at is not None, stored
            reader = self._readers.setdefault((channel, key), made)
        return reader

    def _checked(self, channel: Channel, stored: bytes | None) -> Cursor:
        """Decode a stored cursor. A cursor of another log is not valid here: its reader starts from the beginning."""
        cursor = msgspec.json.decode(stored, type=Cursor) if stored else Cursor()
        same_log = cursor.epoch in ("", self._log.epoch) and cursor.pos <= self._log.head(channel)
        return cursor if same_log else Cursor()

    async def _wait(self, reader: LiveReader) -> Trouble | None:
        loop = asyncio.get_running_loop()
        reader.used = loop.time()
        deadline = reader.used + WAIT_SECONDS
        while True:
            await self._pull(reader)
            now = loop.time()
            if reader.unsent:
                rest = _rest(reader)
                if rest > 0 and not _urgent(reader):
                    await asyncio.sleep(rest)
                    await self._pull(reader)
                return None
            if reader.closed:
                return "Closed"
            if now >= deadline or self._stopping:
                return "Timeout"
            if reader.follower is not None and not reader.follower.waiting:
                await reader.follower.wait(deadline - now)

    async def _patiently(self, reader: LiveReader, leaving: "asyncio.Future[None]") -> Trouble | None:
        """Wait, but stop when the caller disconnects, so that this call does not block the next one of the token."""
        await self._pull(reader)
        if reader.unsent and (_urgent(reader) or _rest(reader) <= 0):
            return None  # no need for a separate task
        waiting = asyncio.ensure_future(self._wait(reader))
        try:
            both: set[asyncio.Future[Any]] = {waiting, leaving}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else "Timeout"
        finally:
            if waiting.cancel():  # it must release the reader before the next call can use it
                await asyncio.wait({waiting})

    async def _tell(self, reader: LiveReader) -> Trouble:
        """Report the end to this reader. All later calls get NotFound."""
        reader.told = True
        self._detach(reader)
        return "Closed" if await self._store(reader, None) else "Parallel"

    async def _store(self, reader: LiveReader, cursor: Cursor | None) -> bool:
        """Store the cursor before a response is sent. False: another host has already responded; do not send."""
        if not self._host.members.several:
            self._log.journal(reader.channel, reader.key, msgspec.json.encode(cursor) if cursor else None)
            return True
        data = msgspec.json.encode(msgspec.structs.replace(cursor, nonce=secrets.token_hex(8))) if cursor else None
        return await self._log.replace_kv(reader.channel, reader.key, reader.stored, data)

    async def _pull(self, reader: LiveReader) -> None:
        """Fetch new records. A detached reader reads up to the head and attaches in the same tick of the event loop."""
        if reader.follower is not None and reader.follower.ended:
            self._detach(reader)
        while reader.follower is None and len(reader.unsent) < ANSWER_ELEMENTS:
            head = self._log.head(reader.channel)
            if reader.pos >= head:
                self._attach(reader)
                return
            records = await self._log.read(reader.channel, reader.pos)
            reader.take(records)
            if not records:
                reader.pos = head  # the remaining records were compacted away
        if reader.follower is not None:
            reader.take(reader.follower.drain())

    async def _answer(self, reader: LiveReader) -> list[Element] | Trouble:
        count = len(reader.unsent) if reader.whole else 1
        taken, reader.unsent = reader.unsent[:count], reader.unsent[count:]
        try:
            if not await self._store(reader, msgspec.structs.replace(reader.sent, epoch=self._log.epoch)):
                return "Parallel"
        except LogUnavailable:
            reader.unsent = taken + reader.unsent
            raise
        elements = coalesce([element for _, element in taken])
        reader.answered = asyncio.get_running_loop().time()
        return elements

    # -- what is new -------------------------------------------------------------------------------------------

    def _attach(self, reader: LiveReader) -> None:
        reader.follower = Follower([reader.channel], BUFFER_BYTES)
        self._log.attach(reader.follower)
        self._attached.add(reader)
        if self._watching is None:
            self._watching = asyncio.get_running_loop().call_later(SILENT_SECONDS, self._detach_silent)

    def _detach(self, reader: LiveReader) -> None:
        if reader.follower is not None:
            reader.follower.leave()
            reader.follower = None
        self._attached.discard(reader)

    def _detach_silent(self) -> None:
        """Detach silent readers. One timer serves all of them, while any is attached."""
        loop = asyncio.get_running_loop()
        for reader in list(self._attached):
            if not reader.busy and loop.time() - reader.used >= SILENT_SECONDS:
                self._detach(reader)
        self._watching = loop.call_later(SILENT_SECONDS, self._detach_silent) if self._attached else None

    def _stopped(self, record: Record) -> None:
        """Stop waiting when the last event of the host is committed: it stops."""
        if self._host.stopping:
            self.stop_waiting()

    def _sweep(self) -> None:
        """Remove unused readers from memory. Runs occasionally, when a new reader is created."""
        now = asyncio.get_running_loop().time()
        if now - self._swept < SILENT_SECONDS and len(self._readers) < READERS:
            return
        self._swept = now
        idle = sorted((reader.used, key) for key, reader in self._readers.items() if not reader.busy)
        spare = len(self._readers) - READERS * 3 // 4 if len(self._readers) >= READERS else 0
        for index, (used, key) in enumerate(idle):
            if index < spare or now - used > KEPT_SECONDS:
                self._detach(self._readers.pop(key))


def _rest(reader: LiveReader) -> float:
    """Return the rest of the window in which more data can join the same response."""
    return reader.answered + WINDOW_SECONDS - asyncio.get_running_loop().time()


def _urgent(reader: LiveReader) -> bool:
    """Return whether to respond without delay: the end of a turn, or data that is not a stream. No more is due soon."""
    return not reader.channel.startswith("session/") or reader.unsent[-1][1].get("callback") == "onIdle"


def _short(token: str) -> str:
    """Return the key of a token. Any string is a token; a long one is replaced by its hash."""
    return token if len(token) <= _LONG_TOKEN else hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()

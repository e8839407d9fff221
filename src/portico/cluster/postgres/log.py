"""The log on PostgreSQL: every host commits under one advisory lock and is notified of other hosts' commits (the bell).

A commit is one function call (`append_batch`). If its answer is lost, the outcome is looked up, never guessed: a new
connection fences off the old one and searches for the batch. Commits of other hosts are delivered to the same commit
listeners and followers, in the order of `seq`. The bell only contains how far to read, so a lost bell costs a second.

Writing does not wait for reading: an append starts the next commit although the commits of other hosts before the last
one are still read. An append returns when its batch is delivered, because callers read the state that results from it.
What is pending when a commit is durable waits for its delivery, or for the next append: callers that continue then join
it. Otherwise the callers of a host split into groups, and each group has a small commit of its own.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import asyncpg

from portico.cluster.postgres.bell import Bell
from portico.cluster.postgres.columns import blob_users, event_columns, heads_of, note_columns, numbers
from portico.cluster.postgres.connect import connect, pool
from portico.cluster.postgres.error_text import GOES_ON, Fenced, check_url, is_lost, outcome_unknown, translate
from portico.cluster.postgres.identity import identify, mark_of
from portico.cluster.postgres.lease import ChannelLease, claim, folder_of, reconnect, release, renew
from portico.cluster.postgres.opening import PostgresOpening
from portico.cluster.postgres.packs import PackReader, pack_columns
from portico.cluster.postgres.schema import FILES_BELL, prepare
from portico.cluster.postgres.shared_question import SharedQuestion
from portico.cluster.postgres.store import PostgresStore
from portico.kernel import faults
from portico.kernel.errors import LogTooNew, LogUnavailable, PorticoError
from portico.kernel.events import HOST, Channel, Event, Record
from portico.kernel.log.group_commit import PROBE_SECONDS, CommittedBatch, Done
from portico.kernel.log.identity import Identity
from portico.kernel.log.log import DiskUse, NotOwner
from portico.kernel.log.notes import KeyValue
from portico.kernel.log.page import Page
from portico.kernel.log.pending import Pending
from portico.kernel.log.sqlite.watermark import Mark
from portico.kernel.log.stored.log import StoredLog

logger = logging.getLogger("portico.log")
T = TypeVar("T")

LOOK_SECONDS = 1.0
"""Poll interval without a bell: the delay after a lost one."""
PATIENCE_SECONDS = 2.0
"""Time to reconnect before commands are refused: a server restart, a network change."""
OUTAGE_SECONDS = 60.0
"""Outage that running work survives: appends wait, and their events are kept up to `limits.PENDING_BYTES`. The failover
of a managed database takes up to a minute."""
UNKNOWN_SECONDS = 20.0
"""Time after the log has failed until waiters get an error if the outcome of their commit is unknown."""
_DISK_SECONDS = 60.0
_DISK_BYTES = 1 << 50
"""Placeholder: the size of the database's disk is unknown."""
_APPEND = f"SELECT * FROM append_packed({', '.join(f'${number}' for number in range(1, 22))})"


class _Committed(NamedTuple):
    """A batch of this host that is durable; the commits of other hosts before it are not delivered yet."""

    batch: CommittedBatch
    taken: list[Pending]
    settles: int

    @property
    def first(self) -> int:
        """The number of its first event; 0 if it only has notes."""
        return self.batch.records[0].seq if self.batch.records else 0


class PostgresLog(StoredLog):
    def __init__(
        self,
        opening: PostgresOpening,
        writer: Any,
        store: PostgresStore,
        lease: ChannelLease,
        identity: Identity,
        heads: dict[str, int],
        mark: Mark,
    ) -> None:
        super().__init__(store, identity, identity.last, heads)
        self.opening = opening
        self.lease = lease
        self.info: Callable[[], str] = lambda: "{}"
        """The host's description, stored at each renewal: its address, its load."""
        self.owns: Callable[[Channel], bool] = lambda _: True
        """Checked before an event is accepted: a channel of another host is not written here."""
        self.began: Callable[[Channel], None] = lambda _: None
        """Called for each channel that this host creates, before it is visible."""
        self.starting_seconds = 0.0
        """Minimum lease while a host starts: it loads much data and does not renew the lease during that time."""
        self.fenced: list[Callable[[], None]] = []
        """Called after another host has taken over, before anything can be written again: this host does not own its
        previous channels any more."""
        self.files_rung: Callable[[], None] = lambda: None
        """Called when another host reports a change of the files that all hosts share."""
        self.wanted: Callable[[], Iterable[Channel] | None] = lambda: None
        """Sessions of other hosts whose deltas this host needs although no follower reads them; None: all."""
        self._rows = store
        self._writer = writer
        self._address = check_url(opening.url)
        self._mark = mark
        self._mending = asyncio.Lock()
        self._mended: asyncio.Task[None] | None = None
        self._feed = asyncio.Lock()
        self._background = asyncio.Lock()
        """Held by the tasks below during a query, so that they are cancelled only between two queries."""
        self._heard = 0
        """Everything up to this number is committed."""
        self._bound = 0
        """The same when the commit in flight was sent: it has higher numbers, and its rows may be visible before its
        answer."""
        self._committed: deque[_Committed] = deque()
        self._ahead: dict[Channel, int] = {}
        """The heads of channels in `_committed`."""
        self._packs = PackReader(store, self._followed)
        self._skipped: dict[int, int] = {}
        """Sessions of other hosts whose deltas were not read, with the last position of those deltas."""
        self._expiring = 0
        """The last number at the previous renewal: packs up to it are deleted at the next one."""
        self._bell = Bell(opening.url, opening.host, self._ring, lambda: self.files_rung(), lambda: self._look())
        self._reading: asyncio.Task[None] | None = None
        self._last_committed = SharedQuestion(lambda: store.last())
        self._outage: LogUnavailable | None = None
        self._outage_began = 0.0
        self.lost_lease = False
        """Another host has taken over, and this one has not claimed a new lease yet."""
        self._used, self._measured = 0, -_DISK_SECONDS
        self._tasks = [
            self._loop.create_task(self._bell.listen(), name="log bell"),
            self._loop.create_task(self._renew(), name="log lease"),
            self._loop.create_task(self._look_often(), name="log look"),
        ]

    @classmethod
    async def open(cls, opening: PostgresOpening) -> "PostgresLog":
        address = check_url(opening.url)
        async with contextlib.AsyncExitStack() as failing:
            try:
                writer = await connect(opening.url, opening.host)
                failing.callback(writer.terminate)
                await prepare(writer)
                mark = mark_of(opening.folder)
                failing.callback(mark.close)
                identity = await identify(writer, mark)
                rows = PostgresStore(await pool(opening.url, opening.host), address, identity.salt)
                failing.push_async_callback(rows.close)
                lease = await cls._claim(writer, opening)
                # Claim the lease first: after that no other host writes to our channels while we read their heads.
                await rows.drop_wrong_packs()
                heads = await rows.heads()
                identity.last = max(identity.last, await rows.last())
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError, ValueError) as error:
                raise translate(error, address, "then start again") from error
            rows.host = lease.host
            log = cls(opening, writer, rows, lease, identity, heads, mark)
            failing.pop_all()
        return log

    @staticmethod
    async def _claim(connection: Any, opening: PostgresOpening) -> ChannelLease:
        folder = folder_of(opening.folder)
        return await claim(connection, opening.host, folder, opening.place, "{}", opening.lease_seconds)

    # -- writing -----------------------------------------------------------------------------------------------

    def journal(self, channel: Channel, key: str, data: bytes | None) -> None:
        """Store the value with a separate commit, because the next request for it may reach another host."""
        self.check_open()
        self.put_kv(channel, key, data)

    async def append_all(self, *events: tuple[Channel, Event]) -> int:
        try:
            for channel, _ in events:
                self._check_owner(channel)
        except NotOwner:
            self._notes.withdraw_bound(self._pending[-1].ticket if self._pending else 0)
            raise
        return await super().append_all(*events)

    def post(self, channel: Channel, event: Event, *, soon: bool = False) -> None:
        self._check_owner(channel)
        super().post(channel, event, soon=soon)

    def _check_owner(self, channel: Channel) -> None:
        """Raise `NotOwner` for a channel of another host. After this check only the fence can refuse the commit."""
        if channel.startswith(self.opening.owned) and self.head(channel) and not self.owns(channel):
            raise NotOwner(channel)

    def _write(self, taken: list[Pending], values: list[KeyValue], done: Done) -> None:
        self._bound = self._heard

        def tell(task: "asyncio.Task[CommittedBatch]") -> None:
            error = task.exception()
            done(None if error is not None else task.result(), error)

        self._loop.create_task(self._commit_batch(taken, values), name="log commit").add_done_callback(tell)

    async def _commit_batch(self, taken: list[Pending], values: list[KeyValue]) -> CommittedBatch:
        wholes = [pending.whole() for pending in taken]
        while True:
            ids = await self._rows.ids([*(p.channel for p in taken), *(v.channel for v in values)])
            events = [(p.channel, *whole) for p, whole in zip(taken, wholes, strict=True)]
            rows, shared = event_columns(events, ids, self._place, self._identity.salt)
            faults.reach("before-commit")
            try:
                packed = pack_columns([channel for channel, _, _ in events], rows)
                arguments = [*self._clocked(), *rows, *note_columns(values, ids), *blob_users(events, ids), *packed]
                answer = await self._submit(taken, arguments)
            except asyncpg.UniqueViolationError as error:
                channel = self._rows.channel_in(error.detail or "")
                wholes = self._give_up(taken, wholes, values, channel)
                if not taken and not values:
                    return CommittedBatch(Page(), {})
                continue
            break
        faults.reach("after-commit")
        if not events:
            return CommittedBatch(Page(), {})
        last, at, heads = answer
        places = numbers(rows[1], [ids[channel] for channel, _, _ in events], shared, last, heads)
        records = Page(
            Record(seq, channel, pos, at, data, event)
            for (seq, pos), (channel, event, data) in zip(places, events, strict=True)
        )
        for record in records:
            if record.pos == 1:
                self.began(record.channel)
        return CommittedBatch(records, {record.channel: record.pos for record in records})

    def _place(self, channel: Channel) -> int | None:
        """The head of the channel with what is not delivered yet; None if the database assigns its positions."""
        ours = channel != HOST and channel.startswith(self.opening.owned)
        return max(self.head(channel), self._ahead.get(channel, 0)) if ours else None

    def _finish(
        self, batch: CommittedBatch | None, error: BaseException | None, taken: list[Pending], settles: int
    ) -> None:
        if batch is None:
            super()._finish(batch, error, taken, settles)
            return
        self._busy = False
        if any(each.waiter is None and not each.more for each in taken):  # the first delta behind an append is not late
            self._posted_at = self._loop.time()
        self._notes.written(failed=False)
        self._committed.append(_Committed(batch, taken, settles))
        if records := batch.records:
            self._ahead.update(batch.heads)
            self._heard = max(self._heard, records[-1].seq)
            self._bell.ring(self.lease.host, records[0].seq, records[-1].seq)
        self._undelivered = len(self._committed)
        self._deliver_own()
        self._read_on()

    def _deliver_own(self) -> None:
        """Deliver the batches of this host that have no undelivered commit before them."""
        while self._committed and self._committed[0].first <= self._seq + 1:
            batch, taken, settles = self._committed.popleft()
            self._undelivered = len(self._committed)
            for channel, head in batch.heads.items():
                if self._ahead.get(channel) == head:
                    del self._ahead[channel]
            self.commits += 1
            self._settled = max(self._settled, settles)  # `_fail` may have settled everything
            self._pending_bytes = max(0, self._pending_bytes - sum(pending.size for pending in taken))
            if batch.records:
                self._deliver(*batch, taken)
            self._announce()
        if not self._committed:
            self._kick()

    def _clocked(self) -> list[Any]:
        clock = self.opening.clock
        now = int(clock() * 1000) if clock is not None else None
        return [self.lease.host, self.lease.epoch, self.lease.conn, self.lease.batch + 1, now]

    def _give_up(self, taken: list[Pending], wholes: list[Any], values: list[KeyValue], channel: Channel) -> list[Any]:
        """Refuse the pending appends to a channel that another host writes now, with all their events and bound notes;
        the rest is sent again."""
        kept: list[tuple[Pending, Any]] = []
        group: list[tuple[Pending, Any]] = []
        before = 0
        for pending, whole in zip(tuple(taken), wholes, strict=True):
            group.append((pending, whole))
            if pending.more:
                continue
            if any(each.channel == channel for each, _ in group):
                self._pending_bytes -= sum(each.size for each, _ in group)
                first = group[0][0].ticket
                values[:] = [each for each in values if not (each.bound and before < each.ticket < first)]
                waiter = group[-1][0].waiter
                if waiter is not None and not waiter.done():
                    waiter.set_exception(NotOwner(channel))
            else:
                kept += group
            group, before = [], pending.ticket
        taken[:] = [pending for pending, _ in kept]
        return [whole for _, whole in kept]

    async def _submit(self, taken: list[Pending], arguments: list[Any]) -> Any:
        """Send a commit and return its answer, even if the connection is lost."""
        while True:
            arguments[2] = self.lease.conn
            sent = not self._writer.is_closed()
            try:
                answer = await self._writer.fetchrow(_APPEND, *arguments)
            except asyncpg.UniqueViolationError:
                raise
            except Exception as error:  # asyncpg's, the socket's and TLS's have no common base
                if not is_lost(error):
                    raise self._refusal(error) from error
                answer = await self._find_out(taken, arguments, error, sent)
            if answer is not None:
                self.lease.batch += 1
                self._reached()
                self._mark.put(answer[0] or self._seq)
                return answer

    def _refusal(self, error: BaseException) -> LogUnavailable:
        refused = translate(error, self._address)
        self.lost_lease = self.lost_lease or isinstance(refused, Fenced)
        return refused

    async def _find_out(self, taken: list[Pending], arguments: list[Any], error: BaseException, sent: bool) -> Any:
        """Look up the outcome of a commit; None: it may be sent again. One that was never `sent` is not waited for."""
        began = self._loop.time()
        while True:
            try:
                done = await self._reconnect()
                break
            except Fenced as fenced:
                raise self._refusal(fenced) from error
            except LogUnavailable as away:
                waited = self._loop.time() - began
                if not sent and waited > OUTAGE_SECONDS:
                    raise
                if waited > PATIENCE_SECONDS:
                    self._unreachable(away, began)
                if (self._down is not None and waited > OUTAGE_SECONDS + UNKNOWN_SECONDS) or self._closed:
                    self._tell_unknown(taken)
                if self._closed:
                    raise
            await asyncio.sleep(0.1)
        if done == arguments[3]:
            return await self._found(arguments)
        if self._down is not None:
            raise translate(error, self._address) from error
        return None

    async def _found(self, arguments: list[Any]) -> Any:
        sql = "SELECT seq FROM batches WHERE host = $1 AND batch = $2"
        last = await self._writer.fetchval(sql, self.lease.host, arguments[3])
        count = len(arguments[5])
        places = await self._rows.places(last - count + 1, last) if count else []
        at = places[0][2] if places else 0
        return last, at, heads_of([pos for _, pos, _ in places], arguments[5], arguments[6], arguments[10])

    @staticmethod
    def _tell_unknown(taken: Iterable[Pending]) -> None:
        for pending in taken:
            if pending.waiter is not None and not pending.waiter.done():
                pending.waiter.set_exception(outcome_unknown())

    async def _reconnect(self) -> int:
        """Open a new connection for writing and return the number of our last committed batch."""
        async with self._mending:
            self._writer.terminate()
            try:
                self._writer = await connect(self.opening.url, self.opening.host)
                return await reconnect(self._writer, self.lease)
            except LogUnavailable:
                raise
            except Exception as error:  # as above
                raise translate(error, self._address) from error

    def _after_commit(self, records: Page) -> None:
        """Nothing more: `_finish` continues the reading."""

    # -- when the database is unavailable ----------------------------------------------------------------------

    @property
    def down(self) -> LogUnavailable | None:
        """Why commands are refused. Running work waits for the end of an outage, until the log fails."""
        return self._down or self._outage

    def check_answers(self) -> None:
        """Raise `LogUnavailable` during an outage: a command would wait for its end."""
        if self.down is not None:
            raise self.down.copy()

    def _unreachable(self, error: LogUnavailable, since: float | None = None) -> None:
        """Note that the database does not answer. The log fails after `OUTAGE_SECONDS`."""
        if self._outage is None:
            logger.warning("the log waits for its database: %s", error.message)
            self._outage, self._outage_began = error.copy(), since or self._loop.time()
        if self._down is None and self._loop.time() - self._outage_began >= OUTAGE_SECONDS:
            self._fail(error, [])

    def _reached(self) -> None:
        """Note that the database answers."""
        if self._outage is not None:
            logger.warning("the database answers again")
            self._outage = None
            self._announce()

    def _probe(self) -> "asyncio.Future[None]":
        self._mended = self._loop.create_task(self._mend(), name="log probe")
        return self._mended

    async def _mend(self) -> None:
        """Try to write again. Commits of other hosts are read before this host accepts writes."""
        if self._busy:
            raise LogUnavailable("A commit is still being found out.")
        if isinstance(self._down, LogTooNew):
            await self.renew_now()  # raises again while this is the case
        if self.lost_lease:
            await self._begin_anew()
        else:
            self.lease.batch = await self._reconnect()
        await self._catch_up(await self._rows.last())
        await self._submit(
            [],
            [
                *self._clocked(),
                *[[]] * 6,
                *note_columns([KeyValue(HOST, "probe", b"1")], await self._rows.ids([HOST])),
                [],
                [],
                *pack_columns([], [[]] * 5),
            ],
        )
        if self.lost_lease:
            for listener in self.fenced:
                listener()
            self.lost_lease = False

    async def _begin_anew(self) -> None:
        """Claim a new lease after a takeover: the same host with a new epoch."""
        try:
            self._writer.terminate()
            self._writer = await connect(self.opening.url, self.opening.host)
            self.lease = await self._claim(self._writer, self.opening)
        except PorticoError:
            raise
        except Exception as error:  # as above
            raise translate(error, self._address) from error

    async def _renew(self) -> None:
        lease = self.opening.lease_seconds
        while True:
            await asyncio.sleep(lease / 3)
            if self.lost_lease:
                continue
            renewing = self._loop.create_task(self.renew_now(), name="log renewal")
            try:
                if (await asyncio.wait({renewing}, timeout=max(lease, self.starting_seconds) - lease / 3))[0]:
                    renewing.result()
                else:
                    await self._fall_silent()
            except LogUnavailable as error:
                if isinstance(error, Fenced):
                    self.lost_lease = True
                logger.warning("the lease was not renewed: %s", error.message)
                if not self.lost_lease and not isinstance(error, LogTooNew):
                    self._unreachable(error)
                elif self._down is None:
                    self._fail(error, [])
            finally:
                renewing.cancel()

    async def _fall_silent(self) -> None:
        """Open new connections if a renewal gets no answer: the network lost it, or the database hangs. The lease
        expires now and others may take over; then the fence refuses the next commit."""
        self._writer.terminate()  # the outcome of a commit in flight is looked up
        self._unreachable(LogUnavailable(f"The database {self._address!r} does not answer; {GOES_ON}."))
        self._rows.use(await pool(self.opening.url, self.opening.host))

    async def renew_now(self) -> None:
        seconds = max(self.opening.lease_seconds, self.starting_seconds)
        async with self._background:
            await self._rows.with_connection(lambda connection: renew(connection, self.lease, seconds, self.info()))
            expired, self._expiring = self._expiring, self._seq
            await self._rows.expire_packs(expired)

    # -- the bell ----------------------------------------------------------------------------------------------

    def _ring(self, payload: str) -> None:
        host, _, last = payload.split(":")
        if int(host) != self.lease.host:
            self._heard = max(self._heard, int(last))
            self._read_on()

    def _readable(self) -> int:
        """How far other hosts' commits can be read now: not while ours may be among them without our knowledge."""
        own = max((each.first for each in self._committed), default=0)
        return max(self._bound, own) if self._busy else max(self._heard, own)

    async def ring_files(self) -> None:
        await self.run(lambda connection: connection.execute("SELECT pg_notify($1, '')", FILES_BELL))

    def _followed(self) -> Iterable[Channel] | None:
        followed, wanted = self._live.channels(), self.wanted()
        return None if followed is None or wanted is None else chain(followed, wanted)

    def head(self, channel: Channel) -> int:
        head = self._heads.get(channel, 0)
        return max(head, self._skipped.get(self._rows.known_ids.get(channel, 0), 0)) if self._skipped else head

    def is_partial(self, channel: Channel) -> bool:
        return bool(self._skipped) and self._rows.known_ids.get(channel) in self._skipped

    def complete(self, channel: Channel) -> None:
        end = self._skipped.pop(self._rows.known_ids.get(channel, 0), 0)
        if end:
            self._heads[channel] = max(end, self._heads.get(channel, 0))

    def _read_on(self) -> None:
        """Start reading new commits of other hosts."""
        if self._reading is None and not self._closed and self._readable() > self._seq:
            self._reading = self._loop.create_task(self._read_heard(self._readable()), name="log feed")

    async def _read_heard(self, upto: int) -> None:
        try:
            await self._catch_up(upto)
        except LogUnavailable as error:
            logger.debug("the feed: %s", error.message)
            await asyncio.sleep(PROBE_SECONDS)
        finally:
            self._reading = None
        self._read_on()

    async def _catch_up(self, upto: int) -> None:
        """Deliver everything up to this number: the commits of other hosts, and ours among them."""
        async with self._feed:
            while True:
                self._deliver_own()
                end = min(upto, self._committed[0].first - 1) if self._committed else upto
                if self._seq >= end:
                    return
                found = await self._packs.read(self._seq, end)
                self._skipped.update(found.skipped)
                if found.records:
                    self._deliver(found.records, {record.channel: record.pos for record in found.records})
                self._seq = found.upto
                self._announce()

    async def catch_up(self) -> None:
        """Wait until everything committed so far is delivered here."""
        last = await self._last_committed.answer()
        await self.seen(last)
        if self._seq < last:
            self.check_open()
            raise LogUnavailable(f"The database {self._address!r} does not answer; {GOES_ON}.")

    async def seen(self, seq: int) -> None:
        """Wait until this seq is delivered here, so that changes reported by another host can be read."""
        if self._seq < seq:
            self._heard = max(self._heard, seq)
            self._read_on()
        while self._seq < seq and self._down is None and not self._closed:
            await self._change()

    async def _look_often(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look()

    async def _look(self) -> None:
        """Poll for commits without a bell. No commit of ours runs during the poll, so all new commits are of others."""
        if self._busy or self._closed or self._down is not None:
            return
        self._busy, self._bound = True, self._heard
        try:
            async with self._background:
                last = await self._rows.last()
                if self._loop.time() - self._measured > _DISK_SECONDS:
                    self._measured, self._used = self._loop.time(), await self._rows.disk()
        except LogUnavailable as error:
            self._busy = False
            self._unreachable(error)
            self._kick()
            return
        self._busy = False
        self._reached()
        self._announce()
        self._heard = max(self._heard, last)
        self._read_on()
        self._kick()

    async def run(self, work: "Callable[[Any], Awaitable[T]]") -> T:
        """Run a query about hosts and owners on a reader connection."""
        return await self._rows.with_connection(work)

    # -- housekeeping ------------------------------------------------------------------------------------------

    def disk(self) -> DiskUse:
        """The size of the database; the free space of its disk is unknown."""
        return DiskUse(self._used, _DISK_BYTES - self._used, _DISK_BYTES)

    async def _shut(self) -> None:
        for each in self._committed:  # durable, although not delivered any more
            for pending, record in zip(each.taken, each.batch.records, strict=False):
                if pending.waiter is not None and not pending.waiter.done():
                    pending.waiter.set_result(record.seq)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._background.acquire(), 2)
        asking = (self._reading, self._mended, *self._last_committed.asking)
        tasks = {*self._tasks, *(task for task in asking if task is not None)}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=2)  # an unresponsive network does not answer a cancel, either
        try:
            await asyncio.wait_for(release(self._writer, self.lease), 2)
        except Exception as error:  # noqa: BLE001 - as above; the lease ends by itself
            logger.warning("the lease was not given back: %s", error)
        self._writer.terminate()
        self._mark.close()
        await self._rows.close()

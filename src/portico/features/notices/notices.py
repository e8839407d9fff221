"""The notice service: reads committed events, stores each notice before it is sent, and delivers them in order.

Every notice for every target is one value in the log, written in the same commit as the cursor behind its event: after
a crash nothing is lost, and nothing is made twice. What was sent when the host died is sent again under the same id.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any

import msgspec

from portico.features.notices.commands import (
    NoticeNamed,
    PushNamed,
    RedeliverNotice,
    SubscribePush,
    TestNotice,
    UnsubscribePush,
)
from portico.features.notices.notice import LOOKING_SECONDS, Delivery, Notice, NotSent, after_quiet, due, tried, wants
from portico.features.notices.push import PREFIX, PushTarget
from portico.features.notices.read import SETTLED, TOLD, read_notice, settled
from portico.features.notices.send import Gone, PushSender, Sender, Target
from portico.features.notices.subscriptions import Subscriptions
from portico.features.notices.targets import targets_of
from portico.kernel import commands as c
from portico.kernel.errors import Conflict, LogUnavailable, NotFound
from portico.kernel.events import Record
from portico.kernel.feature import Feature, handle, receive
from portico.kernel.host import Host
from portico.kernel.ownership import Access
from portico.kernel.people import HOST_OWNER
from portico.kernel.session import Session
from portico.server.settings import NoticeCommand, NoticeSettings
from portico.tasks import end_tasks

AT_ONCE = 600
"""Concurrent calls to targets that are not failing, a socket of a few KB each. If 500 of 1,000 start to hang, the
others are still called."""
AT_ONCE_FAILING = 32
"""Concurrent calls to failing targets: 500 that hang delay only each other."""
PROGRAMS_AT_ONCE = 8
"""Concurrent runs of the owner's program: a hundred sessions may end at the same time."""
WAITING = 10_000
"""Maximum number of waiting deliveries: some MB. Above it, new notices are dropped and logged as an error."""
KEPT = 1_000
"""Finished deliveries that are kept for the list."""
KEPT_DAYS = 7
_REREAD = 1_000
"""Events that a start may read again because none of them gave a notice."""
_NAP_SECONDS = 3600.0
"""The longest sleep: the clock may be set."""
_CHANNEL, _CURSOR, _KEY = "notices", "notices.cursor", "notice"


class _Cursor(msgspec.Struct):
    seq: int
    epoch: str


class _Lane:
    """The queue of notices about one session for one target, in order."""

    def __init__(self) -> None:
        self.queue: deque[Delivery] = deque()
        self.changed: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self.changed is not None and not self.changed.done():
            self.changed.set_result(None)


class Notices(Feature):
    name = "notices"
    commands = (RedeliverNotice, TestNotice, SubscribePush, UnsubscribePush)
    settings = NoticeSettings

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.viewers: Counter[str] = Counter()
        """Number of clients that follow the events of a session, by channel."""
        self.deliveries: dict[str, Delivery] = {}
        """In the order in which they were made."""
        self._settings = NoticeSettings()
        self._named: dict[str, Target] = {}
        """The targets from the settings."""
        self._targets: dict[str, Target] = {}
        self.subscriptions = Subscriptions(host, self.lock)
        self.is_token: Callable[[str], bool] = lambda _: True
        """Whether a token with this id is valid: a browser is notified while the token that subscribed it is."""
        self._base = ""
        self._sender = Sender()
        self._incoming: deque[Record] = deque()
        self._arrived = asyncio.Event()
        self._cursor = 0
        self._started = False
        self._places: dict[str, int] = {}
        self._free: list[int] = []
        self._lanes: dict[tuple[str, str], _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._failing: set[str] = set()
        self._slots = (asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(AT_ONCE_FAILING))
        self._programs = asyncio.Semaphore(PROGRAMS_AT_ONCE)
        self._follows = False

    # -- start and stop ----------------------------------------------------------------------------------------

    def configure(self, settings: NoticeSettings, base: str | None = None) -> None:
        """`base`: the address for links; the host's, when None."""
        self._settings, self._base = settings, (self.host.public_url if base is None else base).rstrip("/")
        self._named = targets_of(settings)
        self._retarget()

    def _retarget(self) -> None:
        """Update the targets after a change of the settings or the subscribed browsers."""
        began = not self._targets
        self._targets = {**self._named, **self.subscriptions.targets}
        if self._targets and not self._follows:
            self._follows = True
            self.start_receiving()
        if self._started and self._targets and began:
            self._move(self.host.log.seq)  # no target existed before: skip earlier events
        elif self._started and not self._targets:
            self.host.log.put_kv(_CHANNEL, _CURSOR, None, lazy=True)
        self._failing &= self._targets.keys()
        for lane in self._lanes.values():
            lane.wake()

    async def on_serving(self) -> None:
        await self.start()

    async def start(self) -> None:
        """Continue where the last host stopped."""
        async with self.lock:
            await self.subscriptions.load()
        self._targets = {**self._named, **self.subscriptions.targets}
        self._started = True
        self.host.members.on_held(self._take_up)
        await self._load()
        self._own(self._read(), "notices")

    def _take_up(self) -> None:
        """Reload the deliveries when this host becomes the one that sends notices: its state may be outdated."""
        for delivery in self.deliveries.values():
            delivery.state = "unneeded" if delivery.waits else delivery.state  # here, not in the log
        for lane in self._lanes.values():
            lane.wake()
        self.deliveries.clear()
        self._places.clear()
        self._own(self._load(), "notices of another host")

    async def _load(self) -> None:
        if not self.host.members.held():
            return
        for channel, data in (await self.host.log.list_kv(_KEY)).items():
            delivery = msgspec.json.decode(data, type=Delivery)
            if delivery.id not in self.deliveries:
                self._places[delivery.id] = int(channel.rpartition("/")[2])
                self.deliveries[delivery.id] = delivery
        used = set(self._places.values())
        self._free = [number for number in range(max(used, default=0)) if number not in used]
        self.deliveries = dict(sorted(self.deliveries.items(), key=lambda each: each[1].notice.time))
        for delivery in self.deliveries.values():
            if delivery.waits:
                self._queue(delivery)
        if self._targets:
            await self._catch_up()

    async def _catch_up(self) -> None:
        data = await self.host.log.get_kv(_CHANNEL, _CURSOR)
        cursor = msgspec.json.decode(data, type=_Cursor) if data is not None else None
        if cursor is None or cursor.epoch != self.host.log.epoch:
            self._move(self.host.log.seq)
            return
        self._cursor, end, found = cursor.seq, self.host.log.seq, []
        after = cursor.seq
        while after < end:
            records = await self.host.log.read_all(after=after, whole=True)
            if not records:
                break
            after = records[-1].seq
            found += [record for record in records if isinstance(record.event, (*TOLD, *SETTLED))]
        known = {record.seq for record in self._incoming}
        self._incoming.extendleft(reversed([record for record in found if record.seq not in known]))
        self._arrived.set()

    async def sweep(self) -> None:
        """Read the subscriptions again: another host on this log may have added one."""
        async with self.lock:
            if self._started and await self.subscriptions.load():
                self._retarget()

    async def forget(self, session: Session, by: str) -> None:
        """Delete the notices of a deleted session: they contain its title and questions."""
        for delivery in [each for each in self.deliveries.values() if each.notice.session == session.id]:
            delivery.state = "unneeded" if delivery.waits else delivery.state
            self._remove(delivery)
            if (lane := self._lanes.get(_lane_of(delivery))) is not None:
                lane.wake()
        await self.host.log.flush()

    async def poll(self) -> None:
        """Remove subscriptions whose token or person is gone."""
        ended = [each.name for each in self.subscriptions.targets.values() if not self._is_valid(each)]
        if self._started and ended:
            async with self.lock:
                for name in ended:
                    await self.subscriptions.remove(name)
                self._retarget()

    def _is_valid(self, target: Target) -> bool:
        return not isinstance(target, PushTarget) or not target.caller or self.is_token(target.caller)

    async def close(self) -> None:
        self._started = False
        tasks = list(self._tasks)
        await end_tasks(*tasks)
        await self._sender.close()

    def _own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = self.host.own(work, name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- from events -------------------------------------------------------------------------------------------

    @receive(later=True)
    def _committed(self, records: Sequence[Record]) -> None:
        if not (self._started and self._targets and self.host.members.held()):
            return
        for record in records:
            if isinstance(record.event, (*TOLD, *SETTLED)):
                self._incoming.append(record)
                self._arrived.set()
        if not self._incoming and records[-1].seq - self._cursor > _REREAD:
            self._move(records[-1].seq)

    def _move(self, seq: int) -> None:
        self._cursor = seq
        self.host.log.put_kv(_CHANNEL, _CURSOR, self._cursor_data(seq), lazy=True)

    def _cursor_data(self, seq: int) -> bytes:
        return msgspec.json.encode(_Cursor(seq, self.host.log.epoch))

    async def _read(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._incoming:
                record = self._incoming.popleft()
                if record.seq > self._cursor:
                    try:
                        await self._take(record)
                    except Exception:  # later events still need notices
                        self.host.logger.exception("no notice of %s", record.channel)

    async def _take(self, record: Record) -> None:
        answered = settled(record)
        if answered is not None:
            await self._settle(*answered)
        made: list[Delivery] = []
        if isinstance(record.event, TOLD):
            notice = await read_notice(self.host, record, self._base)
            made = self._deliveries(record, notice) if notice is not None else []
        if not made:
            self._move(record.seq)
            return
        await self._store(*made, cursor=record.seq)
        self._cursor = record.seq
        for delivery in made:
            self._queue(delivery)

    def _deliveries(self, record: Record, notice: Notice) -> list[Delivery]:
        looking = self._is_open(notice.session)
        if looking and not notice.ask:
            return []  # the person sees it: something ended, or a budget is nearly spent
        access = self.host.ownership.of_channel(notice.channel if notice.session else record.channel)
        targets = [each for each in self._targets.values() if wants(each, notice) and self._concerns(each, access)]
        waiting = sum(len(lane.queue) for lane in self._lanes.values())
        if targets and waiting + len(targets) > WAITING:
            self.host.logger.error("%s notices wait: nobody is told of %s", waiting, notice.about)
            return []
        first = self.host.now() + (LOOKING_SECONDS * 1000 if looking else 0)
        return [Delivery(f"notice-{record.seq}-{each.name}", each.name, notice, next=first) for each in targets]

    def _concerns(self, target: Target, access: Access) -> bool:
        """Whether the person may see it, and whether it is theirs where that is asked for."""
        if not self._is_valid(target):
            return False
        if target.sessions == "mine" and access.owner not in ((target.person,) if target.person else ("", HOST_OWNER)):
            return False
        reader = c.Caller("", target.person, frozenset({"read"}), person=target.person)
        return self.host.ownership.may(reader, access)

    @contextmanager
    def viewing(self, channels: Sequence[str]) -> Iterator[None]:
        """While a client reads these channels as they grow."""
        self.viewers.update(channels)
        try:
            yield
        finally:
            self.viewers.subtract(channels)
            self.viewers = +self.viewers

    def _is_open(self, ident: str) -> bool:
        """Whether a page or an editor shows the session."""
        session = self.host.find(ident) if ident else None
        if session is None:
            return False
        clients = session.state.clients if session.loaded else []
        return self.viewers[session.channel] > 0 or any(each.id in self.host.connected for each in clients)

    async def _settle(self, place: str, ask: str) -> None:
        found = [
            each
            for each in self.deliveries.values()
            if each.waits and each.notice.ask and each.notice.about == place
            if ask in ("", each.notice.ask)
        ]
        for delivery in found:
            delivery.state = "unneeded"
            if (lane := self._lanes.get(_lane_of(delivery))) is not None:
                lane.wake()
        if found:
            await self._store(*found)

    # -- the list ----------------------------------------------------------------------------------------------

    async def _store(self, *deliveries: Delivery, cursor: int = 0) -> None:
        """Store deliveries; durable when it returns. Retries until the disk is writable."""
        while True:
            for delivery in deliveries:
                self.deliveries[delivery.id] = delivery
                self.host.log.put_kv(self._place(delivery.id), _KEY, msgspec.json.encode(delivery))
            if cursor:
                self.host.log.put_kv(_CHANNEL, _CURSOR, self._cursor_data(cursor))
            self._prune()
            try:
                await self.host.log.flush()
                return
            except LogUnavailable:
                await self.host.log.available()

    def _place(self, ident: str) -> str:
        """The channel that stores it. Channels are reused, because the log keeps channel names forever."""
        if ident not in self._places:
            self._places[ident] = heappop(self._free) if self._free else len(self._places)
        return f"notice/{self._places[ident]}"

    def _prune(self) -> None:
        over = [each for each in self.deliveries.values() if not each.waits]
        old = self.host.now() - KEPT_DAYS * 86_400_000
        for number, delivery in enumerate(over):
            if number < len(over) - KEPT or delivery.notice.time < old:
                self._remove(delivery)

    def _remove(self, delivery: Delivery) -> None:
        del self.deliveries[delivery.id]
        self.host.log.put_kv(self._place(delivery.id), _KEY, None)
        heappush(self._free, self._places.pop(delivery.id))

    # -- delivery ----------------------------------------------------------------------------------------------

    def _queue(self, delivery: Delivery) -> None:
        lane = self._lanes.get(_lane_of(delivery))
        if lane is None:
            lane = self._lanes[_lane_of(delivery)] = _Lane()
            self._own(self._deliver(lane, _lane_of(delivery)), f"notices for {delivery.target}")
        if delivery not in lane.queue:
            lane.queue.append(delivery)

    async def _deliver(self, lane: _Lane, key: tuple[str, str]) -> None:
        while lane.queue:
            delivery = lane.queue[0]
            if await self._due(delivery, lane):
                await self._attempt(delivery)
            if not delivery.waits:
                lane.queue.remove(delivery)
        del self._lanes[key]

    async def _due(self, delivery: Delivery, lane: _Lane) -> bool:
        """Wait until the delivery is due; False: it is no longer needed."""
        while delivery.waits:
            target, now = self._targets.get(delivery.target), self.host.now()
            first = now if target is None and delivery.target.startswith(PREFIX) else due(delivery, now)
            if target is not None and not delivery.by_hand:
                first = max(first, after_quiet(target, now))
            if first <= now and self.host.members.held():
                return True
            lane.changed = asyncio.get_running_loop().create_future()
            wait = (first - now) / 1000 if first > now else 1.0
            await self.host.clock.wait(lane.changed, min(wait, _NAP_SECONDS))
        return False

    async def _attempt(self, delivery: Delivery) -> None:
        target, error, gone = self._targets.get(delivery.target), "", False
        is_program = isinstance(target, NoticeCommand)
        async with self._programs if is_program else self._slots[delivery.target in self._failing]:
            if not delivery.waits:
                return
            try:
                if target is None:
                    raise NotSent(f"The settings have no webhook or command {delivery.target!r}.")
                sender = await self._push_sender() if isinstance(target, PushTarget) else None
                await self._sender.send(delivery, target, self._settings, self.host.now(), sender)
                self._failing.discard(delivery.target)
            except NotSent as failed:
                error = str(failed)
                self._failing.add(delivery.target)
                gone = isinstance(failed, Gone) and isinstance(target, PushTarget)
            except Exception as failed:  # a bug of ours must not end the lane
                self.host.logger.exception("notice %s", delivery.id)
                error = f"{type(failed).__name__}: {failed}"
        if delivery.id not in self.deliveries:  # its session was deleted during the attempt
            delivery.state = "unneeded"
            return
        tried(delivery, self.host.now(), error)
        if gone or (target is None and delivery.target.startswith(PREFIX)):
            await self._drop(delivery)
        if delivery.state == "failed":
            self.host.logger.error("%s was given up: %s", delivery.id, error)
        await self._store(delivery)

    async def _drop(self, delivery: Delivery) -> None:
        """Remove a subscription that the browser has ended: there is no receiver to retry."""
        delivery.state = "failed"
        async with self.lock:
            await self.subscriptions.remove(delivery.target)
            self._retarget()

    async def _push_sender(self) -> PushSender:
        contact = self._settings.contact or (self._base if self._base.startswith("https:") else "")
        return PushSender(await self.subscriptions.key(), contact, self._base)

    def visible(self, caller: c.Caller) -> list[Delivery]:
        """Return the deliveries that a caller may see, oldest first. A person sees those to their own browsers, and
        those of the settings about what they may read; not those to other people, and no test of a webhook."""
        if not caller.person or caller.may("admin"):
            return list(self.deliveries.values())
        return [each for each in self.deliveries.values() if self._is_visible(each, caller)]

    def _is_visible(self, delivery: Delivery, caller: c.Caller) -> bool:
        target = self._targets.get(delivery.target)
        if delivery.target.startswith(PREFIX) or (target is not None and target.person):
            return target is not None and target.person == caller.person
        ownership, notice = self.host.ownership, delivery.notice
        return notice.kind != "test" and ownership.may(caller, ownership.of_channel(notice.channel))

    # -- commands ----------------------------------------------------------------------------------------------

    @handle
    async def _subscribe(self, command: SubscribePush, caller: c.Caller) -> PushNamed:
        """Subscribe a browser and send a first push, so that the person sees that it works."""
        target = await self.subscriptions.add(command, caller, self._settings)
        self._retarget()
        await self._send_test(target.name, caller)
        return PushNamed(target.name)

    @handle
    async def _unsubscribe(self, command: UnsubscribePush, caller: c.Caller) -> c.Done:
        await self.subscriptions.remove(command.push, caller)
        self._retarget()
        return c.Done()

    @handle
    async def _redeliver(self, command: RedeliverNotice, caller: c.Caller) -> NoticeNamed:
        delivery = self.deliveries.get(command.notice)
        if delivery is None:
            raise NotFound("notice", command.notice, "`portico notices list` shows them.")
        if delivery.target not in self._targets:
            raise Conflict(f"The settings have no webhook or command {delivery.target!r}.")
        delivery.state, delivery.next, delivery.tries = "waiting", self.host.now(), 0
        delivery.by_hand = True
        await self._store(delivery)
        self._queue(delivery)
        self._lanes[_lane_of(delivery)].wake()
        return NoticeNamed(delivery.id)

    @handle
    async def _test(self, command: TestNotice, caller: c.Caller) -> NoticeNamed:
        if command.target not in self._targets:
            names = ", ".join(self._targets) or "none"
            raise NotFound("webhook or command", command.target, f"There are: {names}.")
        return NoticeNamed(await self._send_test(command.target, caller))

    async def _send_test(self, target: str, caller: c.Caller) -> str:
        now = self.host.now()
        notice = Notice("test", f"A test, asked for by {caller.by}.", now, link=f"{self._base}/app")
        count = len(self.deliveries)
        delivery = Delivery(f"notice-test-{now}-{count}-{target}", target, notice, next=now, by_hand=True)
        await self._store(delivery)
        self._queue(delivery)
        return delivery.id


def _lane_of(delivery: Delivery) -> tuple[str, str]:
    return delivery.target, delivery.notice.about

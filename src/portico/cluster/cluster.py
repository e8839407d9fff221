"""One of several hosts on one log: what it owns, which host runs a command, and the takeover from dead hosts.

Every session, terminal, task and job has one owner: the host that wrote its first event, until another takes it over.
State can be read on every host (each folds the events that it receives from the log); commands go to the owner.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from typing import Any, TypeVar

import msgspec

from portico import __version__
from portico.cluster.claims import Claims, sent_by
from portico.cluster.forward import Forwarding, away
from portico.cluster.host_tables import EVERYTHING, HANDED, SCHEDULER, HostTables, Info, Peer, Share
from portico.cluster.link import NOT_OWNER, Asked, HostLink, Inside, Told, is_private, refusal
from portico.cluster.placement import Needs, choose, has_folder, offers, serves
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.opening import OWNED
from portico.cluster.tls import link_tls
from portico.features.jobs import commands as jc
from portico.features.jobs.secret_inputs import given_secrets
from portico.features.terminals.commands import OpenTerminal
from portico.kernel import commands as c
from portico.kernel.component import Component
from portico.kernel.errors import BadRequest, Conflict, LogUnavailable, NotFound, PorticoError, Unreachable
from portico.kernel.events import Channel
from portico.kernel.host import Host
from portico.kernel.log.log import NotOwner
from portico.kernel.members import Fetched, Forward, Member, Members, PeerAnswer
from portico.kernel.session import IDLE_SECONDS, Session
from portico.server.settings import ClusterSettings
from portico.tasks import end_tasks, settle

logger = logging.getLogger("portico.cluster")
T = TypeVar("T")

Placed = c.StartSession | jc.StartJob | OpenTerminal
"""Commands that start something in a folder."""
STRIDE = 1_000
"""Each host assigns every thousandth number, so ids are unique for up to a thousand host names on one log."""
WATCH_SECONDS = 1.0
"""Poll interval for the other hosts: far shorter than a lease."""
SHARE_SECONDS = 5.0
"""After this time any host takes what is left of a dead one: several polls, so that each has taken its share."""
SILENT = 0.45
"""A host renews its lease after a third of it. One that has not after this part of it, and has no connection to the
database, is taken over before its lease ends (see `suspect`)."""
HEAR_SECONDS = 5.0
"""Timeout of a request that waits for the commits of other hosts: it then gets 503."""


def check_link(command: c.Command, url: str, name: str) -> None:
    """Reject a job with a secret input for a host whose link others on the network could read."""
    if isinstance(command, jc.StartJob) and not is_private(url) and (found := given_secrets(command)):
        raise BadRequest(
            f"The job {command.job!r} runs on the host {name!r}, and the link to it has no TLS, so the secret input "
            f"{found[0]!r} is not sent. Set cluster.tls_cert on all hosts, start the job on {name!r}, or use 'portico "
            "secrets set' there.",
            field="inputs",
        )


class Cluster(Component, Members):
    several = True

    def __init__(self, host: Host, log: PostgresLog, settings: ClusterSettings) -> None:
        self._host = host
        self._settings = settings
        self.log = log
        self.roster = HostTables(log)
        self._claims = Claims(self)
        self.name, self.place, self.labels = log.opening.host, log.opening.place, settings.labels
        self.url = ""
        """The URL of this host for clients; set when it listens."""
        self.taken: list[Callable[[], Awaitable[Any]]] = []
        """Called when something of another host was taken over, or a host has labels that none had before."""
        self._mine: set[Channel] = set()
        self._unfinished: set[Channel] = set()
        """Owned by this host, but work in flight is not closed yet: the database became unavailable during that."""
        self._doubtful = False
        """This host may own channels that it does not know of: the answer to a takeover was lost."""
        self._before: set[Channel] | None = None
        """What this host owned until another took over; None when it is known which of these it still owns."""
        self._owners: dict[Channel, tuple[int, str]] = {}
        self.draining = False
        self.peers: list[Peer] = []
        """The hosts as of the last poll."""
        self._offered: set[tuple[int, str]] = set()
        """Pairs of host and label that were available at the last poll; fewer if a placement has failed since."""
        self._untold = False
        """Channels were adopted since `taken` was called, or that call failed."""
        self.forwarded = self._takeovers = 0
        self._holds = False
        self._on_held: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._looked = asyncio.get_running_loop().time()
        """Time of the last successful poll of the other hosts."""
        self._grace = 0.0
        """Until then this host takes over nothing: after an outage of the database that was longer than a lease, every
        lease has expired, and the other hosts get the duration of one lease to renew theirs."""
        self._dying: dict[int, float] = {}
        """When this host detected that another one is dead."""
        self._look_now = asyncio.Event()
        """Another host was just found to be dead: do not wait for the next poll."""
        self._used: dict[Channel, float] = {}
        """When a client last read a session at this host, oldest first."""
        self._watched: list[Callable[[], Iterable[Channel]]] = []
        self._asking = set[asyncio.Task[Any]]()
        """Pending requests to other hosts."""
        self._listeners: dict[str, Callable[[str], object]] = {}
        """Receivers of signals of other hosts, by topic."""
        self.link: HostLink
        host.members = self

    @classmethod
    def room(cls, log: PostgresLog, settings: ClusterSettings) -> Callable[[Host], "Cluster"]:
        return lambda host: cls(host, log, settings)

    # -- start and stop ----------------------------------------------------------------------------------------

    async def recover(self) -> None:
        """Recover before all other components: they close only what this host owns."""
        said, key = self._settings, await self.roster.key()
        self._host.commands.receipt_key = key.encode()  # before other hosts send commands
        self.link = HostLink(said.address, said.port, key, self._answer, link_tls(said), self._signalled)
        self.log.began, self.log.owns, self.log.wanted = self._began, self.owns, self._wanted
        self._mine |= await self.roster.own()
        self.log.info = self._info
        self.log.fenced.append(self._fenced)
        await self.log.renew_now()
        await self._look_at_lease()
        self._tasks.append(asyncio.get_running_loop().create_task(self._watch(), name="cluster watch"))

    def answering(self, inside: Inside) -> None:
        """Set the handler for requests of other hosts."""
        self.link.inside = inside

    def listening(self, url: str, resume_jobs: Callable[[], Awaitable[Any]]) -> None:
        self.url = url
        self.log.starting_seconds = 0.0
        self.taken.append(resume_jobs)
        self._host.own(self.log.renew_now(), "announce")

    async def close(self) -> None:
        await end_tasks(*self._tasks)

    async def close_link(self) -> None:
        await end_tasks(*self._asking)
        await self.link.close()

    def _began(self, channel: Channel) -> None:
        """Own a new channel. Channels that several hosts write also have one owner, which runs their commands."""
        self._mine.add(channel)
        if channel.startswith(OWNED) and not channel.startswith(self.log.opening.owned):
            self._host.own(self.roster.owner(channel), f"own {channel}")

    def _info(self) -> str:
        said = self._settings
        folders = [str(each) for each in self._host.workspaces]
        info = Info(self.link.url, self.url, __version__, said.labels, said.capacity, self._host.running, folders)
        return msgspec.json.encode(info).decode()

    def _fenced(self) -> None:
        """Forget what this host owns before it can write again; the database is queried for it."""
        self._before = {*(self._before or ()), *self._mine}
        self._holds = False
        self._mine.clear()
        self._owners.clear()
        self._unfinished.clear()
        self._host.own(self._begin_anew(), "begin anew")

    async def _begin_anew(self) -> None:
        """Continue after other hosts have taken over: adopt what this host still owns, and stop the rest here."""
        await self.log.available()
        if self._before is None:
            return
        epoch = self.log.lease.epoch
        await self._adopt(await self.roster.own(), epoch)
        if epoch != self.log.lease.epoch:
            return
        lost, self._before = frozenset((self._before or set()) - self._mine), None
        logger.warning("this host was taken for dead; %d of its channels have other owners", len(lost))
        for part in self._host.parts:
            await part.let_go(lost)
        for channel in lost:
            session = self._session(channel)
            if session is not None and session.runner.opened:
                await session.runner.release()

    # -- what is whose -----------------------------------------------------------------------------------------

    def owns(self, channel: Channel) -> bool:
        return not channel.startswith(OWNED) or (channel in self._mine and not self.log.lost_lease)

    async def suspect(self, channel: Channel) -> None:
        now, lease = asyncio.get_running_loop().time(), self.log.opening.lease_seconds
        if now < self._grace or now - self._looked > lease:
            return  # after an outage of the database no host has renewed its lease yet
        if await self.roster.expire_silent(channel, lease * SILENT):
            logger.warning("the host of %s has no connection to the database and has not renewed its lease", channel)
            self._look_now.set()

    def is_gone(self, name: str) -> bool:
        return not any(peer.alive and peer.name == name != self.name for peer in self.peers)

    def number_after(self, number: int) -> int:
        own = self.log.lease.host % STRIDE
        return number + 1 + (own - number - 1) % STRIDE

    async def owner(self, channel: Channel, *, fresh: bool = False) -> tuple[int, str]:
        """Return the host that owns a channel, and its place."""
        known = channel in self._mine and not self.log.lost_lease
        if known or (channel == SCHEDULER and self.held()):
            return self.log.lease.host, self.place
        if not fresh and channel in self._owners:
            return self._owners[channel]
        epoch = self.log.lease.epoch
        found = await self.roster.owner(channel)
        if found[0] == self.log.lease.host and channel == SCHEDULER:
            await self._look_at_lease()
        elif found[0] == self.log.lease.host:
            await self._adopt({channel}, epoch, handed=not self._doubtful)
        else:
            self._owners[channel] = found
        return found

    async def _adopt(self, channels: Collection[Channel], epoch: int, *, handed: bool = False) -> None:
        """Adopt channels that this host owns in that epoch, according to the database. Read all committed events first,
        then close work in flight, as after a restart. `handed`: by a host that drains, so their queues continue."""
        new = {channel for channel in channels if channel not in self._mine}
        if not new:
            return
        try:
            await self.log.catch_up()
            if epoch != self.log.lease.epoch:  # others own what they have taken since
                return
            self._mine |= new
            self._untold = True
            for channel in new:
                self._owners.pop(channel, None)
            sessions = [session for session in map(self._session, new) if session is not None]
            for part in self._host.parts:
                await part.take_over(frozenset(new))
            queued = [each for each in sessions if handed and each.summary.queued]
            idle = {each.id: each for each in queued if (await each.load()).state.active is None}
            await self._host.catalogue.close_open(each for each in sessions if each.id not in idle)
            for session in idle.values():
                self._host.own(session.go_on(), f"queue of {session.id}")
        except BaseException:  # also if the caller has stopped waiting
            self._unfinished |= new
            raise

    def _session(self, channel: Channel) -> Session | None:
        kind, _, ident = channel.partition("/")
        return self._host.catalogue.get(ident) if kind == "session" else None

    def _subject(self, command: c.Command) -> Channel | None:
        """Return the channel that a command is about; None if it has none, or one that does not exist."""
        if command.shared_by_all == "automations":
            return SCHEDULER
        about, ident = _named(command)
        if about in ("approval", "question"):
            try:
                about, ident = "session", self._host.session_of(ident)
            except NotFound:
                return None
        if about == "session":
            session = self._host.find(ident) if ident else None
            return session.channel if session is not None else None
        channel = f"{about}/{ident}"
        return channel if about in ("terminal", "job", "task") and self.log.head(channel) else None

    def held(self) -> bool:
        return self._holds and self.log.down is None and not self.log.lost_lease

    async def _look_at_lease(self) -> None:
        """Update whether this host holds the scheduler lease. A new holder first reads what the previous one wrote."""
        epoch = self.log.lease.epoch
        holds = await self.roster.holds(SCHEDULER)
        if holds and not self._holds:
            await self.log.catch_up()
        if epoch != self.log.lease.epoch:
            return
        before, self._holds = self._holds, holds
        if holds and not before:
            for listener in self._on_held:
                listener()

    def on_held(self, listener: Callable[[], None]) -> None:
        self._on_held.append(listener)

    def used(self, channel: Channel) -> None:
        self._used.pop(channel, None)
        self._used[channel] = time.monotonic()

    def watch(self, channels: Callable[[], Iterable[Channel]]) -> None:
        self._watched.append(channels)

    def _wanted(self) -> list[Channel]:
        """Return the sessions whose deltas are read here: those that clients follow or have just read."""
        since = time.monotonic() - IDLE_SECONDS
        while self._used and self._used[oldest := next(iter(self._used))] < since:
            del self._used[oldest]
        return [*self._used, *(channel for channels in self._watched for channel in channels())]

    async def catch_up(self) -> None:
        await self.log.catch_up()

    async def hear(self) -> bool:
        if self.log.down is not None:
            return False
        try:
            async with asyncio.timeout(HEAR_SECONDS):
                await self.log.catch_up()
        except LogUnavailable:
            return False
        except TimeoutError:
            words = "This host does not know yet what others have written; try again."
            raise LogUnavailable(words, retry_after=1) from None
        return True

    async def elsewhere(self, command: c.Command, caller: c.Caller) -> Forward | None:
        if caller.outside:
            self.log.check_answers()
        channel = self._subject(command)
        if channel is None and _named(command)[1]:
            await self.log.catch_up()  # another host may just have started it
            channel = self._subject(command)
        if channel is None:
            return await self._placed(command, caller) if isinstance(command, Placed) else None
        if (await self.owner(channel))[0] == self.log.lease.host:
            return None
        return Forwarding(self, command, caller, channel).send

    async def _placed(self, command: Placed, caller: c.Caller) -> Forward | None:
        """Return None if the command runs here. The other hosts are queried only if there is a reason."""
        here = [str(each) for each in self._host.workspaces]
        place = "" if isinstance(command, OpenTerminal) else command.place
        needs = Needs(place, (command.label,) if isinstance(command, c.StartSession) else ())
        at_home = not any((needs.place, *needs.labels)) and (command.cwd is None or has_folder(here, command.cwd))
        if at_home and not self.draining and self._host.running < self._settings.capacity:
            return None
        chosen = await self._choose(needs, command.cwd)
        return Forwarding(self, command, caller, "", chosen).send if chosen is not None else None

    async def _choose(self, needs: Needs, folder: str | None, *, stay: bool = False) -> Peer | None:
        """Choose a host; None: this one. `stay`: prefer this host if it meets the needs."""
        peers = await self.roster.peers()
        me = next(peer for peer in peers if peer.id == self.log.lease.host)
        me.info.running, me.info.folders = self._host.running, [str(each) for each in self._host.workspaces]
        if stay and serves(needs, me, peers):
            return None
        try:
            chosen = choose(needs, folder, me, peers)
        except PorticoError:
            self._offered &= offers(peers)  # a host that appears after this is new to what waits now
            raise
        return chosen if chosen is not me else None

    async def pass_on(
        self, command: c.Command, caller: c.Caller, place: str, labels: set[str], spread: bool, channel: Channel = ""
    ) -> Forward | None:
        needs = Needs(place, tuple(sorted(labels)), spread)
        if not place and not labels:
            return None
        folder = command.cwd if isinstance(command, Placed) else None
        chosen = await self._choose(needs, folder, stay=True)
        if chosen is None:
            return None
        if channel:
            handed = await self.roster.hand_over(channel, chosen)
            self._mine.discard(channel)  # if this host did not own it, another has taken it
            if handed:
                self._owners[channel] = (chosen.id, chosen.place)
        return Forwarding(self, command, caller, channel, None if channel else chosen).send

    async def roomiest(self) -> Peer | None:
        """Return the other host of this place with the most free capacity."""
        peers = [
            peer
            for peer in await self.roster.peers()
            if peer.alive and peer.state == "up" and peer.place == self.place and peer.id != self.log.lease.host
        ]
        room = [peer for peer in peers if peer.info.link and peer.info.running < peer.info.capacity]
        return max(room, key=lambda peer: peer.info.capacity - peer.info.running, default=None)

    async def claim(self, command: c.Command, caller: c.Caller, key: str, digest: str) -> PeerAnswer | bytes | None:
        if self._subject(command) is not None:  # only its owner runs it
            return None
        return await self._claims.claim(command, caller, key, digest)

    async def release(self, key: str, claim: bytes) -> None:
        await self._claims.release(key, claim)

    async def ask(self, peer: Peer, command: c.Command, caller: c.Caller, channel: Channel = "") -> Told:
        check_link(command, peer.info.link, peer.name)
        asking = self.link.ask(peer.info.link, command, caller, channel, self.log.lease.host)
        return await self.while_alive(peer, asking)

    def _stops(self) -> bool:
        return self._host.stopping

    async def _answer(self, asked: Asked, command: c.Command) -> Told:
        """Answer a request of another host. If this host stops, the other retries, maybe at a third host."""
        channel = asked.channel
        if self._stops():
            return Told(code=NOT_OWNER)
        try:
            check_link(command, self.link.url, self.name)  # the sender may not have had the workflow
            if channel and (await self.owner(channel, fresh=True))[0] != self.log.lease.host:
                return Told(code=NOT_OWNER)
            with sent_by(asked.sender):
                answer = await self._host.commands.do_here(command, asked.caller)
        except NotOwner:
            return Told(code=NOT_OWNER)
        except PorticoError as error:
            stopped = isinstance(error, LogUnavailable) and self._stops()
            return Told(code=NOT_OWNER) if stopped else refusal(error)
        except Exception:  # a bug here is an answer there, not a lost connection
            logger.exception("a command of another host failed")
            return Told(code="internal", message="The host that owns this failed; its log says why.")
        if not isinstance(answer, msgspec.Struct | bool | None):
            return Told(self.log.seq, "id", msgspec.Raw(msgspec.json.encode(getattr(answer, "id", ""))))
        return Told(self.log.seq, type(answer).__name__, msgspec.Raw(msgspec.json.encode(answer)))

    async def fetch(self, channel: Channel, address: str, caller: c.Caller, *, owner: bool) -> Fetched | None:
        host, place = await self.owner(channel)
        if host == self.log.lease.host or (place == self.place and not owner):
            return None
        peers = [each for each in await self.roster.peers() if each.place == place]
        there = [each for each in peers if each.alive and each.info.link and (each.id == host or not owner)]
        if not there:
            raise away(place, peers)
        chosen = next((each for each in there if each.id == host), there[0])
        return await self.while_alive(chosen, self.link.fetch(chosen.info.link, address, caller))

    async def signal(self, topic: str, data: str) -> None:
        """Call the listeners of a topic at all other live hosts. Best effort: nothing is stored or retried."""
        peers = [each for each in await self.roster.peers() if each.alive and each.id != self.log.lease.host]
        links = [each.info.link for each in peers if each.info.link]
        await settle(*(asyncio.ensure_future(self.link.signal(link, topic, data)) for link in links))

    def on_signal(self, topic: str, listener: Callable[[str], object]) -> None:
        """Call `listener` with the data when another host signals the topic."""
        self._listeners[topic] = listener

    def _signalled(self, topic: str, data: str) -> None:
        if listener := self._listeners.get(topic):
            listener(data)

    async def while_alive(self, peer: Peer, asking: Coroutine[Any, Any, T]) -> T:
        """Wait for the answer of another host, but no longer than its lease if it hangs: the fence refuses what it has
        not written by then."""
        task = asyncio.get_running_loop().create_task(asking, name=f"ask {peer.name}")
        self._asking.add(task)  # not owned by the host: while it stops, its doors still answer
        task.add_done_callback(self._asking.discard)
        try:
            while not (await asyncio.wait({task}, timeout=WATCH_SECONDS))[0]:
                with contextlib.suppress(LogUnavailable):
                    if not any(each.alive and each.id == peer.id for each in await self.roster.peers()):
                        raise Unreachable(f"The host {peer.name!r} does not answer; try again.", retry_after=1)
            return task.result()
        finally:
            task.cancel()

    # -- other hosts -------------------------------------------------------------------------------------------

    def metrics(self) -> list[tuple[str, str, str, dict[str, float]]]:
        states = Counter(peer.member(0).state for peer in self.peers)
        owned = Counter(channel.partition("/")[0] for channel in self._mine)
        return [
            ("portico_hosts", "gauge", "Hosts on this log by state.", {f'state="{k}"': v for k, v in states.items()}),
            ("portico_owned", "gauge", "What this host runs or ran.", {f'kind="{k}"': v for k, v in owned.items()}),
            ("portico_forwarded_total", "counter", "Commands that another host did.", {"": self.forwarded}),
            ("portico_taken_over_total", "counter", "Channels of hosts that were gone.", {"": self._takeovers}),
        ]

    async def all(self) -> list[Member]:
        return [peer.member(self.log.lease.host) for peer in await self.roster.peers(counted=True)]

    async def _named(self, host: str) -> Peer:
        for peer in (peers := await self.roster.peers(counted=True)):
            if host in (peer.name, str(peer.id)):
                return peer
        raise NotFound("host", host, f"The hosts: {', '.join(peer.name for peer in peers)}.")

    async def drain(self, host: str) -> Member:
        peer = await self._named(host)
        if not await self.roster.set_state(peer.id, "draining"):
            raise Conflict(f"The host {peer.name!r} is not there; give it up to end what it has.")
        peer.state = "draining"
        return peer.member(self.log.lease.host)

    async def give_up(self, host: str) -> int:
        """Take over and end what a permanently lost host had; return the number of its sessions."""
        peer = await self._named(host)
        if peer.alive:
            raise Conflict(f"The host {peer.name!r} is there; drain it, or stop it first.")
        return len([channel for channel in await self._take(peer.id) if channel.startswith("session/")])

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(WATCH_SECONDS, self.log.opening.lease_seconds / 4)):
                    await self._look_now.wait()
            self._look_now.clear()
            try:
                await self.look()
            except LogUnavailable as error:
                logger.debug("watching the other hosts: %s", error.message)
            except Exception:  # without this poll, sessions of dead hosts are not taken over
                logger.exception("watching the other hosts failed; the next look comes in a second")

    async def look(self) -> None:
        """Take over what dead hosts of this place had, and hand over idle sessions while this host drains."""
        if self.log.down is not None:
            return
        began, lease = asyncio.get_running_loop().time(), self.log.opening.lease_seconds
        if began - self._looked > lease:
            self._grace = began + lease
        if began > self._grace:
            await self._look_at_lease()
        await self._begin_anew()
        if self._unfinished:
            epoch, own = self.log.lease.epoch, await self.roster.own()
            left, self._unfinished = self._unfinished & own, set()
            self._mine -= left
            await self._adopt(left, epoch)
        for dead in await self.roster.dead() if began > self._grace else ():
            await self._take(dead, await self._share(dead))
        self.peers = await self.roster.peers()
        self.folders = [folder for peer in self.peers if peer.name != self.name for folder in peer.info.folders]
        me = next((peer for peer in self.peers if peer.id == self.log.lease.host), None)
        self.draining = me is not None and me.state == "draining"
        if self.draining:
            await self._hand_over_idle()
        elif me is not None:
            handed = await self.roster.handed() > sum(channel.startswith(HANDED) for channel in self._mine)
            if handed or self._doubtful:
                epoch = self.log.lease.epoch
                await self._adopt(await self.roster.own(), epoch, handed=not self._doubtful)
                self._doubtful = False
        before, self._offered = self._offered, offers(self.peers)
        if self._untold or self._offered - before:
            await self._tell_taken()
        self._looked = asyncio.get_running_loop().time()

    async def _share(self, dead: int) -> Share:
        """Return this host's share of what a dead host had. Hosts of this place that are up take equal shares; after
        `SHARE_SECONDS` any of them takes the rest."""
        now = asyncio.get_running_loop().time()
        since = self._dying.setdefault(dead, now)
        peers = [each for each in await self.roster.peers() if each.alive and each.place == self.place]
        ready = sorted({*(each.id for each in peers if each.state == "up"), self.log.lease.host})
        return EVERYTHING if now - since > SHARE_SECONDS else Share(len(ready), ready.index(self.log.lease.host))

    async def _take(self, dead: int, share: Share = EVERYTHING) -> list[Channel]:
        taken: list[Channel] = []
        epoch = self.log.lease.epoch
        self._doubtful = True
        while some := await self.roster.take_some(dead, share):
            await self._adopt(some, epoch)
            taken += some
        self._doubtful = False
        if taken:
            self._takeovers += len(taken)
            logger.warning("took over %d channels of host %d", len(taken), dead)
        return taken

    async def _tell_taken(self) -> None:
        """Notify the listeners of adopted channels. Retried at the next poll if it fails or has no listener yet."""
        self._untold = not self.taken
        try:
            for listener in self.taken:
                await listener()
        except BaseException:  # also a cancellation: the remaining listeners still have to be notified
            self._untold = True
            raise

    def _works(self, session: Session) -> bool:
        """Return whether a task of this host sends further prompts to the session."""
        kind, _, task = session.summary.by.partition(":")
        return kind == "task" and not session.summary.closed and self.owns(f"task/{task}")

    async def _hand_over_idle(self) -> None:
        for channel in tuple(self._mine):
            session = self._session(channel)
            if session is None or session.running is not None or session.lock.locked() or self._works(session):
                continue
            if not await self.hand_over(session) and await self.roomiest() is None:
                return

    async def hand_over(self, session: Session) -> bool:
        channel, other = session.channel, await self.roomiest()
        if other is None or not self.owns(channel):
            return False
        async with session.lock:
            await session.load()
            if not session.state.active and await self.roster.hand_over(channel, other):
                self._mine.discard(channel)
                self._owners[channel] = (other.id, other.place)
        if not self.owns(channel) and session.runner.opened:
            await session.runner.release()
        return not self.owns(channel)


def _named(command: c.Command) -> tuple[str, str]:
    """The kind and the id of what a command is about. What is opened from a session begins where that one is."""
    if isinstance(command, c.StartSession):
        return "session", (command.origin.session if command.origin else command.parent) or ""
    if isinstance(command, OpenTerminal):
        return "session", command.session or ""
    return command.about, command.subject

"""One client: its frames in, its frames out, and what it has subscribed to.

Frames are processed as they arrive. Answers to our own requests and pings are handled immediately, plain facts are
batched and appended together, and everything else is done in order by a task that exists only while there is work.
Outgoing frames wait in one queue with a limit in bytes: a client that does not keep up is closed with 1013 and
reconnects with its last number. An idle client costs one waiting task.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

from msgspec.structs import replace
from starlette.websockets import WebSocket

from portico import limits
from portico.doors.ahp.act import clients, dispatch
from portico.doors.ahp.act.action_batch import ActionBatch
from portico.doors.ahp.connection import commands
from portico.doors.ahp.connection.broker import Broker
from portico.doors.ahp.view import targets
from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire import actions, envelope, numbers, rpc
from portico.doors.ahp.wire.envelope import Act, Outgoing
from portico.doors.ahp.wire.labels import Labels, labels_of, localized
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.rpc import Incoming, WireError
from portico.doors.ahp.wire.versions import SEED
from portico.features.people.view import View
from portico.kernel import limits as kernel_limits
from portico.kernel.commands import Caller, Command
from portico.kernel.errors import NotFound, PorticoError
from portico.server.behind import not_current
from portico.server.websocket import WsProtocol, line

logger = logging.getLogger("portico.ahp")

BUG = "Something went wrong inside the host; its log says what."
TOO_SLOW = 1013
_STALLED = "This client takes nothing any more. Reconnect: nothing is lost."
REPLACED = 4001
_INBOX = 4_096
_INBOX_BYTES = 2 * limits.FRAME_BYTES
"""Messages read ahead of their handling; then reading waits, and TCP slows the client down."""
_CONCURRENT = limits.SUBSCRIPTIONS
"""Commands of one client that may run beside the ordered ones: file reads, completions, and changesets, which an editor
requests for each old turn. What they do is bounded where it is done."""
_WRITE_BYTES = 32 * kernel_limits.KIB
"""Size of one socket write: the private copy that a client which stops reading holds. Queued frames are shared."""
_ROOM_BYTES = 256 * kernel_limits.KIB
"""Bytes that may be queued for a client before producers have to wait."""
_GOODBYE_SECONDS = 5.0
"""Timeout for the close frame: queued frames have to be sent first."""
_REPLY_SECONDS = 30.0
"""How long a client may take to answer a request of ours."""


class Connection:
    __slots__ = (
        "_action_batch",
        "_aliases",
        "_as_client",
        "_asked",
        "_asks",
        "_beside",
        "_end",
        "_flushing",
        "_inbox",
        "_inbox_bytes",
        "_knows",
        "_labels",
        "_late",
        "_line",
        "_loop",
        "_main",
        "_out",
        "_out_bytes",
        "_own",
        "_room",
        "_seq",
        "_socket",
        "_stalled",
        "_working",
        "behind",
        "broker",
        "caller",
        "client_id",
        "dialect",
        "expects_drafts",
        "handlers",
        "host",
        "joined",
        "locale",
        "oldest",
        "ready",
        "shows_apps",
        "targets",
        "title",
        "view",
    )

    def __init__(self, broker: Broker, socket: WebSocket, caller: Caller) -> None:
        self.broker = broker
        self.host = broker.host
        self.caller = caller
        self.view = View(broker.host, caller)
        self.client_id = ""
        self._as_client: tuple[Caller, Caller] | None = None
        self.title = ""
        """What the client calls itself."""
        self.shows_apps = False
        """It can show pages of MCP servers."""
        self.locale = ""
        """The client's language: a BCP 47 tag, or empty."""
        self._labels: Labels = []
        self.expects_drafts = False
        """It creates a session before its user has written anything (`act/drafts.py`)."""
        self.dialect = broker.dialect(SEED)
        self.ready = False
        self.behind = False
        """Reconnecting: new records become part of the replay that is being built."""
        self.targets: dict[Target, str] = {}
        self.oldest: dict[Target, str] = {}
        """For chats that were not sent in full: the oldest turn that the client has."""
        self._late: list[tuple[Target, Outgoing]] = []
        """Actions published during a reconnect: they are sent after the answer to `reconnect`."""
        self._aliases: dict[Target, str] | None = None
        """Subscriptions under a name that differs from ours: most clients have none."""
        self.joined: set[str] = set()
        self.handlers: dict[Target, logging.Handler] = {}
        self._socket = socket
        self._line: WsProtocol = line(socket.scope)
        self._loop = asyncio.get_running_loop()
        self._action_batch: ActionBatch | None = None
        self._knows = actions.known(self.dialect)
        self._inbox: list[Incoming] = []
        self._inbox_bytes = 0
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._flushing = False
        self._stalled: asyncio.TimerHandle | None = None
        self._room: asyncio.Future[None] | None = None
        self._working = False
        self._beside: asyncio.Semaphore | None = None
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._asks = 0
        self._main: asyncio.Task[Any] | None = None
        self._end: tuple[int, str] | None = None
        self._seq = 0
        self._own = 0

    @property
    def by(self) -> str:
        return f"client:{self.client_id}"

    @property
    def action_batch(self) -> ActionBatch:
        """Actions of this client that only need to be appended."""
        if self._action_batch is None:
            self._action_batch = ActionBatch(self)
        return self._action_batch

    @property
    def as_client(self) -> Caller:
        """Who sends commands over this connection. Every action has one, so it is made once."""
        if self._as_client is None or self._as_client[0] is not self.caller:
            own = replace(self.caller, door="ahp", client=self.client_id, request="", label=self.by)
            self._as_client = (self.caller, own)
        return self._as_client[1]

    async def do(self, command: Command) -> Any:
        return await self.host.do(command, self.as_client)

    # -- the life of a connection ------------------------------------------------------------------------------

    async def run(self) -> None:
        await self.broker.open()
        await self._socket.accept()
        self._main = asyncio.current_task()
        self.broker.connections.add(self)
        self._line.on_room = self._flush
        self._line.listen(self._hear)
        try:
            await self._line.over()
        except asyncio.CancelledError:
            if self._end is None or self._main is None:
                raise
            self._main.uncancel()
            await self._close(*self._end)
        finally:
            self._leave()

    def _hear(self, data: bytes, is_text: bool) -> None:
        if self._end is not None:
            return
        try:
            if not is_text:
                raise WireError(rpc.INVALID_REQUEST, "Send text frames, one JSON-RPC message in each.")
            self._take(rpc.parse(data))
        except WireError as error:
            self.push(rpc.failure(rpc.blamed(error), error))

    def _take(self, incoming: Incoming) -> None:
        if incoming.method == "ping" and incoming.is_request:
            self.push(rpc.reply(incoming.id, None))
        elif not incoming.method:
            self._answered(incoming)
        elif self._working or not self._is_quick(incoming):
            self._inbox.append(incoming)
            self._inbox_bytes += incoming.size
            if self._inbox_bytes > _INBOX_BYTES or len(self._inbox) > _INBOX:
                self._line.pause()
            if not self._working:
                self._working = True
                self.spawn(self._work(), "work")

    def _is_quick(self, incoming: Incoming) -> bool:
        """Whether it was a plain fact, which is added to the batch immediately."""
        is_action = incoming.method == "dispatchAction" and not incoming.is_request and self.ready
        return is_action and dispatch.note(self, incoming.params)

    async def _work(self) -> None:
        try:
            while self._inbox and self._end is None:
                batch, self._inbox = self._inbox, []
                for incoming in batch:
                    if self._end is None:  # waiting messages are dropped with their client
                        await self._handle(incoming)
                    self._inbox_bytes -= incoming.size
                self._line.resume()
        finally:
            self._working = False

    def _leave(self) -> None:
        self.broker.connections.discard(self)
        self._end = self._end or (1000, "")
        self._inbox.clear()
        self._out.clear()
        self._watch_progress()
        self._tell_room()
        for target in list(self.targets):
            self.unsubscribe(target)
        for future in self._asked.values():
            if not future.done():
                future.set_exception(NotFound("client", self.client_id))
        if self.broker.clients.get(self.client_id) is self:
            del self.broker.clients[self.client_id]
            clients.left(self)
            self.broker.drafts.check()

    def end(self, code: int, reason: str) -> None:
        """Closes the socket from our side."""
        if self._end is None and self._main is not None:
            self._end = (code, reason)
            self._main.cancel()

    async def _close(self, code: int, reason: str) -> None:
        # A client that does not read cannot receive a close frame either: drop it and its queue.
        with contextlib.suppress(TimeoutError, RuntimeError, OSError):
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._socket.close(code, reason)
                await self._line.writable.wait()
        if self._line.full:
            self._line.transport.abort()

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
        return self.host.own(work, f"ahp {self.client_id} {name}")

    # -- requests and notifications ----------------------------------------------------------------------------

    async def _handle(self, incoming: Incoming) -> None:
        if incoming.method == "dispatchAction" and not incoming.is_request:
            if self.ready and not dispatch.note(self, incoming.params):
                await dispatch.dispatch(self, incoming.params)
        elif incoming.method == "unsubscribe" and not incoming.is_request:
            await self.settle()
            await self._unsubscribe_named(incoming.params)
        elif incoming.is_request:
            await self.settle()
            command = commands.find(incoming.method)
            if command is not None and command.runs_beside(incoming.params):
                self._beside = beside = self._beside or asyncio.Semaphore(_CONCURRENT)
                await beside.acquire()
                self.spawn(self._answer_beside(incoming, beside), incoming.method)
            else:
                await self._answer(incoming)

    async def _answer_beside(self, incoming: Incoming, room: asyncio.Semaphore) -> None:
        try:
            if self._end is None:  # the client may have left before it was its turn
                await self._answer(incoming)
        finally:
            room.release()

    async def _answer(self, incoming: Incoming) -> None:
        try:
            self.push(rpc.reply(incoming.id, await self._perform(incoming)))
        except PorticoError as error:
            self.push(rpc.failure(incoming.id, self._certain(error)))
        except Exception:  # a bug is answered too, without its traceback
            logger.exception("%s failed", incoming.method)
            self.push(rpc.failure(incoming.id, PorticoError(BUG)))

    async def _perform(self, incoming: Incoming) -> Any:
        """Run a command; retry when it names something that another host has just created."""
        seq = self.host.log.seq
        try:
            return await commands.perform(self, incoming)
        except NotFound:
            if not self.host.members.several or not await self.host.members.hear() or self.host.log.seq == seq:
                raise
        return await commands.perform(self, incoming)

    def _certain(self, error: PorticoError) -> PorticoError:
        several, missing = self.host.members.several, isinstance(error, NotFound)
        return not_current() if several and missing and self.host.log.down is not None else error

    async def settle(self) -> None:
        """Wait for the batched actions, so that everything is answered in order."""
        if self._action_batch is not None:
            await self._action_batch.settle()

    async def ask(self, method: str, params: Json) -> Any:
        """A request of ours to the client."""
        self._asks = ident = self._asks + 1  # never reused: a late answer must not match another request
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[ident] = future
        self.push(rpc.request(ident, method, params))
        try:
            return await asyncio.wait_for(future, _REPLY_SECONDS)
        except TimeoutError:
            raise NotFound("answer", method, "The client did not answer in time.") from None
        finally:
            del self._asked[ident]

    def _answered(self, incoming: Incoming) -> None:
        future = self._asked.get(incoming.id) if isinstance(incoming.id, int) else None
        if future is None or future.done():
            return
        if incoming.error is not None:
            code, words = incoming.error.get("code"), str(incoming.error.get("message", "refused"))
            future.set_exception(WireError(code if isinstance(code, int) else rpc.NOT_FOUND, words))
        else:
            future.set_result(incoming.result)

    # -- subscriptions -----------------------------------------------------------------------------------------

    def start(self, client_id: str, version: str) -> None:
        self.client_id = client_id
        self._as_client = None
        self.dialect = self.broker.dialect(version)
        self._knows, self._labels = actions.known(self.dialect), labels_of(self.locale)
        self.broker.clients[client_id] = self
        self.broker.away.pop(client_id, None)
        self.ready = True
        self.catch_up()

    def subscribe(self, target: Target, name: str) -> None:
        self.targets[target] = name
        if name != targets.uri_of(self.host, target, self.dialect.seed):
            self._aliases = {**(self._aliases or {}), target: name}
        self.broker.add(target, self)
        self.catch_up()

    def unsubscribe(self, target: Target) -> None:
        self.targets.pop(target, None)
        self.oldest.pop(target, None)
        if self._aliases:
            self._aliases.pop(target, None)
        self.broker.remove(target, self)
        commands.forget(self, target)

    async def _unsubscribe_named(self, params: Json) -> None:
        name = params.get("resource" if self.dialect.seed else "channel")
        for target in [target for target, named in self.targets.items() if named == name]:
            self.unsubscribe(target)
            session = self.view.find(target.ident) if target.kind in ("session", "seed") else None
            if session is not None and session.id in self.joined:  # a client without a subscription cannot run tools
                await clients.resign(self, await session.load())

    # -- what goes out -----------------------------------------------------------------------------------------

    def hear(self, seq: int, target: Target, heard: list[Act]) -> None:
        """Actions of a record, in order; what the client's version does not know is left out."""
        if not self.view.whole and not self._hears(target):
            return
        wanted = self.wanted(heard)
        if wanted:
            self._seq, self._own = max(self._seq, seq), 0
        for act in self.named(target, wanted) if self._aliases else wanted:
            self.push(act.frame)

    def _hears(self, target: Target) -> bool:
        """Check access again: a shared session may have been unshared."""
        if target.kind in ("root", "watch", "logs"):
            return True
        kind = "terminal" if target.kind == "terminal" else "session"
        return self.view.sees(f"{kind}/{target.ident.partition('/')[0]}")

    def wanted(self, acts: list[Act], behind: int = -1) -> list[Act]:
        """The actions after a number that the client's version knows and should receive."""
        knows, dialect = self._knows, self.dialect
        return [
            act
            for act in acts
            if act.number > behind
            and act.type in knows
            and (act.before is None or not dialect.since(act.before))
            and (act.since is None or dialect.since(act.since))
        ]

    def named(self, target: Target, acts: list[Act]) -> list[Act]:
        """The actions under the name that this client used to subscribe."""
        name = self._aliases.get(target) if self._aliases else None
        if name is None:
            return acts
        return [envelope.renamed(act, target.kind, name, self.dialect.seed) for act in acts]

    def catch_up(self, mark: numbers.ReadMark | None = None) -> None:
        """The client has everything up to now: from a snapshot, or from a replay after its `mark`."""
        if self.host.log.seq > self._seq:
            self._seq, self._own = self.host.log.seq, 0
        if mark is not None and mark.seq == self._seq:
            self._own = max(self._own, mark.subscription - numbers.SHARED + 1)

    def own_number(self) -> int:
        """A number for an action that only this client receives, higher than all it has received. Each record has a
        limited range of them, so they advance with the log even if this client does not receive the record."""
        if self.broker.passed > self._seq:
            self._seq, self._own = self.broker.passed, 0
        subscription = min(numbers.SHARED + self._own, numbers.SPAN - 1)
        self._own += 1
        return numbers.number(self._seq, subscription)

    def say(self, target: Target, said: Outgoing) -> None:
        """Send an action to this client only; it is not in the log."""
        if not self.view.whole and not self._hears(target):
            return
        if self.behind:
            self._late.append((target, said))
            return
        name = self.targets.get(target) or targets.uri_of(self.host, target, self.dialect.seed)
        action = envelope.ActionTarget(target.kind, name, self.dialect.seed).action(said)
        if action["type"] in self._knows:
            made = envelope.enveloped(name, action, self.own_number(), self.dialect.seed, None)
            self.push(envelope.framed(made))

    def caught_up(self) -> None:
        """The answer to a reconnect is queued: send the actions that were published in the meantime."""
        self.behind = False
        self._loop.call_soon(self._say_late)

    def _say_late(self) -> None:
        late, self._late = self._late, []
        for target, said in late:
            if target in self.targets:
                self.say(target, said)

    def echo(self, name: str, action: Json, client_seq: int, reason: str | None = None) -> None:
        """Return an action to its sender: refused (with the reason), or without any effect."""
        origin = {"clientId": self.client_id, "clientSeq": client_seq}
        made = envelope.enveloped(name, action, self.own_number(), self.dialect.seed, origin, reason)
        self.push(envelope.framed(made))

    def push(self, message: bytes) -> None:
        if self._end is not None:
            return
        if self._labels:
            message = localized(message, self._labels)
        self._out.append(message)
        self._out_bytes += len(message)
        if self._out_bytes > kernel_limits.FOLLOWER_BYTES and len(self._out) > 1:
            self._flush()  # a burst within one tick is no sign of a slow client
            if self._out_bytes > kernel_limits.FOLLOWER_BYTES:
                self._out.clear()
                self.end(TOO_SLOW, "This client fell too far behind. Reconnect: nothing is lost.")
        elif not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write the queue until the socket buffer is full; called again when there is room."""
        while self._out and not self._line.full:
            size = count = 0
            for count, message in enumerate(self._out, 1):  # noqa: B007
                size += len(message)
                if size >= _WRITE_BYTES:
                    break
            self._line.write(self._out[:count])
            del self._out[:count]
            self._out_bytes -= size
        self._flushing = bool(self._out)
        self._watch_progress()
        self._tell_room()

    def _watch_progress(self) -> None:
        """Drop a client that reads nothing for long: its queue uses memory. It can reconnect with its last number."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        if self._line.full and self._end is None:
            self._stalled = self._loop.call_later(limits.SEND_SECONDS, self.end, TOO_SLOW, _STALLED)

    async def room(self) -> None:
        """Return when the queue of this client is short, or when it has disconnected."""
        while self._out_bytes > _ROOM_BYTES and self._end is None:
            if self._room is None:
                self._room = self._loop.create_future()
            await asyncio.shield(self._room)

    def _tell_room(self) -> None:
        if self._room is not None and (self._out_bytes <= _ROOM_BYTES or self._end is not None):
            self._room.set_result(None)
            self._room = None

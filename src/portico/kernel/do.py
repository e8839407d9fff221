"""The only entry point for commands: `host.do(command, caller)`.

The order: check the scope, the guards (ownership, budgets), the rate limit, the idempotency key and the quotas; query
the preconditions; take the lock that the command declares; run the decision or the handler; append the events.
Effects follow the commit (`react.py`). Doors check no scopes and append no events: they only send commands.
"""

import asyncio
import contextlib
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from portico.kernel import commands as c
from portico.kernel import (
    limits,
    preconditions,  # noqa: F401 - sets the column `ask`
)
from portico.kernel.cache import Cache
from portico.kernel.clients import check_client
from portico.kernel.decide import decide
from portico.kernel.decide.decision import Context, Outcome
from portico.kernel.errors import BadRequest, Conflict, LogUnavailable, NotFound, PorticoError, RateLimited
from portico.kernel.events import HOST
from portico.kernel.log.log import NotOwner
from portico.kernel.members import PeerAnswer
from portico.kernel.rate import Bucket
from portico.kernel.state import Summary

if TYPE_CHECKING:
    from portico.kernel.host import Host
    from portico.kernel.ownership import Access
    from portico.kernel.session import Session

Handler = Callable[[Any, c.Caller], Awaitable[Any]]
"""Handles a command that is more than a decision about one session. The scope is already checked."""

Guard = Callable[[c.Command, c.Caller], None]
"""A check for all commands: ownership, budgets. It raises to refuse, and does no I/O."""

FeatureLock = asyncio.Lock | Callable[[Any], asyncio.Lock]
"""The lock of a feature, or a function that returns the lock for a command: of one terminal, of one folder."""


class Receipt(msgspec.Struct):
    """The stored result of a command with an idempotency key."""

    digest: str
    host: int = 0
    """Not 0: not a receipt yet, but the claim of the host that runs the command (`portico.cluster.claims`)."""
    kind: str = ""
    """The name of the answer's type."""
    answer: msgspec.Raw = msgspec.Raw(b"null")
    shown: str = ""
    """The id of the session or terminal that is the answer. A repeated request gets its current state."""


_receipt: ContextVar[Callable[[Any, str], None] | None] = ContextVar("receipt", default=None)


def note_started(session: str) -> None:
    """Add the receipt of the command that starts a session to the commit of the session's first events, so that no
    crash can separate them. Call it right before they are appended."""
    write = _receipt.get()
    if write is not None:
        write(None, session)


def note_answer(answer: Any) -> None:
    """Do the same for a command with this answer."""
    write = _receipt.get()
    if write is not None:
        write(answer, "")


_OF_SESSION = ("session", "session_and_host", "at_rest", "family")
_Planned = tuple[c.Command, c.Caller, Outcome]
_OWNERS = 3
"""Maximum number of attempts when a session moves to another host during a command."""


class Dispatcher:
    def __init__(self, host: "Host") -> None:
        self._host = host
        self._handlers: dict[type[c.Command], Handler] = {}
        self._locks: dict[type[c.Command], FeatureLock] = {}
        self._subjects: dict[str, Callable[[str], Any]] = {}
        self._guards: list[tuple[Guard, Callable[[type[c.Command]], bool]]] = []
        self._guards_of: dict[type[c.Command], list[Guard]] = {}
        self.bound: Callable[[c.Command, c.Caller], AbstractAsyncContextManager[None] | None] | None = None
        """Counts a command toward a quota while it runs, or refuses it; None: there are no quotas."""
        self.before: dict[type[c.Command], Callable[[Session], Awaitable[None]]] = {}
        """Called before a decision about a session, without a lock."""
        self._buckets = Cache[str, Bucket](limits.CALLERS)
        self.clients = Cache[str, bytes](limits.CALLERS)
        """Cache of the stored values of recent clients."""
        self._running: dict[str, tuple[str, asyncio.Task[Any]]] = {}
        """Running commands with an idempotency key: their digest and their task."""
        self.receipt_key = b""
        """Of the digests in receipts. Without it, a reader of the log could guess a secret input by its digest."""

    def handle(self, kind: type[c.Command], handler: Handler, lock: FeatureLock | None = None) -> None:
        if kind in self._handlers or kind.decide is not None:
            raise TypeError(f"{kind.__name__} has a handler already.")
        if kind.lock == "feature":
            if lock is None:
                raise TypeError(f"{kind.__name__} declares the lock of its feature: register its handler with one.")
            self._locks[kind] = lock
        self._handlers[kind] = handler

    def take(self, *handlers: Handler, lock: FeatureLock | None = None) -> None:
        """Register handlers, each for the command that its parameter `command` is annotated with."""
        for each in handlers:
            self.handle(each.__annotations__["command"], each, lock)

    def subject(self, about: c.About, find: Callable[[str], Any]) -> None:
        """Register how the subject of a command or an answer is found by its id. `find` raises if there is none."""
        self._subjects[about] = find

    def guard(self, check: Guard, applies: Callable[[type[c.Command]], bool] = lambda kind: True) -> None:
        """Register a guard. It runs before the commands that it applies to, after the scope check, in the order of
        registration."""
        self._guards.append((check, applies))
        self._guards_of.clear()

    def _admit(self, command: c.Command, caller: c.Caller) -> None:
        caller.require(command.scope)
        if caller.person:
            self._host.ownership.check(command, caller)
        checks = self._guards_of.get(type(command))
        if checks is None:
            checks = [check for check, applies in self._guards if applies(type(command))]
            self._guards_of[type(command)] = checks
        for check in checks:
            check(command, caller)

    # -- one command -------------------------------------------------------------------------------------------

    async def do(self, command: c.Command, caller: c.Caller) -> Any:
        self._admit(command, caller)
        if command.limited:
            self._charge(caller)
        if caller.request or self.bound is not None or self._host.members.several:
            return await self.do_at_owner(command, caller)
        return await self._run(command, caller)

    async def do_at_owner(self, command: c.Command, caller: c.Caller) -> Any:
        """Run the command here, or at the host that owns its session."""
        for _ in range(_OWNERS):
            elsewhere = await self._host.members.elsewhere(command, caller)
            if elsewhere is not None:
                return await elsewhere()
            try:
                return await self.do_here(command, caller)
            except NotOwner as error:  # another host took over, and nothing was written
                moved = error
        raise moved

    async def do_here(self, command: c.Command, caller: c.Caller) -> Any:
        """Run locally. The caller is already authorized, possibly by another host."""
        if caller.request:
            return await self._once(command, caller)
        return await (self._run if self.bound is None else self._perform)(command, caller)

    async def _perform_once(self, command: c.Command, caller: c.Caller, receipt: str, digest: str) -> Any:
        key, members = RECEIPTS + receipt, self._host.members
        claim = await members.claim(command, caller, key, digest)
        if isinstance(claim, PeerAnswer):
            return claim.answer
        data = await self._host.log.get_kv(HOST, key) if claim is None else None
        known = msgspec.json.decode(data, type=Receipt) if data is not None else None
        if known is not None and not known.host:
            plain = hashlib.sha256(c.encode_command(command)).hexdigest()[:32]  # receipts of 0.2 have no key
            _check_same(known.digest, plain if len(known.digest) == len(plain) else digest)
            return await self._answer_again(command, known)
        try:
            return await self._perform(command, caller, receipt)
        except Exception as error:  # also for a bug: a receipt that waits for its commit must not be written
            self._host.log.withdraw_kv(HOST, key)
            if claim is not None and not isinstance(error, LogUnavailable):  # its commit may still be written
                await members.release(key, claim)
            raise

    async def _perform(self, command: c.Command, caller: c.Caller, receipt: str = "") -> Any:
        held = self.bound(command, caller) if self.bound is not None else None
        async with held or contextlib.nullcontext():
            return await self._run(command, caller, receipt)

    async def _run(self, command: c.Command, caller: c.Caller, receipt: str = "") -> Any:
        handler = self._handlers.get(type(command))
        if handler is not None:
            session = await self._subject_session(command) if command.lock in _OF_SESSION else None
            async with self._locked(command, session, caller.by):
                return await self._hand(handler, command, caller, receipt)
        if type(command).decide is None:
            raise Conflict(f"This host does not take {command.__struct_config__.tag!r}.")
        if command.lock == "host":
            return await self._decide_host(command, caller, receipt)
        if isinstance(command, c.JoinSession | c.LeaveSession):
            await check_client(self._host, command.client, caller, takes=isinstance(command, c.JoinSession))
        if isinstance(command, c.AboutSession):
            session = await self._host.get(command.session)
        else:
            session = await self._subject_session(command)
        if (before := self.before.get(type(command))) is not None:
            await before(session)
        found = await type(command).ask(session, command) if type(command).ask is not None else None
        async with session.lock if command.lock == "session" else self._locked(command, session, caller.by):
            if not session.loaded:
                await session.load()
            decision = await self._decide(session, command, caller, found, receipt)
        if command.waits:
            await session.settle()
        if decision.offer:
            taken = await session.queue.offer(decision.offer, caller.by)
            return c.Steered(taken, not taken)
        return session.summary if decision.answer is None else decision.answer

    async def _subject_session(self, command: c.Command) -> "Session":
        about, ident = command.about, command.subject
        return await self._host.get(self._host.session_of(ident) if about in ("approval", "question") else ident)

    def _locked(self, command: c.Command, session: "Session | None", by: str) -> AbstractAsyncContextManager[Any]:
        """Return the lock that the command declares: what it reads must still be valid when it writes."""
        match command.lock:
            case "session" if session is not None:
                return session.lock
            case "session_and_host" if session is not None:
                return _all(session.lock, self._host.shared.lock)
            case "family" if session is not None:  # always in this order, to prevent deadlocks
                return _all(*(each.lock for each in sorted(session.family(), key=lambda each: each.id)))
            case "at_rest" if session is not None:
                return session.at_rest(by)
            case "host":
                return self._host.shared.lock
            case "feature":
                lock = self._locks[type(command)]
                return lock if isinstance(lock, asyncio.Lock) else lock(command)
        return contextlib.nullcontext()

    async def _hand(self, handler: Handler, command: c.Command, caller: c.Caller, receipt: str) -> Any:
        if not receipt:
            return await handler(command, caller)
        noted = False

        def write(answer: Any, shown: str) -> None:
            nonlocal noted
            if noted:  # by a task that the command has started: it inherits the context
                return
            noted = True
            self._remember(receipt, command, answer, shown, bound=True)

        token = _receipt.set(write)
        try:
            answer = await handler(command, caller)
        finally:
            _receipt.reset(token)
        if not noted:
            noted = True
            self._remember(receipt, command, answer)
            await self._host.log.flush()
        return answer

    async def _decide(
        self, session: "Session", command: c.Command, caller: c.Caller, found: Any, receipt: str
    ) -> Outcome:
        context = self.context(session, caller, found)
        if command.lock == "session_and_host":
            context = replace(context, shared=self._host.shared.state())
        decision: Outcome = type(command).decide(session.state, command, context)
        if receipt:
            # In the same commit as its events.
            shown = "" if decision.answer is not None else session.id
            self._remember(receipt, command, decision.answer, shown, bound=bool(decision.events))
        if decision.events or decision.host_events:
            await self._append(session, decision)
        elif receipt:
            await self._host.log.flush()
        return decision

    async def _decide_host(self, command: c.Command, caller: c.Caller, receipt: str) -> Any:
        """Decide a command about the state that all sessions share."""
        async with self._locked(command, None, caller.by):
            decision: Outcome = type(command).decide(self._host.shared.state(), command, Context(caller, str))
            if receipt:
                self._remember(receipt, command, decision.answer, bound=bool(decision.host_events))
            await self._append(None, decision)
            if receipt and not decision.host_events:
                await self._host.log.flush()
        return decision.answer

    async def _append(self, session: "Session | None", *decisions: Outcome) -> None:
        """Append the events of all decisions in one commit."""
        shared = [event for each in decisions for event in each.host_events]
        events = [(session.channel, event) for each in decisions for event in each.events] if session else []
        events += [each for decision in decisions for each in decision.others]
        events += [(HOST, event) for event in shared]
        if shared:
            with self._host.shared.noted(shared):
                await self._host.log.append_all(*events)
        elif events:
            await self._host.log.append_all(*events)

    def context(self, session: "Session", caller: c.Caller, found: Any = None) -> Context:
        host, running = self._host, self._host.turns.get(session.id)
        withdrawn = running is not None and running.withdrawn
        full = host.disk.full() or (session.full() if session.size > limits.SESSION_BYTES else "")
        root = session.summary if session.summary.parent is None else host.root(session).summary
        who = host.ownership.within(caller, host.ownership.of_session(session)) if caller.person else caller
        rest = session.resting > 0
        return Context(who, session.new_id, len(host.turns), host.stopping, withdrawn, found, full, root.owner, rest)

    async def check_subject(self, kind: type[c.Command], ident: str, caller: c.Caller) -> None:
        """Raise if the id does not exist or the caller may not see it. Callers get this error before errors in other
        fields."""
        if caller.person:
            self._host.ownership.check_seen(kind, ident, caller)
        match kind.about:
            case "session":
                await self._host.get(ident)
            case "approval" | "question":
                self._host.session_of(ident)
            case "grant" if ident not in self._host.grants:
                raise NotFound("grant", ident)
            case other if other in self._subjects:
                self._subjects[other](ident)

    def _charge(self, caller: c.Caller) -> None:
        if not caller.id:
            return  # a command of the host
        bucket = self._buckets.get(caller.id)
        if bucket is None:  # the oldest entry is evicted
            bucket = self._buckets[caller.id] = Bucket(limits.REQUESTS_PER_SECOND, limits.REQUEST_BURST)
        wait = bucket.take(time.monotonic())
        if wait > 0:
            raise RateLimited("Too many requests with this token.", retry_after=wait)

    # -- batches -----------------------------------------------------------------------------------------------

    async def do_all(self, session: "Session", commands: Sequence[tuple[c.Command, c.Caller]]) -> AsyncIterator[Any]:
        """Run plain commands about one loaded session, in one append unless one is refused, and yield their answers in
        order. The error of a refused command is yielded as its answer; the other commands still run."""
        planned: list[_Planned] = []
        ground: tuple[Context, Access] | None = None  # shared by all commands of the batch
        for command, caller in commands:
            try:
                self._admit(command, caller)
                if not command.plain:
                    raise TypeError(f"{type(command).__name__} is not a plain command.")
                counted = self.bound is not None and self.bound(command, caller) is not None
                if self._host.members.owns(session.channel) and not counted:
                    ground = ground or (self.context(session, caller), self._host.ownership.of_session(session))
                    within = self._host.ownership.within(caller, ground[1])
                    planned.append((command, caller, decide(session.state, command, replace(ground[0], caller=within))))
                    continue
                refused = None
            except PorticoError as error:
                refused = error
            async for each in self._write(session, planned):
                yield each
            planned, ground = [], None
            yield refused or await self._try_at_owner(command, caller)
        async for each in self._write(session, planned):
            yield each

    async def _write(self, session: "Session", planned: Sequence[_Planned]) -> AsyncIterator[Any]:
        try:
            await self._append(session, *(outcome for _, _, outcome in planned))
            answers = [outcome.answer for _, _, outcome in planned]
        except NotOwner:  # another host took over, and nothing was written
            answers = [await self._try_at_owner(command, caller) for command, caller, _ in planned]
        except PorticoError as error:
            answers = [error] * len(planned) if len(planned) == 1 or self._host.log.down is not None else []
        for answer in answers:
            yield answer
        for each in planned[len(answers) :]:  # one of them cannot be written: append each separately
            async for answer in self._write(session, [each]):
                yield answer

    async def _try_at_owner(self, command: c.Command, caller: c.Caller) -> Any:
        """Return the answer or the error."""
        try:
            return await self.do_at_owner(command, caller)
        except PorticoError as error:
            return error

    # -- idempotency -------------------------------------------------------------------------------------------

    async def _once(self, command: c.Command, caller: c.Caller) -> Any:
        """The first request with this id runs the command; the others get its answer, also concurrent ones."""
        if command.secret:
            raise BadRequest("What this command is about must not be kept: send it without an id.", field="id")
        if len(caller.request) > limits.REQUEST_ID_CHARS:
            raise Conflict(f"The id of a command has at most {limits.REQUEST_ID_CHARS} characters.", field="id")
        who = caller.id or caller.by  # commands of the host have no token
        name = hashlib.sha256(f"{who}\0{caller.client}\0{caller.request}".encode()).hexdigest()[:32]
        digest = self._digest(command)
        running = self._running.get(name) or self._begin(command, caller, name, digest)
        _check_same(running[0], digest)
        try:
            return await asyncio.shield(running[1])
        except asyncio.CancelledError:
            caller_ends = (own := asyncio.current_task()) is not None and own.cancelling() > 0
            if running[1].cancelled() and self._host.stopping and not caller_ends:
                raise LogUnavailable("The host is stopping; try again.", retry_after=1) from None
            raise

    def _begin(self, command: c.Command, caller: c.Caller, name: str, digest: str) -> tuple[str, "asyncio.Task[Any]"]:
        task = self._host.own(self._perform_once(command, caller, name, digest), f"command {name}")
        task.add_done_callback(lambda _: self._running.pop(name, None))
        self._running[name] = (digest, task)
        return digest, task

    async def _answer_again(self, command: c.Command, receipt: Receipt) -> Any:
        if not receipt.shown:
            return msgspec.json.decode(receipt.answer, type=c.answer_types().get(receipt.kind, bool))
        await self._host.members.catch_up()  # another host may have created it
        if command.shows in self._subjects:
            return self.shown(command, receipt.shown)
        return (await self._host.get(receipt.shown)).summary

    def shown(self, command: c.Command, ident: str) -> Any:
        """Return the subject with this id, for answers that are not plain data."""
        return self._subjects[command.shows](ident)

    def _digest(self, command: c.Command) -> str:
        return hmac.digest(self.receipt_key, c.encode_command(command), "sha256").hex()

    def _remember(self, name: str, command: c.Command, answer: Any, shown: str = "", *, bound: bool = False) -> None:
        receipt = Receipt(self._digest(command), shown=shown)
        if isinstance(answer, Summary) or (command.gives is None and command.shows in self._subjects):
            receipt.shown = answer.id
        elif not shown:
            receipt.kind, receipt.answer = type(answer).__name__, msgspec.Raw(msgspec.json.encode(answer))
        self._host.log.put_kv(HOST, RECEIPTS + name, msgspec.json.encode(receipt), bound=bound)


@contextlib.asynccontextmanager
async def _all(*locks: asyncio.Lock) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as stack:
        for lock in locks:
            await stack.enter_async_context(lock)
        yield


RECEIPTS = "done/"


def _check_same(first: str, digest: str) -> None:
    if first != digest:
        raise Conflict("This id was used for another command.", field="id")

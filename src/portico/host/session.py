"""One conversation: its commands. Each checks, appends, and only then acts; the state follows from the log.

Commands on one session take its lock, so what a command has checked still holds when it appends. Reports of a running
turn need no lock: they only add.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import msgspec

from portico import events as e
from portico import limits
from portico.errors import BadRequest, Conflict, LogUnavailable, NotFound, SessionClosed, TooLarge, TurnInProgress
from portico.events import ErrorInfo, Json, Message, Outcome, Record, ToolSpec
from portico.host.approval import Approvals
from portico.host.changes import Captures
from portico.host.config import check as check_config
from portico.host.fold import closing, fold
from portico.host.folders import Folders
from portico.host.question import Questions
from portico.host.queue import Queue
from portico.host.runner import Runner
from portico.host.state import ChangeList, SessionState, Summary, TurnState, summarise
from portico.host.tools import SessionTools
from portico.host.turn import Turn

if TYPE_CHECKING:
    from portico.host.host import Host

SNAPSHOT = "snapshot"
SUMMARY = "summary"
_BEGINNINGS = (e.TurnStarted, e.TurnResumed)


class Session:
    def __init__(self, host: "Host", ident: str, state: SessionState | None, summary: Summary | None = None) -> None:
        self.host = host
        self.id = ident
        self.channel = f"session/{ident}"
        self.lock = asyncio.Lock()
        self.approvals = Approvals(self)
        self.questions = Questions(self)
        self.queue = Queue(self)
        self.tools = SessionTools(self)
        self.captures = Captures(self)
        self.folders = Folders(self)
        self.runner = Runner(self)
        self._state = state
        self._summary = summary or summarise(state or SessionState(ident))
        self._loading: asyncio.Task[None] | None = None
        self._ids = state.ids if state else 0
        self._snapshot_pos = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._resting = 0
        self._launch: tuple[str, Message, bool] | None = None
        self.used_at = 0.0

    # -- state -------------------------------------------------------------------------------------------------

    @property
    def state(self) -> SessionState:
        assert self._state is not None, f"{self.id} is not loaded"
        return self._state

    @property
    def loaded(self) -> bool:
        return self._state is not None

    @property
    def summary(self) -> Summary:
        return self._summary

    @property
    def running(self) -> Turn | None:
        return self.host.turns.get(self.id)

    async def load(self) -> "Session":
        """Makes the state available: the stored snapshot and the events behind it."""
        if self._state is None:
            if self._loading is None:
                self._loading = self.host.own(self._load(), f"load {self.id}")
            await asyncio.shield(self._loading)
        return self

    async def _load(self) -> None:
        try:
            data = await self.host.log.get_kv(self.channel, SNAPSHOT)
            state = msgspec.json.decode(data, type=SessionState) if data else SessionState(self.id)
            self._snapshot_pos = state.pos
            while True:
                records = await self.host.log.read(self.channel, state.pos, limits.READ_EVENTS)
                for record in records:
                    fold(state, record)
                if not records:
                    break
            state.pos = max(state.pos, self.host.log.head(self.channel))
            self._state = state
            self._ids = state.ids
        finally:
            self._loading = None

    def unload(self) -> None:
        """Frees the memory of an idle session; the next command loads it again."""
        if self.running is None and not self.lock.locked() and not self._waiters:
            self._state = None

    def apply(self, records: list[Record]) -> None:
        """Committed records arrive here first, before any reader has them."""
        if self._state is None:
            return
        changed = False
        for record in records:
            fold(self._state, record)
            self._settle(record.event)
            changed = changed or not isinstance(record.event, e.Delta)
        if changed:
            self._summary = summarise(self._state)
            self.host.log.put_kv(self.channel, SUMMARY, msgspec.json.encode(self._summary))
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self.host.changed(self)

    def _settle(self, event: e.Event) -> None:
        if isinstance(event, e.ApprovalAnswered):
            self.approvals.settle(event)
        elif isinstance(event, e.QuestionAnswered):
            self.questions.settle(event)
        elif isinstance(event, _BEGINNINGS) and self._launch is not None:
            self._begin(*self._launch)
        elif isinstance(event, e.TurnEnded):
            self._forget(event.turn)

    def refresh_summary(self) -> None:
        """After a load at start: the stored summary may be older than the events."""
        self._summary = summarise(self.state)
        self.host.log.put_kv(self.channel, SUMMARY, msgspec.json.encode(self._summary))

    def new_id(self, prefix: str) -> str:
        # Ids that clients and agents chose may look like ours: stay above those too.
        self._ids = max(self._ids, self._state.ids if self._state else 0) + 1
        return f"{prefix}{self._ids}"

    async def append(self, *events: e.Event) -> int:
        return await self.host.log.append(self.channel, *events)

    def post(self, event: e.Event) -> None:
        """For reports of a running turn. When the log is down the turn is about to fail anyway, and says so."""
        try:
            self.host.log.post(self.channel, event)
        except LogUnavailable as error:
            self.runner.fail(error)

    # -- plain facts -------------------------------------------------------------------------------------------

    async def rename(self, title: str, *, by: str) -> None:
        await self._record(e.SessionRenamed(title=checked_title(title), by=by))

    async def set_model(self, model: str, *, by: str, config: Json | None = None) -> None:
        """Takes effect with the next turn."""
        await self.host.check_model(self.state.agent, model)
        await self._record(e.SessionModel(model=model, by=by, config=config or {}))

    async def configure(self, values: Json, *, by: str, replace: bool = False) -> None:
        check_config(values)
        await self._record(e.SessionConfigured(values=values, by=by, replace=replace))

    async def archive(self, archived: bool, *, by: str) -> None:
        await self._record(e.SessionArchived(archived=archived, by=by))

    async def mark_read(self, read: bool, *, by: str) -> None:
        if self.state.read is not read:
            await self._record(e.SessionRead(read=read, by=by))

    async def join(self, client: str, name: str, tools: list[ToolSpec], meta: Json | None = None) -> None:
        await self._record(e.ClientJoined(client=client, name=name, tools=tools, meta=meta or {}))
        self.runner.refresh()

    async def leave(self, client: str, *, by: str = "") -> None:
        if any(each.id == client for each in self.state.clients):
            await self._record(e.ClientLeft(client=client, by=by))
            self.runner.refresh()

    async def keep(self, key: str, value: Json | None, *, by: str, action: Json | None = None) -> None:
        """Something that only clients understand, shared by them through us."""
        await self._record(e.ClientKept(key=key, value=value, by=by, action=action or {}))

    async def _record(self, event: e.Event) -> None:
        """Plain facts need no lock: nothing was checked that another command could make untrue."""
        await self.append(event)

    # -- turns -------------------------------------------------------------------------------------------------

    async def send(
        self,
        message: Message,
        *,
        by: str,
        turn: str | None = None,
        queue: bool = True,
        pending: str | None = None,
        blank: bool = False,
    ) -> str:
        """Starts a turn and returns its id, or queues the message and returns the id of the queued one.

        With `queue=False` a running turn is a refusal (`TurnInProgress`), and a waiting queue waits on; `pending`
        names the queued message that becomes this turn; with `blank` the agent decides what no text means."""
        check_message(message, blank=blank)
        if message.model is not None:
            await self.host.check_model(self.state.agent, message.model)
        async with self.lock:
            self.check_open()
            if turn is not None and self.state.turn(turn) is not None:
                raise Conflict(f"There is a turn {turn!r} already.")
            if pending is not None and self.state.pending(pending) is None:
                raise NotFound("queued message", pending)
            if self.state.active is None and (not queue or not self.state.queue):
                self.host.check_room()
                return await self._start(message, by, turn, pending)
            if not queue:
                raise TurnInProgress(f"A turn is running in {self.id!r}; queue the message or wait.")
            waiting = await self.queue.add_locked(message, "queue", by)
            if self.state.active is None:
                await self._start_next()
            return waiting

    async def resume(self, *, by: str, turn: str | None = None) -> str:
        """The last turn failed or was interrupted: it goes on where it stopped, with all it has said."""
        async with self.lock:
            self.check_open()
            last = self.state.turns[-1] if self.state.turns else None
            if last is None or not last.resumable or (turn is not None and last.id != turn):
                raise Conflict("Only the last turn can be resumed, and only if it failed or was interrupted.")
            self.host.check_room()
            await self._launching(last.id, last.message, e.TurnResumed(turn=last.id, by=by))
            return last.id

    async def cancel(self, *, by: str, turn: str | None = None) -> None:
        """Stops the running turn; returns when it has ended. What it said so far stays."""
        running = self.running
        if running is None or (turn is not None and running.id != turn):
            what = f"turn {turn!r} is not running" if turn else "no turn is running"
            raise Conflict(f"In {self.id!r} {what}.")
        await self.runner.cancel(by)

    async def truncate(self, turn: str | None, *, by: str) -> None:
        """Forgets everything after that turn (everything, when None). A running turn is cancelled first."""
        if turn is not None and self.state.turn(turn) is None:
            raise NotFound("turn", turn)
        async with self._at_rest(by):
            await self.append(e.SessionTruncated(turn=turn, by=by))
        await self.runner.forget()
        await self.go_on()

    async def close(self, *, by: str, reason: str = "") -> None:
        """Cancels what runs and releases the agent. The history and the queue stay; `reopen` takes them up again."""
        async with self._at_rest(by):
            if not self.state.closed:
                await self.append(e.SessionClosed(by=by, reason=reason))
        await self.runner.release()

    @contextlib.asynccontextmanager
    async def _at_rest(self, by: str) -> AsyncIterator[None]:
        """With the lock, when nothing runs any more; the queue starts nothing meanwhile."""
        self._resting += 1
        try:
            while True:
                if self.running is not None:
                    await self.runner.cancel(by)
                async with self.lock:
                    if self.state.active is None:
                        yield
                        return
                await asyncio.sleep(0)  # somebody started a turn in between
        finally:
            self._resting -= 1

    async def reopen(self, *, by: str) -> None:
        async with self.lock:
            if self.state.closed:
                await self.append(e.SessionReopened(by=by))

    async def wait(self, turn: str) -> TurnState:
        """Returns the turn when it has ended."""
        state = await self.wait_until(lambda state: _ended(state.turn(turn)))
        ended = state.turn(turn)
        if ended is None:
            raise NotFound("turn", turn)
        return ended

    async def wait_until(self, condition: Callable[[SessionState], bool]) -> SessionState:
        """Returns when the condition holds for the committed state; deltas alone do not wake it."""
        while True:
            await self.load()
            if condition(self.state):
                return self.state
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    # -- what it changed ---------------------------------------------------------------------------------------

    async def changes(self, turn: str | None = None) -> ChangeList:
        """Files that differ between a turn's start and its end, or over all turns; up to now while it runs."""
        await self.load()
        return await self.captures.list(turn)

    async def diff(self, path: str | None = None, turn: str | None = None) -> str:
        """The same as a unified diff, of one file or of all."""
        await self.load()
        return await self.captures.diff(path, turn)

    # -- how turns begin and end (the lock is held) ------------------------------------------------------------

    async def _start(self, message: Message, by: str, turn: str | None = None, pending: str | None = None) -> str:
        ident = turn or self.new_id("t")
        events: list[e.Event] = [e.TurnStarted(turn=ident, message=message, by=by, pending=pending)]
        if not self.state.title:
            events.append(e.SessionRenamed(title=title_of(message.text), by="host"))
        await self._launching(ident, message, *events)
        return ident

    async def _launching(self, ident: str, message: Message, *events: e.Event) -> None:
        """The turn begins with the commit of its first event, whatever becomes of the caller meanwhile."""
        self._launch = (ident, message, isinstance(events[0], e.TurnResumed))
        try:
            await self.append(*events)
        finally:
            self._launch = None

    async def _start_next(self) -> None:
        """The first of the queue becomes a turn; messages meant for steering go first."""
        queue = self.state.queue
        following = next((p for p in queue if p.kind == "steer"), queue[0] if queue else None)
        if following is not None:
            await self._start(following.message, following.by, pending=following.id)

    def _begin(self, ident: str, message: Message, resumed: bool) -> None:
        self.runner.start(self.adopt(ident, message), resumed)

    def adopt(self, ident: str, message: Message) -> Turn:
        """The turn that runs from now on. On its own: one that another session's agent drives (a sub-agent)."""
        turn = self.host.turns[self.id] = Turn(self, ident, message)
        return turn

    def _forget(self, turn: str) -> None:
        if self.running is not None and self.running.id == turn:
            del self.host.turns[self.id]

    async def go_on(self) -> None:
        """After a turn: the next of the queue, unless the queue is held or somebody was faster."""
        while True:
            try:
                await self.load()
                async with self.lock:
                    state = self.state
                    free = state.active is None and not self._resting and not self.host.stopping
                    if free and state.queue and not state.queue_held and not state.closed:
                        await self._start_next()
                return
            except LogUnavailable:
                await self.host.log.available()

    async def end_turn(self, turn: Turn, outcome: Outcome, error: ErrorInfo | None = None, by: str = "agent") -> None:
        """Gives the turn and everything open in it exactly one end, also when the caller is cancelled meanwhile."""
        if turn.live:
            turn.close_part()
            turn.live = False
            ending = self._end(turn, outcome, error, by)
            await asyncio.shield(self.host.own(ending, f"end {self.id}/{turn.id}"))

    async def _end(self, turn: Turn, outcome: Outcome, error: ErrorInfo | None, by: str) -> None:
        """Waits for the disk as long as it takes."""
        for child in turn.children:
            await child.session.end_turn(child, "cancelled" if outcome == "completed" else outcome, error, by)
        self.approvals.abandon()
        self.questions.abandon()
        while True:
            try:
                await self.host.log.flush()
                async with self.lock:
                    active = self.state.active
                    if active is not None and active.id == turn.id:
                        end = e.TurnEnded(turn=turn.id, outcome=outcome, error=error, by=by)
                        await self.append(*closing(self.state, outcome, by), end)
                    self._forget(turn.id)
                break
            except LogUnavailable:
                await self.host.log.available()
        self._keep_snapshot()

    def _keep_snapshot(self) -> None:
        """Each time the history has grown by a quarter: opening stays quick, and writing stays linear."""
        pos = self.state.pos
        if pos - self._snapshot_pos >= max(100, self._snapshot_pos // 4):
            self._snapshot_pos = pos
            self.host.log.put_kv(self.channel, SNAPSHOT, msgspec.json.encode(self.state))

    def check_open(self) -> None:
        if self.state.closed:
            raise SessionClosed(f"The session {self.id!r} is closed; reopen it first.")


def check_message(message: Message, *, blank: bool = False) -> None:
    if not blank and not message.text.strip() and not message.attachments:
        raise BadRequest("A message needs some text.", field="text")
    try:
        size = len(msgspec.json.encode(message))
    except (TypeError, ValueError) as error:
        raise BadRequest(f"The message is not valid: {error}.", field="text") from error
    if size > limits.MESSAGE_BYTES:
        raise TooLarge(f"The message has {size} bytes; the limit is {limits.MESSAGE_BYTES}.", field="text")


def checked_title(title: str) -> str:
    title = title.strip()
    if not title or len(title) > limits.TITLE_CHARS:
        raise BadRequest(f"A title has 1 to {limits.TITLE_CHARS} characters.", field="title")
    return title


def title_of(text: str) -> str:
    """The first line that says something, cut to what a list shows."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "Untitled")
    return line if len(line) <= 80 else line[:79].rstrip() + "…"


def _ended(turn: TurnState | None) -> bool:
    return turn is None or turn.outcome is not None

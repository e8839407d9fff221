"""One conversation: its state (a fold of the log), its running turn and its effects.

Commands (`host.do`) take the lock of the session, so the state that a decision has read is still valid when its events
are appended. The methods named after commands send these commands, for jobs, agents and tests. Reports of a running
turn need no lock: they only append.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.approval import Approvals
from portico.kernel.closing import closing
from portico.kernel.decide import turn as turns
from portico.kernel.errors import Conflict, LogUnavailable, NotFound, SessionIsClosed
from portico.kernel.events import ErrorInfo, Json, Message, Outcome, Record
from portico.kernel.fold import fold
from portico.kernel.folders import Folders
from portico.kernel.log.log import NotOwner
from portico.kernel.question import Questions
from portico.kernel.queue import Queue
from portico.kernel.runner import Runner
from portico.kernel.state import ChangeList, SessionState, Summary, TurnState, summarise
from portico.kernel.tools import SessionTools
from portico.kernel.turn import Turn

if TYPE_CHECKING:
    from portico.kernel.services import HostServices

SNAPSHOT = "snapshot"
SUMMARY = "summary"
IDLE_SECONDS = 120.0
"""Time since the last use after which the memory of a session is freed."""
_FOLDED = 2_000
"""Events per batch when a long session is loaded: about 10 ms. Other tasks run between batches."""


class Session:
    def __init__(
        self, host: "HostServices", ident: str, state: SessionState | None, summary: Summary | None = None
    ) -> None:
        self.host = host
        self.id = ident
        self.channel = f"session/{ident}"
        self.lock = asyncio.Lock()
        self.approvals = Approvals(self)
        self.questions = Questions(self)
        self.queue = Queue(self)
        self.tools = SessionTools(self)
        self.captures = host.captures(self)
        self.folders = Folders(lambda: self.summary, lambda: self.host.root(self).summary)
        self.runner = Runner(self)
        self._state = state
        self.summary = summary or summarise(state or SessionState(ident))
        self._loading: asyncio.Task[None] | None = None
        self._missed: list[Record] = []
        """Records from the first that could not be folded. Their effects run after the state is read again."""
        self._ids = state.ids if state else 0
        self._snapshot_pos = 0
        self.size = 0
        """Size of its events, as far as it was measured."""
        self._waiters: list[asyncio.Future[None]] = []
        self.resting = 0
        """Number of commands that wait until no turn runs. The queue starts nothing while it is not 0."""
        self._effects: list[asyncio.Task[Any]] = []
        self.used_at = -math.inf

    # -- state -------------------------------------------------------------------------------------------------

    @property
    def state(self) -> SessionState:
        assert self._state is not None, f"{self.id} is not loaded"
        return self._state

    @property
    def loaded(self) -> bool:
        return self._state is not None and not self._missed

    @property
    def running(self) -> Turn | None:
        return self.host.turns.get(self.id)

    async def load(self) -> "Session":
        """Make the state available: the stored snapshot and the events after it."""
        if not self.loaded or (self.host.members.several and self.host.log.is_partial(self.channel)):
            if self._loading is None:
                self._loading = self.host.own(self._load(), f"load {self.id}")
            await asyncio.shield(self._loading)
        return self

    async def _load(self) -> None:
        try:
            await self._read()
        finally:
            self._loading = None

    async def _read(self) -> None:
        data = await self.host.log.get_kv(self.channel, SNAPSHOT)
        state = msgspec.json.decode(data, type=SessionState) if data else SessionState(self.id)
        if any(map(e.is_known, state.unknown)):
            state = SessionState(self.id)
        self._snapshot_pos, self.size = state.pos, 0
        while records := await self.host.log.read(self.channel, state.pos, _FOLDED):
            self.size += sum(len(record.data) for record in records)
            for record in records:
                fold(state, record)
        for record in self._missed:
            if record.pos > state.pos:
                fold(state, record)
        state.pos = max(state.pos, self.host.log.head(self.channel))
        self.host.log.complete(self.channel)
        self._state = state
        self._ids = state.ids
        if data:
            self.host.own(self._measure(), f"size of {self.id}")

    def unload(self) -> bool:
        """Free the memory of an idle session; the next command loads it again. `used_at` is checked too: a command that
        waits for the lock is not visible at the moment the lock becomes free. Return whether the log has all of it."""
        used = time.monotonic() - self.used_at <= IDLE_SECONDS or self.lock.locked() or bool(self._waiters)
        if not used and self.running is None and (self._state is None or self._state.active is None):
            self._state = None
        kept = self._state or self._loading or self._missed or self._effects or self.resting or self.runner.opened
        return not used and not kept

    def apply(self, records: list[Record]) -> None:
        """Fold committed records. Called before any reader gets them."""
        mine = not self.host.members.several or self.host.members.owns(self.channel)
        if self._missed:
            self._missed += records
            return
        if self._state is None:
            if not mine and self._loading is None and not all(isinstance(record.event, e.Delta) for record in records):
                self.host.own(self.follow(), f"follow {self.id}")
            return
        changed = False
        for number, record in enumerate(records):
            try:
                fold(self._state, record)
            except Exception:  # the state is behind the log now: no decision may use it
                self.host.logger.exception("%s could not be folded; reading the session again", record.channel)
                self.host.commits.count("session")
                self._missed = records[number:]
                self._loading = self.host.own(self._reload(), f"load {self.id} again")
                return
            self.size += len(record.data)
            if mine:
                self.host.commits.call("session", self.host.react, self, record.event)
            changed = changed or not isinstance(record.event, e.Delta)
        if changed:
            self._publish(mine)

    def _publish(self, mine: bool) -> None:
        """Publish a changed state: update the summary and wake the waiters."""
        self.summary = summarise(self.state)
        if mine:
            self.host.log.put_kv(self.channel, SUMMARY, msgspec.json.encode(self.summary), lazy=True)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.host.changed(self)

    async def _reload(self) -> None:
        """Read the state again after a record could not be folded, then do what the missed records ask for. Commands
        wait for it. An event that can never be folded leaves the session unloaded: commands about it fail."""
        behind = self._state
        try:
            while self._state is behind:
                await self.host.log.available()
                with contextlib.suppress(LogUnavailable):
                    await self._read()
        except Exception:  # whatever it is, no command may use a state that is behind
            self._state = None
            raise
        finally:
            missed, self._missed, self._loading = self._missed, [], None
        mine = self.host.members.owns(self.channel)
        for record in missed if mine else ():
            self.host.commits.call("session", self.host.react, self, record.event)
        self._publish(mine)

    async def follow(self) -> None:
        """Update the summary of a session that runs on another host."""
        await self.load()
        self.summary = summarise(self.state)
        self.host.changed(self)

    def refresh_summary(self) -> None:
        """Update the summary after a load at start: the stored one may be older than the events."""
        self.summary = summarise(self.state)
        self.host.log.put_kv(self.channel, SUMMARY, msgspec.json.encode(self.summary), lazy=True)

    def new_id(self, prefix: str) -> str:
        # Ids that clients and agents chose may look like ours: stay above those too.
        self._ids = max(self._ids, self._state.ids if self._state else 0) + 1
        return f"{prefix}{self._ids}"

    async def append(self, *events: e.Event) -> int:
        return await self.host.log.append(self.channel, *events)

    def post(self, event: e.Event) -> None:
        """Post a report of a running turn. If the log is down, the turn fails with that error. If another host took
        over the session, that host has ended the turn."""
        try:
            self.host.log.post(self.channel, event)
        except (LogUnavailable, NotOwner) as error:
            self.runner.fail(error)

    # -- effects -----------------------------------------------------------------------------------------------

    def effect(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
        """Start a task that a committed event requires; see `react`."""
        task = self.host.own(work, f"{name} {self.id}")
        self._effects.append(task)
        task.add_done_callback(self._effects.remove)
        return task

    async def settle(self) -> None:
        """Return when the effects of the events committed so far are complete."""
        if self._effects:
            await asyncio.wait(tuple(self._effects))

    # -- commands ----------------------------------------------------------------------------------------------

    async def do(self, command: c.Command, by: str) -> Any:
        if self.host.find(self.id) is not self:
            raise SessionIsClosed(f"The session {self.id!r} was deleted.")
        return await self.host.do(command, c.Caller.inside(by))

    async def rename(self, title: str, *, by: str) -> None:
        await self.do(c.RenameSession(session=self.id, title=title), by)

    async def archive(self, archived: bool, *, by: str) -> None:
        await self.do(c.ArchiveSession(session=self.id, archived=archived), by)

    async def keep(self, key: str, value: Json | None, *, by: str, action: Json | None = None) -> None:
        await self.do(c.ShareData(session=self.id, key=key, value=value, action=action or {}), by)

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
        """Start a turn and return its id, or queue the message and return the id of the queued message."""
        said = {field: getattr(message, field) for field in message.__struct_fields__}
        busy: c.Busy = "queue" if queue else "refuse"
        command = c.SendMessage(session=self.id, **said, busy=busy, turn=turn, pending=pending, blank=blank)
        answer = await self.do(command, by)
        return answer.turn if isinstance(answer, c.TurnBegun) else answer.pending

    async def resume(self, *, by: str, turn: str | None = None) -> str:
        begun: c.TurnBegun = await self.do(c.ResumeTurn(session=self.id, turn=turn), by)
        return begun.turn

    async def close(self, *, by: str, reason: str = "") -> None:
        await self.do(c.CloseSession(session=self.id, reason=reason), by)

    # -- turns -------------------------------------------------------------------------------------------------

    async def cancel(self, *, by: str, turn: str | None = None) -> None:
        """Cancel the running turn; return when it has ended. Its output is kept."""
        running = self.running
        if running is None or (turn is not None and running.id != turn):
            what = f"turn {turn!r} is not running" if turn else "no turn is running"
            raise Conflict(f"In {self.id!r} {what}.")
        await self.runner.cancel(by)

    @contextlib.asynccontextmanager
    async def at_rest(self, by: str) -> AsyncIterator[None]:
        """Hold the lock after the running turn was cancelled; the queue starts nothing in that time."""
        self.resting += 1
        try:
            while True:
                if self.running is not None:
                    await self.runner.cancel(by)
                async with self.lock:
                    if self.state.active is None:
                        yield
                        return
                await asyncio.sleep(0)  # a turn was started in between
        finally:
            self.resting -= 1

    async def wait(self, turn: str) -> TurnState:
        """Wait until the turn has ended and return it."""
        state = await self.wait_until(lambda state: _ended(state.turn(turn)))
        ended = state.turn(turn)
        if ended is None:
            raise NotFound("turn", turn)
        return ended

    async def wait_until(self, condition: Callable[[SessionState], bool]) -> SessionState:
        """Return when the condition is true for the committed state; deltas alone do not wake it."""
        while True:
            await self.load()
            if condition(self.state):
                return self.state
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:  # a cancelled waiter must not keep the session in memory
                    self._waiters.remove(waiter)

    # -- what it changed ---------------------------------------------------------------------------------------

    async def changes(self, turn: str | None = None) -> ChangeList:
        """Return the files that a turn or all turns changed; up to now while it runs."""
        await self.load()
        return await self.captures.list(turn)

    async def diff(self, path: str | None = None, turn: str | None = None) -> str:
        """Return the changes as a unified diff, of one file or of all."""
        await self.load()
        return await self.captures.diff(path, turn)

    # -- how turns begin and end -------------------------------------------------------------------------------

    def begin(self, ident: str, message: Message, *, resumed: bool) -> None:
        turn = self.host.turns[self.id] = Turn(self, ident, message)
        self.runner.start(turn, resumed)

    def adopt(self, ident: str, message: Message) -> Turn:
        """Set the running turn. Without a runner it is the turn of a sub-agent, driven by another session's agent."""
        turn = self.host.turns[self.id] = Turn(self, ident, message)
        return turn

    def forget(self, turn: str) -> None:
        if self.running is not None and self.running.id == turn:
            del self.host.turns[self.id]

    async def go_on(self) -> None:
        """Start the next queued message after a turn, unless the queue is held or another turn was started."""
        if self.host.members.draining and await self.host.members.hand_over(self):
            return
        while True:
            try:
                await self.load()
                async with self.lock:
                    decision = turns.start_next(self.state, self.host.context(self, c.Caller.inside("host")))
                    if decision.events:
                        await self.append(*decision.events)
                return
            except NotOwner:
                return
            except LogUnavailable:
                await self.host.log.available()

    def finished_turns(self, upto: str | None = None) -> list[TurnState]:
        """Return the finished turns up to and including `upto`; all if None."""
        turns = [each for each in self.state.turns if each.outcome is not None]
        if upto is None:
            return turns
        index = next((i for i, each in enumerate(turns) if each.id == upto), None)
        if index is None:
            raise NotFound("finished turn", upto)
        return turns[: index + 1]

    def family(self) -> list["Session"]:
        """Return this session and all its descendants."""
        below = (self.host.find(each.id) for each in self.host.descendants(self.id))
        return [self, *(session for session in below if session is not None)]

    async def end_turn(self, turn: Turn, outcome: Outcome, error: ErrorInfo | None = None, by: str = "agent") -> None:
        """End the turn and everything open in it exactly once, even if the caller is cancelled."""
        if turn.live:
            turn.close_part()
            turn.live = False
            ending = self._end(turn, outcome, error, by)
            await asyncio.shield(self.host.own(ending, f"end {self.id}/{turn.id}"))

    async def _end(self, turn: Turn, outcome: Outcome, error: ErrorInfo | None, by: str) -> None:
        """Append the end of the turn. Waits for the log without a timeout."""
        for child in turn.children:
            await child.session.end_turn(child, "cancelled" if outcome == "completed" else outcome, error, by)
        self.approvals.abandon()
        self.questions.abandon()
        while True:
            said, plain = False, turn.plain  # plain: nothing is open, so its last text and its end are one commit
            try:
                if not plain:
                    await self.host.log.flush()
                    said = True
                async with self.lock:
                    if plain and turn.lost is not None:
                        raise turn.lost  # lost while waiting for the lock
                    active = self.state.active
                    if active is not None and active.id == turn.id:
                        end = e.TurnEnded(turn=turn.id, outcome=outcome, error=error, by=by, stop=turn.stop)
                        await self.append(*(() if plain else closing(self.state, outcome, by)), end)
                    self.forget(turn.id)
                break
            except NotOwner:  # the other host has ended the turn, or will
                self.forget(turn.id)
                return
            except LogUnavailable as lost:
                if outcome == "completed" and not said:  # part of its output is lost
                    outcome, error, by = "failed", ErrorInfo(lost.code, lost.message), "host"
                turn.plain = False
                await self.host.log.available()
        self._keep_snapshot()

    def full(self) -> str:
        """Return why it accepts no further turn, if its size is above the limit."""
        megabytes = limits.SESSION_BYTES / limits.MIB
        return f"The session {self.id!r} has more than {megabytes:g} MB. Fork it, or start another one."

    async def _measure(self) -> None:
        self.size = await self.host.log.size(self.channel)

    def _keep_snapshot(self) -> None:
        """Store a snapshot when the history has grown by a quarter: loading stays fast, and writing stays linear."""
        pos = self.state.pos
        if pos - self._snapshot_pos >= max(100, self._snapshot_pos // 4):
            self._snapshot_pos = pos
            self.host.log.put_kv(self.channel, SNAPSHOT, msgspec.json.encode(self.state))


def _ended(turn: TurnState | None) -> bool:
    return turn is None or turn.outcome is not None

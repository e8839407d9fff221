"""The process's heart: the catalogue of sessions, the agents, the grants, and the order of start and stop."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import msgspec

from portico import __version__, limits
from portico import events as e
from portico.errors import (
    AgentUnavailable,
    AlreadyExists,
    BadRequest,
    LogUnavailable,
    NotFound,
    PorticoError,
    RateLimited,
)
from portico.events import HOST, ErrorInfo, Json, Message, Origin, Record
from portico.host import fallback
from portico.host.agent import Agent, AgentInfo
from portico.host.approval import Policy, session_policy
from portico.host.clock import Clock
from portico.host.config import check as check_config
from portico.host.fold import closing
from portico.host.grants import Grants
from portico.host.isolation import Isolation, isolate, release
from portico.host.policy import WorkspacePolicy
from portico.host.session import SUMMARY, Session
from portico.host.state import SessionState, Summary, TurnState
from portico.host.terminals import Terminals
from portico.host.tool import Tool
from portico.host.turn import Turn
from portico.log.log import Log

T = TypeVar("T")
Watcher = Callable[[str, Summary | None], None]
"""Called with a session's id and its new summary; None when it was deleted."""

_DELETED = "deleted"
_DONE = b"done"
_SWEEP_SECONDS = 60.0
"""How often idle sessions leave memory and old deltas are compacted."""
_IDLE_SECONDS = 120.0
"""A session that nobody asked for this long leaves memory."""


class Host:
    """Build it with `await Host.open(log, agents)`; end it with `await host.close()`."""

    def __init__(self, log: Log, agents: Iterable[Agent], clock: Clock) -> None:
        self.log = log
        self.clock = clock
        self.logger = logging.getLogger("portico.host")
        self.agents: dict[str, Agent] = {agent.id: agent for agent in agents}
        self.tools: dict[str, Tool] = {}
        self.rules = WorkspacePolicy()
        self.policies: list[Policy] = [self.rules.refuse, session_policy, self.rules.allow]
        self.grants = Grants(self)
        self.approval_timeout = limits.APPROVAL_SECONDS
        self.turn_idle_timeout = limits.TURN_IDLE_SECONDS
        self.retention_hours = limits.RETENTION_HOURS
        self.capture_changes = True
        self.capturing = asyncio.Semaphore(limits.CAPTURES)
        self.stopping = False
        self.started_at = time.monotonic()
        self._sessions: dict[str, Session] = {}
        self._by_uri: dict[str, str] = {}
        self._next = 1
        self._watchers: list[Watcher] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self.terminals = Terminals(self)
        self._creating = asyncio.Lock()
        log.tap(self._apply)
        log.on_failure(self._log_failed)

    # -- start and stop ----------------------------------------------------------------------------------------

    @classmethod
    async def open(cls, log: Log, agents: Iterable[Agent], clock: Clock | None = None) -> "Host":
        """Reads the catalogue, closes what a crash left open, and is ready."""
        host = cls(log, agents, clock or Clock())
        await host._read_catalogue()
        await host.grants.load()
        await host.terminals.recover()
        for session in list(host._sessions.values()):
            summary = session.summary
            stale = summary.pos != log.head(session.channel)
            if summary.status in ("running", "waiting") or summary.queued or stale:
                await host._recover(session)
        await log.append(HOST, e.HostStarted(version=__version__, pid=os.getpid()))
        host.own(host._sweep(), "sweep")
        return host

    async def close(self, reason: str = "stopped") -> None:
        """In this order: refuse new turns; end the running ones as interrupted; release conversations, then agents;
        write the last event. The log is closed by whoever opened it."""
        if self.stopping:
            return
        self.stopping = True
        # With a full disk an end cannot be written; the next start will write it.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.STOP_SECONDS):
                await self._interrupt_all()
        await asyncio.gather(*(session.runner.release() for session in self._sessions.values()))
        captures = [task for task in self._tasks if task.get_name().startswith("capture ")]
        if captures:  # the last turn's end must not be forgotten for a hurried goodbye
            await asyncio.wait(captures, timeout=limits.CAPTURE_SECONDS)
        if self.log.down is None:
            await self.terminals.close()
        for agent in self.agents.values():
            await agent.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.log.down is None:
            await self.log.append(HOST, e.HostStopped(reason=reason))

    async def _interrupt_all(self) -> None:
        """Again and again: a turn whose start was being written when the stop came begins after it."""
        await self.log.settled()
        while running := [session for session in self._sessions.values() if session.running is not None]:
            ends = [self.own(session.runner.interrupt(), f"stop {session.id}") for session in running]
            await asyncio.gather(*ends)
            await self.log.settled()
            if self.log.down is not None:
                return

    def own(self, work: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]":
        """Every task has an owner: this is it."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._disown)
        return task

    def _disown(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        # The outcome of an agent's part is read by its turn; anything else that fails here is a bug worth a line.
        if not task.cancelled() and not task.get_name().startswith("agent "):
            error = task.exception()
            if error is not None and not isinstance(error, PorticoError):
                self.logger.error("task %r failed", task.get_name(), exc_info=error)

    async def _read_catalogue(self) -> None:
        summaries = await self.log.notes(SUMMARY)
        deleted = await self.log.notes(_DELETED)
        decoder = msgspec.json.Decoder(Summary)
        for channel in self.log.channels("session/"):
            ident = channel.removeprefix("session/")
            self._next = max(self._next, _number(ident) + 1)
            if channel in deleted:
                if deleted[channel] != _DONE:
                    await self._erase(channel)  # a kill between the two steps of a deletion
                continue
            data = summaries.get(channel)
            session = Session(self, ident, None, decoder.decode(data) if data else None)
            if data is None:
                await session.load()
                if not session.state.agent:  # its beginning is gone: a kill at the last step of a deletion
                    await self._erase(channel)
                    continue
                session.refresh_summary()
            self._add(session)

    async def _erase(self, channel: str) -> None:
        """Forgets the events and notes of a deleted session, and remembers that this is done."""
        await self.log.delete(channel)
        self.log.note(channel, _DELETED, _DONE)

    async def _recover(self, session: Session) -> None:
        """A crash left this one open: everything gets its one end, and the queue waits for a person."""
        await session.load()
        state = session.state
        session.refresh_summary()
        events: list[e.Event] = []
        if state.active is not None:
            session.captures.recover(state.active.id)
            error = ErrorInfo("interrupted", "The host ended in the middle of this turn.")
            end = e.TurnEnded(turn=state.active.id, outcome="interrupted", error=error, by="host")
            events = [*closing(state, "interrupted", "host"), end]
        if state.queue and not state.held:
            events.append(e.QueueHeld(held=True, by="host"))
        if events:
            await session.append(*events)
        session.unload()

    def _log_failed(self, error: LogUnavailable) -> None:
        self.logger.error("the log cannot write: %s", error.message)
        for session in self._sessions.values():
            session.runner.fail(error)

    def _apply(self, records: Iterable[Record]) -> None:
        parts: dict[str, list[Record]] = {}
        for record in records:
            if record.channel.startswith("session/"):
                parts.setdefault(record.channel, []).append(record)
            elif record.channel.startswith("terminal/"):
                self.terminals.apply(record)
            elif record.channel == HOST:
                self.grants.apply(record.event)
        for channel, part in parts.items():
            session = self._sessions.get(channel.removeprefix("session/"))
            if session is not None:
                session.apply(part)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                await self.sweep()
            except LogUnavailable as error:
                self.logger.warning("sweep: %s", error.message)

    async def sweep(self) -> int:
        """Frees idle sessions and compacts old deltas; returns how many deltas went."""
        old = time.monotonic() - _IDLE_SECONDS
        for session in self._sessions.values():
            if session.loaded and session.used_at < old:
                session.unload()
        before = self.now() - int(self.retention_hours * 3_600_000)
        keep = await self.terminals.compactable(before)
        keep |= {s.channel: s.state.active.pos for s in self._sessions.values() if s.loaded and s.state.active}
        return await self.log.compact(before, keep)

    def now(self) -> int:
        return int(self.clock.time() * 1000)

    # -- agents ------------------------------------------------------------------------------------------------

    def agent(self, ident: str) -> Agent:
        agent = self.agents.get(ident)
        if agent is None:
            names = ", ".join(map(repr, self.agents)) or "none"
            raise NotFound("agent", ident, f"There are: {names}.")
        return agent

    async def describe(self) -> list[AgentInfo]:
        return [await agent.describe() for agent in self.agents.values()]

    async def first_ready(self) -> AgentInfo:
        """The agent of those who name none: the first with nothing missing."""
        infos = await self.describe()
        ready = next((info for info in infos if info.missing is None), None)
        if ready is None:
            missing = "; ".join(f"{info.id}: {info.missing}" for info in infos) or "there is none"
            raise AgentUnavailable(f"No agent is ready ({missing}).")
        return ready

    async def check_model(self, agent: str, model: str) -> None:
        info = await self.agent(agent).describe()
        if info.models and model not in {each.id for each in info.models}:
            names = ", ".join(repr(each.id) for each in info.models)
            raise NotFound("model", model, f"{info.name} has: {names}.")

    # -- sessions ----------------------------------------------------------------------------------------------

    async def start(
        self,
        *,
        by: str,
        agent: str | None = None,
        model: str | None = None,
        cwd: str | None = None,
        title: str = "",
        uri: str | None = None,
        parent: str | None = None,
        origin: Origin | None = None,
        config: Json | None = None,
        history: list[TurnState] | None = None,
        worktree: Isolation | Json | None = None,
    ) -> Session:
        """A new session. Without an agent the first one that is ready; without a model its first; without a folder
        the current one. With `worktree` it works in one of its own, or shares another session's (as JSON). An agent
        that is not there is no mistake where the settings name a fallback for it."""
        check_config(config or {})
        if fallback.check(config or {}) and agent is not None and agent not in self.agents:
            model = model or ""
        else:
            info = await self.agent(agent).describe() if agent else await self.first_ready()
            agent = info.id
            if model is None:
                model = info.models[0].id if info.models else ""
            else:
                await self.check_model(agent, model)
        folder = check_folder(cwd if cwd is not None else os.getcwd())
        if parent is not None and parent not in self._sessions:
            raise NotFound("session", parent)
        ident = f"session-{self._next}"
        self._next += 1
        tree: Json = {}
        if isinstance(worktree, Isolation):
            made = await isolate(folder, ident, worktree)
            folder, tree = made.folder, msgspec.to_builtins(made)
        elif worktree:
            tree = worktree
        started = e.SessionStarted(
            session=ident,
            agent=agent,
            model=model,
            cwd=folder,
            by=by,
            title=title[: limits.TITLE_CHARS],
            uri=uri,
            parent=parent,
            origin=origin,
            config=config or {},
            worktree=tree,
        )
        try:
            session = await self._reserve(ident, uri)
            await asyncio.shield(self.own(self._begin(session, started, *_copied(history or [])), f"start {ident}"))
        except PorticoError:
            if isinstance(worktree, Isolation):
                await release(tree)
            raise
        return session

    async def _reserve(self, ident: str, uri: str | None) -> Session:
        async with self._creating:
            if uri is not None and uri in self._by_uri:
                raise AlreadyExists(f"There is a session {uri!r} already.")
            if len(self._sessions) >= limits.SESSIONS:
                raise RateLimited(f"There are {limits.SESSIONS} sessions; delete some.")
            session = Session(self, ident, SessionState(ident))
            session.used_at = time.monotonic()
            self._add(session)
            if uri is not None:
                self._by_uri[uri] = ident
            return session

    async def _begin(self, session: Session, started: e.SessionStarted, *copied: e.Event) -> None:
        listed = e.SessionListed(session=session.id, agent=started.agent, cwd=started.cwd, parent=started.parent)
        try:
            own = [(session.channel, event) for event in (started, *copied)]
            await self.log.append_all(*own, (HOST, listed))  # together: a session that is there is also listed
        except PorticoError:  # the disk says no, or the settings or the history are too large
            self._forget(session)
            raise

    async def get(self, ident: str) -> Session:
        """By id or by the name that a client gave it; loaded and ready for commands."""
        session = self._sessions.get(ident) or self._sessions.get(self._by_uri.get(ident, ""))
        if session is None:
            raise NotFound("session", ident)
        session.used_at = time.monotonic()
        return await session.load()

    def find(self, ident: str) -> Session | None:
        """Like `get`, without loading it."""
        return self._sessions.get(ident) or self._sessions.get(self._by_uri.get(ident, ""))

    def has(self, ident: str) -> bool:
        return ident in self._sessions or ident in self._by_uri

    def list(self, *, archived: bool | None = None, parent: str | None = None, children: bool = True) -> list[Summary]:
        """Newest first."""
        found = [
            summary
            for summary in (session.summary for session in self._sessions.values())
            if (archived is None or summary.archived is archived)
            and (parent is None or summary.parent == parent)
            and (children or summary.parent is None)
        ]
        return sorted(found, key=lambda summary: (summary.modified, _number(summary.id)), reverse=True)

    async def fork(self, ident: str, *, by: str, turn: str | None = None, uri: str | None = None) -> Session:
        """A new session that begins with the other's turns, through `turn` (all finished ones, when None)."""
        source = await self.get(ident)
        turns = [each for each in source.state.turns if each.outcome is not None]
        if turn is not None:
            index = next((i for i, each in enumerate(turns) if each.id == turn), None)
            if index is None:
                raise NotFound("finished turn", turn)
            turns = turns[: index + 1]
        state = source.state
        session = await self.start(
            by=by,
            agent=state.agent,
            model=state.model or None,
            cwd=state.cwd,
            title=f"Fork of {state.title}" if state.title else "",
            uri=uri,
            parent=source.id,
            origin=Origin("fork", source.id, turns[-1].id if turns else None),
            config=state.config,
            history=turns,
            worktree=state.worktree,
        )
        await source.append(e.ChildStarted(session=session.id, kind="fork", turn=turns[-1].id if turns else None))
        return session

    async def spawn(self, turn: Turn, prompt: str, title: str, call: str | None, agent: str) -> Turn:
        """A sub-agent of a running turn: a child session whose only turn the parent's agent reports into."""
        parent = turn.session
        depth, above = 1, parent.state.parent
        while above is not None and above in self._sessions:
            depth, above = depth + 1, self._sessions[above].summary.parent
        if depth > limits.CHILD_DEPTH:
            raise BadRequest(f"Sub-agents are nested at most {limits.CHILD_DEPTH} deep.")
        state = parent.state
        child = await self.start(
            by="agent",
            agent=state.agent,
            model=state.model or None,
            cwd=state.cwd,
            title=title or agent,
            parent=parent.id,
            origin=Origin("agent", parent.id, turn.id, call),
        )
        await parent.append(e.ChildStarted(session=child.id, kind="agent", turn=turn.id, call=call))
        message = Message(prompt, origin="agent")
        ident = child.new_id("t")
        await child.append(e.TurnStarted(turn=ident, message=message, by="agent"))
        return child.adopt(ident, message)

    async def delete(self, ident: str, *, by: str) -> str:
        """Ends it and forgets its history, and that of its children. Returns what stays of its worktree, and why."""
        session = await self.get(ident)
        for child in [s.id for s in self._sessions.values() if s.summary.parent == session.id]:
            await self.delete(child, by=by)
        await session.close(by=by)
        await session.captures.forget()
        stays = await self._release(session, by)
        async with session.lock:
            if session.id not in self._sessions:
                raise NotFound("session", ident)  # somebody else was faster
            self.log.note(session.channel, _DELETED, b"begun")
            try:
                await self.log.append(HOST, e.SessionRemoved(session=session.id, by=by))
            except LogUnavailable:
                self.log.note(session.channel, _DELETED, None)
                raise
            self._forget(session)
        await self._erase(session.channel)
        for watcher in self._watchers:
            watcher(session.id, None)
        return stays

    async def _release(self, session: Session, by: str) -> str:
        """The worktree goes with the last session in it."""
        tree = session.state.worktree
        if not tree or any(
            other.summary.cwd == session.summary.cwd for other in self._sessions.values() if other is not session
        ):
            return ""
        stays = await release(tree)
        if stays:
            await self.audit("worktree.kept", by, session=session.id, reason=stays)
        return stays

    def session_of(self, ident: str) -> str:
        """The session an approval or a question belongs to: their ids begin with it."""
        session, _, rest = ident.rpartition(".")
        if not rest or session not in self._sessions:
            raise NotFound("approval or question", ident)
        return session

    def check_room(self) -> None:
        if self.stopping:
            raise LogUnavailable("The host is stopping.")
        running = sum(1 for session in self._sessions.values() if session.running is not None)
        if running >= limits.LIVE_TURNS:
            raise RateLimited(f"{running} turns are running; wait for one to end.", retry_after=5)

    @property
    def running(self) -> int:
        return sum(1 for session in self._sessions.values() if session.running is not None)

    def _add(self, session: Session) -> None:
        self._sessions[session.id] = session
        if session.summary.uri is not None:
            self._by_uri[session.summary.uri] = session.id

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
        for uri in [uri for uri, ident in self._by_uri.items() if ident == session.id]:
            del self._by_uri[uri]

    def changed(self, session: Session) -> None:
        for watcher in self._watchers:
            watcher(session.id, session.summary)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Calls `watcher` whenever a summary changes; returns what ends it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    async def audit(self, action: str, by: str, **detail: object) -> None:
        await self.log.append(HOST, e.Audited(action=action, by=by, detail=detail))


def _copied(history: list[TurnState]) -> list[e.Event]:
    """The turns in as few events as fit."""
    events: list[e.Event] = []
    turns: list[Json] = []
    size = 0
    for turn in history:
        length = len(msgspec.json.encode(turn))
        if turns and size + length > limits.EVENT_BYTES // 2:
            events.append(e.HistoryCopied(turns=turns))
            turns, size = [], 0
        turns.append(msgspec.to_builtins(turn))
        size += length
    return [*events, e.HistoryCopied(turns=turns)] if turns else events


def check_folder(path: str) -> str:
    """An absolute path of a folder that exists."""
    if "\0" in path or not os.path.isabs(path):
        raise BadRequest(f"The working directory {path!r} is not an absolute path.", field="cwd")
    if not os.path.isdir(path):
        raise BadRequest(f"The working directory {path!r} is not a folder.", field="cwd")
    return os.path.normpath(path)


def _number(ident: str) -> int:
    tail = ident.rpartition("-")[2]
    return int(tail) if tail.isdigit() else 0

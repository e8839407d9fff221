"""The process's heart: the catalogue of sessions, the agents, the grants, and the order of start and stop."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Container, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from portico import __version__, limits
from portico import commands as c
from portico import events as e
from portico.errors import (
    BadRequest,
    Forbidden,
    LogUnavailable,
    NotFound,
    PorticoError,
)
from portico.events import HOST, Channel, Json, Message, Origin, Record, ToolSpec
from portico.host import fallback
from portico.host.agent import Agent, AgentInfo
from portico.host.approval import Policy, session_policy
from portico.host.autonomy import Answering, Loosened, audited, loosened
from portico.host.autonomy import check as check_loosened
from portico.host.catalogue import Catalogue
from portico.host.clock import Clock
from portico.host.config import check as check_config
from portico.host.descriptions import Descriptions
from portico.host.disk import Disk
from portico.host.do import RECEIPTS, Dispatcher, note_started
from portico.host.folders import check_folder, check_folders, whole
from portico.host.grants import Grants
from portico.host.handlers import CLIENT_SETTINGS, install
from portico.host.isolation import isolate, release
from portico.host.ownership import Ownership
from portico.host.policy import WorkspacePolicy, rules_of
from portico.host.quotas import Quotas
from portico.host.readiness import Readiness
from portico.host.retention import Retention
from portico.host.session import Session
from portico.host.state import SessionState, Summary, TurnState
from portico.host.terminals import Terminals
from portico.host.tool import Tool
from portico.host.turn import Turn
from portico.log.listeners import Listeners
from portico.log.log import Log
from portico.workspace.jail import Jail

T = TypeVar("T")
Watcher = Callable[[str, Summary | None], None]
"""Called with a session's id and its new summary; None when it was deleted."""

_SWEEP_SECONDS = 60.0
"""How often idle sessions leave memory and old deltas are compacted."""
_RETAIN_SECONDS = 3600.0
_EXPIRING = {"live": 30, "ahp.client/": 90, RECEIPTS: 2}
"""Values that are kept for clients which may never come back (cursors of pages, clients of AHP, ids of commands), and
after how many days without a change they go."""
_IDLE_SECONDS = 120.0
"""A session that nobody asked for this long leaves memory."""


class Host:
    """Build it with `await Host.open(log, agents)`; end it with `await host.close()`."""

    def __init__(self, log: Log, agents: Iterable[Agent], clock: Clock) -> None:
        self.log = log
        self.clock = clock
        self.logger = logging.getLogger("portico.host")
        self.agents: dict[str, Agent] = {agent.id: agent for agent in agents}
        self.default_agent = ""
        self.readiness = Readiness(self)
        self.tools: dict[str, Tool] = {}
        self.rules = WorkspacePolicy()
        self.policies: list[Policy] = [self.rules.refuse, session_policy, self.rules.allow]
        self.grants = Grants(self)
        self.approval_timeout: float | None = None
        self.turn_idle_timeout = limits.TURN_IDLE_SECONDS
        self.retention_hours = limits.RETENTION_HOURS
        self.capture_changes = True
        self.capturing = asyncio.Semaphore(limits.CAPTURES)
        self.stopping = False
        self.workspaces: list[Path] = []
        """Where sessions and terminals begin that name no folder: in the first of them."""
        self.client_settings: Json = {}
        """What editors share through the host; some of it are rules of approval."""
        self.configuring = asyncio.Lock()
        self.connected: Container[str] = ()
        """The clients that are connected, by their own ids."""
        self.commands = Dispatcher(self)
        self.ownership = Ownership(self)
        self.quotas = Quotas(self)
        self.retention = Retention(self)
        install(self)
        self.do = self.commands.do
        self.started_at = time.monotonic()
        self.catalogue = Catalogue(self)
        self.turns: dict[str, Turn] = {}
        """The turns that run, by session."""
        self._watchers = Listeners[[str, Summary | None]]("session")
        self.name_child: Callable[[Summary, str, Origin | None], str] | None = None
        """What clients call a session below another: the root's summary, the new id and where it comes from."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self.terminals = Terminals(self)
        self.descriptions = Descriptions(self)
        self.disk = Disk(log)
        log.on_commit(self._apply)
        log.on_failure(self._log_failed)

    # -- start and stop ----------------------------------------------------------------------------------------

    @classmethod
    async def open(cls, log: Log, agents: Iterable[Agent], clock: Clock | None = None) -> "Host":
        """Reads the catalogue, closes what a crash left open, and is ready."""
        host = cls(log, agents, clock or Clock())
        await host.catalogue.read()
        await host.grants.load()
        data = await log.get_kv(HOST, CLIENT_SETTINGS)
        host._share(msgspec.json.decode(data) if data else {})
        await host.terminals.recover()
        await host.catalogue.recover()
        await host._tell_loss()
        await log.append(HOST, e.HostStarted(version=__version__, pid=os.getpid()))
        host.own(host._sweep(), "sweep")
        host.own(host._retain(), "retention")
        return host

    async def _tell_loss(self) -> None:
        found = self.log.identity
        if found.why:
            self.logger.warning("the log has a new identity: %s; clients take new snapshots", found.why)
        if found.lost_now:
            await self.log.append(HOST, e.LogLost(count=found.lost_now, last=found.last))

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
        await asyncio.gather(*(session.runner.release() for session in self.catalogue if session.runner.opened))
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
        while True:
            with contextlib.suppress(LogUnavailable):
                await self.log.flush()
            if not self.turns:
                return
            running = [turn.session for turn in self.turns.values()]
            ends = [self.own(session.runner.interrupt(), f"stop {session.id}") for session in running]
            await asyncio.gather(*ends)
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

    def _log_failed(self, error: LogUnavailable) -> None:
        self.logger.error("the log cannot write: %s", error.message)
        for turn in tuple(self.turns.values()):
            turn.session.runner.fail(error)

    def _apply(self, records: Iterable[Record]) -> None:
        parts: dict[str, list[Record]] = {}
        for record in records:
            if record.channel.startswith("session/"):
                parts.setdefault(record.channel, []).append(record)
            elif record.channel.startswith("terminal/"):
                self.terminals.apply(record)
            elif record.channel == HOST:
                self.grants.apply(record.event)
                if isinstance(record.event, e.ClientKept) and record.event.key == CLIENT_SETTINGS:
                    self._share(record.event.value or {})
        for channel, part in parts.items():
            session = self.catalogue.get(channel.removeprefix("session/"))
            if session is not None:
                self._apply_to(session, part)

    def _apply_to(self, session: Session, records: list[Record]) -> None:
        try:
            session.apply(records)
        except Exception:  # the other sessions of this batch have to follow theirs
            self.logger.exception("the session %s did not follow its events", session.id)

    def _share(self, values: Json) -> None:
        self.client_settings = values
        self.rules.clients = rules_of(values)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                await self.sweep()
            except LogUnavailable as error:
                self.logger.warning("sweep: %s", error.message)
            except Exception:
                self.logger.exception("the sweep failed; the next one comes in %g seconds", _SWEEP_SECONDS)

    async def _retain(self) -> None:
        """Every hour, and not right after the start: somebody may want to look at the rules first."""
        while True:
            await asyncio.sleep(_RETAIN_SECONDS)
            try:
                await self.retention.apply(self.retention.planned(), c.Caller.inside("retention"))
            except PorticoError as error:
                self.logger.warning("retention: %s", error.message)

    async def sweep(self) -> int:
        """Frees idle sessions, forgets ended grants and compacts old deltas; returns how many deltas went."""
        await self.grants.expire()
        await self.quotas.measure()
        old = time.monotonic() - _IDLE_SECONDS
        for session in self.catalogue:
            if session.loaded and session.used_at < old:
                session.unload()
        before = self.now() - int(self.retention_hours * 3_600_000)
        keep = await self.terminals.compactable(before)
        keep |= {s.channel: s.state.active.pos for s in self.catalogue if s.loaded and s.state.active}
        for prefix, days in _EXPIRING.items():
            await self.log.expire_kv(prefix, self.now() - days * 86_400_000)
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

    def tools_of(self, state: SessionState) -> list[ToolSpec]:
        """The host's own tools that this session has."""
        return [tool.spec for tool in self.tools.values() if tool.offered(state)]

    async def described(self, ident: str) -> AgentInfo:
        return self.readiness.show(await self.descriptions.of(self.agent(ident)))

    async def describe(self) -> list[AgentInfo]:
        return [self.readiness.show(info) for info in await self.descriptions.all()]

    async def check_model(self, agent: str, model: str) -> None:
        info = await self.described(agent)
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
        worktree: c.Isolation | Json | None = None,
        folders: Iterable[str] = (),
        model_config: Json | None = None,
        may_approve: bool = True,
        draft: bool = False,
        owner: str = "",
    ) -> Session:
        """A new session. Without an agent the default one; without a model its first; without a folder
        the first workspace. With `worktree` it works in one of its own, or shares another session's (as JSON);
        `folders` are those beside it. An agent that is not there is no mistake where the settings name a fallback
        for it. Settings that loosen approval are refused to who may not approve, and audited."""
        check_config(config or {})
        if fallback.check(config or {}) and agent is not None and agent not in self.agents:
            model = model or ""
        else:
            info = await self.described(agent) if agent else await self.readiness.default()
            agent = info.id
            if model is None:
                model = info.models[0].id if info.models else ""
            else:
                await self.check_model(agent, model)
        folder = check_folder(cwd if cwd is not None else str(self.default_folder()))
        more = await check_folders(self, agent, folder, folders)
        if parent is not None:
            await self.get(parent)  # it hears of its child
        source = await self._source(parent, origin)
        found = loosened(self.agents, source, Answering(agent, config or {}))
        if not may_approve:
            check_loosened(found)
        ident = self.catalogue.new_id()
        if parent is not None and uri is None:
            uri = self._child_uri(parent, ident, origin)
        tree: Json = {}
        if isinstance(worktree, c.Isolation):
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
            folders=more,
            model_config=model_config or {},
            draft=draft,
            owner=owner if parent is None else "",
        )
        try:
            session = await self.catalogue.reserve(ident, uri)
            await asyncio.shield(
                self.own(self._begin(session, started, found, *_copied(history or [])), f"start {ident}")
            )
        except PorticoError:
            if isinstance(worktree, c.Isolation):
                await release(tree)
            raise
        return session

    def default_folder(self) -> Path:
        """Where what names no folder works: the first workspace."""
        return self.workspaces[0] if self.workspaces else Path.cwd()

    def jail(self, *first: str, caller: c.Caller) -> Jail:
        """Where files are read and terminals begin: `first`, the workspaces, and the folders of sessions that the
        caller may drive, except one that is the whole machine."""
        roots = [*first, *(str(each) for each in self.workspaces if each.is_dir())]
        sessions = self.ownership.visible(caller, self.list(drafts=True), "drive")
        own = {folder for each in sessions if each.parent is None for folder in whole(each)} - {"", "/"}
        try:
            return Jail(dict.fromkeys([*roots, *sorted(own)]))
        except Forbidden:  # a session's folder is gone
            return Jail(dict.fromkeys(roots))

    def _child_uri(self, parent: str, ident: str, origin: Origin | None) -> str | None:
        """A name that is taken (an agent may use a call's id twice) is not given again."""
        above = self.find(parent)
        if self.name_child is None or above is None:
            return None
        uri = self.name_child(self.catalogue.root(above).summary, ident, origin)
        return None if self.has(uri) else uri

    async def _source(self, parent: str | None, origin: Origin | None) -> Answering | None:
        """The session whose settings a new one takes over: to have what that one has loosens nothing."""
        ident = origin.session if origin is not None and origin.kind != "agent" else parent
        state = (await self.get(ident)).state if ident is not None and self.has(ident) else None
        return Answering(state.agent, state.config) if state is not None else None

    async def _begin(
        self, session: Session, started: e.SessionStarted, found: Sequence[Loosened], *copied: e.Event
    ) -> None:
        listed = e.SessionListed(session=session.id, agent=started.agent, cwd=started.cwd, parent=started.parent)
        # Together: a session that is there is also listed, and its parent knows of it.
        events: list[tuple[Channel, e.Event]] = [(session.channel, event) for event in (started, *copied)]
        events += [(HOST, event) for event in (listed, *audited(session.id, found, started.by))]
        if started.parent is not None:
            origin = started.origin or Origin("side", started.parent)
            child = e.ChildStarted(session=session.id, kind=origin.kind, turn=origin.turn, call=origin.call)
            events.append((f"session/{started.parent}", child))
        note_started(session.id)
        try:
            await self.log.append_all(*events)
        except PorticoError:  # the disk says no, or the settings or the history are too large
            self.catalogue.forget(session)
            raise

    async def get(self, ident: str) -> Session:
        """By id or by the name that a client gave it; loaded and ready for commands."""
        session = self.catalogue.find(ident)
        if session is None:
            raise NotFound("session", ident)
        session.used_at = time.monotonic()
        return await session.load()

    def find(self, ident: str) -> Session | None:
        """Like `get`, without loading it."""
        return self.catalogue.find(ident)

    def has(self, ident: str) -> bool:
        return self.catalogue.find(ident) is not None

    def list(
        self,
        *,
        archived: bool | None = None,
        parent: str | None = None,
        children: bool = True,
        drafts: bool = False,
    ) -> list[Summary]:
        """Newest first; without drafts, unless they are wanted."""
        return self.catalogue.list(archived=archived, parent=parent, children=children, drafts=drafts)

    async def fork(self, ident: str, *, by: str, turn: str | None = None, uri: str | None = None) -> Session:
        """A new session that begins with the other's turns, through `turn` (all finished ones, when None)."""
        source = await self.get(ident)
        turns = source.finished_turns(turn)
        state = source.state
        return await self.start(
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
            folders=state.folders,
            model_config=state.model_config,
        )

    async def spawn(self, turn: Turn, prompt: str, title: str, call: str | None, agent: str) -> Turn:
        """A sub-agent of a running turn: a child session whose only turn the parent's agent reports into."""
        parent = turn.session
        depth, above = 1, parent.state.parent
        while above is not None and (found := self.catalogue.get(above)) is not None:
            depth, above = depth + 1, found.summary.parent
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
        message = Message(prompt, origin="agent")
        ident = child.new_id("t")
        await child.append(e.TurnStarted(turn=ident, message=message, by="agent"))
        return child.adopt(ident, message)

    async def delete(self, ident: str, *, by: str) -> str:
        """Ends it with its terminals and forgets its history, and that of its children. Returns what stays of its
        worktree, and why."""
        session = await self.get(ident)
        for child in [s.id for s in self.catalogue if s.summary.parent == session.id]:
            await self.delete(child, by=by)
        await session.close(by=by)
        for pending in list(session.state.queue):
            await session.queue.remove(pending.id, by=by)
        await self.terminals.end_of(session.id, by=by)
        await session.captures.forget()
        stays = await self._release(session, by)
        async with session.lock:
            if self.catalogue.get(session.id) is None:
                raise NotFound("session", ident)  # somebody else was faster
            await self.catalogue.remove(session, by)
        await self.catalogue.erase(session.channel)
        self._watchers.call(session.id, None)
        return stays

    async def _release(self, session: Session, by: str) -> str:
        """The worktree goes with the last session in it."""
        tree = session.state.worktree
        if not tree or any(
            other.summary.cwd == session.summary.cwd for other in self.catalogue if other is not session
        ):
            return ""
        stays = await release(tree)
        if stays:
            await self.audit("worktree.kept", by, session=session.id, reason=stays)
        return stays

    def session_of(self, ident: str) -> str:
        """The session an approval or a question belongs to: their ids begin with it."""
        session, _, rest = ident.rpartition(".")
        if not rest or self.catalogue.get(session) is None:
            raise NotFound("approval or question", ident)
        return session

    @property
    def running(self) -> int:
        """How many turns."""
        return len(self.turns)

    def changed(self, session: Session) -> None:
        self._watchers.call(session.id, session.summary)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Calls `watcher` whenever a summary changes; returns what ends it."""
        return self._watchers.add(watcher)

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

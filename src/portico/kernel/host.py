"""The host: the catalogue of sessions, the agents, the grants, and the order of start and stop."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Container, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from portico import __version__
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.agent import Agent, AgentInfo, AgentReadiness
from portico.kernel.approval import Policy, session_policy
from portico.kernel.catalogue import Catalogue
from portico.kernel.clock import Clock
from portico.kernel.commits import Commits
from portico.kernel.component import (
    Component,
    FolderCaptures,
    HostTerminals,
    Judge,
    RunCommandLine,
    Spending,
    Worktrees,
    no_commands,
)
from portico.kernel.disk import Disk
from portico.kernel.do import RECEIPTS, Dispatcher
from portico.kernel.errors import (
    LogUnavailable,
    NotFound,
    PorticoError,
)
from portico.kernel.events import HOST, Channel, Origin, Record, ToolSpec
from portico.kernel.handlers import install
from portico.kernel.lifecycle import Lifecycle
from portico.kernel.log.listeners import Listeners
from portico.kernel.log.log import Log
from portico.kernel.members import Members
from portico.kernel.ownership import Ownership
from portico.kernel.react import react
from portico.kernel.session import Session
from portico.kernel.shared_state import SharedState
from portico.kernel.state import SessionState, Summary
from portico.kernel.tool import Tool
from portico.kernel.turn import Turn

T = TypeVar("T")
Watcher = Callable[[str, Summary | None], None]
"""Called with a session's id and its new summary; None when it was deleted."""

_SWEEP_SECONDS = 60.0
"""Interval at which idle sessions are unloaded and old deltas are compacted."""
_EXPIRING = {"live": 30, "ahp.client/": 90, RECEIPTS: 2}
"""Expiry in days without a change, by key prefix, of values for clients that may never reconnect: cursors of pages,
clients of AHP, ids of commands."""


class Host:
    """Build it with `await Host.open(log, agents)`; end it with `await host.close()`."""

    def __init__(self, log: Log, agents: Iterable[Agent], clock: Clock) -> None:
        self.log = log
        self.clock = clock
        self.logger = logging.getLogger("portico.host")
        self.agents: dict[str, Agent] = {agent.id: agent for agent in agents}
        self.default_agent = ""
        self.readiness = AgentReadiness(self.agents)
        self.tools: dict[str, Tool] = {}
        self.rules = Judge()
        self.policies: list[Policy] = [
            lambda session, request: self.rules.refuse(session, request),
            session_policy,
            lambda session, request: self.rules.allow(session, request),
        ]
        self.captures: Callable[[Session], FolderCaptures] = FolderCaptures
        self.worktrees = Worktrees()
        self.spending = Spending()
        self.terminals = HostTerminals()
        self.shared = SharedState(self)
        self.grants = self.shared.grants
        self.approval_timeout: float | None = None
        self.turn_idle_timeout = limits.TURN_IDLE_SECONDS
        self.retention_hours = limits.RETENTION_HOURS
        self.stopping = False
        self.workspaces: list[Path] = []
        """Where sessions and terminals begin that name no folder: in the first of them."""
        self.public_url = ""
        """The address that people use, for links."""
        self.connected: Container[str] = ()
        """The clients that are connected, by their own ids."""
        self.members = Members()
        self.commits = Commits(log)
        self.commits.on_batch("host", self._apply)
        self.commands = Dispatcher(self)
        self.ownership = Ownership(self)
        install(self)
        self.do, self.do_all, self.context = self.commands.do, self.commands.do_all, self.commands.context
        lifecycle = Lifecycle(self)
        self.start, self.fork = lifecycle.start, lifecycle.fork
        self.spawn, self.delete = lifecycle.spawn, lifecycle.delete
        self.started_at = time.monotonic()
        self.catalogue = Catalogue(self)
        self.root, self.descendants = self.catalogue.root, self.catalogue.descendants
        self.find, self.summaries, self.list = self.catalogue.find, self.catalogue.summaries, self.catalogue.list
        self.owner_of = self.ownership.owner_of
        self.react = react
        self.turns: dict[str, Turn] = {}
        """The turns that run, by session."""
        self._watchers = Listeners[[str, Summary | None]]("session")
        self.run_command: RunCommandLine = no_commands
        self.name_child: Callable[[Summary, str, Origin | None], str] | None = None
        """What clients call a session below another: the root's summary, the new id and where it comes from."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self.parts: list[Component] = []
        """The components, in the order of their start."""
        self.disk = Disk(log)
        log.on_failure(self._log_failed)

    # -- start and stop ----------------------------------------------------------------------------------------

    @classmethod
    async def open(
        cls,
        log: Log,
        agents: Iterable[Agent],
        clock: Clock | None = None,
        parts: Iterable[Callable[["Host"], Component]] = (),
    ) -> "Host":
        """Read the catalogue and close what a crash left open."""
        host = cls(log, agents, clock or Clock())
        host.parts = [make(host) for make in parts]
        await host.catalogue.read()
        await host.shared.load()
        for part in host.parts:
            await part.recover()
        await host.catalogue.recover()
        await host._tell_loss()
        await log.append(HOST, e.HostStarted(version=__version__, pid=os.getpid()))
        host.own(host._sweep(), "sweep")
        return host

    async def _tell_loss(self) -> None:
        found = self.log.identity
        if found.why:
            self.logger.warning("the log has a new identity: %s; clients take new snapshots", found.why)
        if found.lost_now or found.tail_lost:
            await self.log.append(HOST, e.LogLost(count=found.lost_now, last=found.last))

    async def close(self, reason: str = "stopped") -> None:
        """Stop, in this order: refuse new turns; end the running ones as interrupted; release conversations, then
        agents; write the last event. The caller that opened the log closes it."""
        if self.stopping:
            return
        self.stopping = True
        for part in reversed(self.parts):
            await part.stop()
        # With a full disk an end cannot be written; the next start will write it.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.STOP_SECONDS):
                await self._interrupt_all()
        await asyncio.gather(*(session.runner.release() for session in self.catalogue.live() if session.runner.opened))
        for part in self.parts:
            await part.close()
        for agent in self.agents.values():
            await agent.close()
        while self._tasks:  # one that ends may begin another: a job whose log is away waits for its return
            for task in list(self._tasks):
                task.cancel()
            await asyncio.wait(self._tasks)  # `_disown` reads how they ended
        with contextlib.suppress(LogUnavailable):  # a full disk, or another host has taken over
            await self.log.append(HOST, e.HostStopped(reason=reason))

    async def _interrupt_all(self) -> None:
        """Interrupt all turns. Repeat it, because a turn whose start was being written may start after the stop."""
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
        """Start a task that the host owns. Every task has an owner."""
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
            elif record.channel == HOST:
                self.commits.call("host", self._apply_shared, record.event)
        for channel, part in parts.items():
            self.commits.call("session", self._apply_to, channel, part)

    def _apply_shared(self, event: e.Event) -> None:
        self.shared.apply(event)
        if isinstance(event, e.SessionRemoved):
            self._removed(event.session)

    def _removed(self, ident: str) -> None:
        """Forget a session that another host has removed."""
        session = self.catalogue.get(ident)
        if session is not None and not self.members.owns(session.channel):
            self.catalogue.forget(session)
            self._watchers.call(ident, None)

    def _apply_to(self, channel: Channel, records: list[Record]) -> None:
        session = self.catalogue.find(channel.removeprefix("session/")) or self.catalogue.adopt(channel, records)
        if session is not None:
            session.apply(records)

    async def add(self, part: Component) -> None:
        """Register a component that is built after the host was opened."""
        self.parts.append(part)
        await part.recover()

    def tasks(self, prefix: str) -> Sequence["asyncio.Task[Any]"]:
        """Those that run under such a name."""
        return [task for task in self._tasks if task.get_name().startswith(prefix)]

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                await self.sweep()
            except LogUnavailable as error:
                self.logger.warning("sweep: %s", error.message)
            except Exception:  # a bug must not stop the sweeps
                self.logger.exception("the sweep failed; the next one comes in %g seconds", _SWEEP_SECONDS)

    async def sweep(self) -> int:
        """Sweep the components, unload idle sessions and compact old deltas; return the number of deleted deltas."""
        for part in self.parts:
            try:
                await part.sweep()
            except LogUnavailable:
                raise
            except Exception:  # a bug in one component must not stop the sweeps of the others and the log
                self.logger.exception("the sweep of %s failed", type(part).__name__)
        self.catalogue.release()
        before = self.now() - int(self.retention_hours * 3_600_000)
        keep = {channel: pos for part in self.parts for channel, pos in (await part.compactable(before)).items()}
        keep |= {f"session/{each.id}": 0 for each in self.summaries() if each.status in ("running", "waiting")}
        keep |= {s.channel: s.state.active.pos for s in self.catalogue.live() if s.loaded and s.state.active}
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
        """Return the tools of the host that this session has."""
        return [tool.spec for tool in self.tools.values() if tool.offered(state)]

    async def described(self, ident: str) -> AgentInfo:
        return await self.readiness.described(self.agent(ident))

    async def describe(self) -> list[AgentInfo]:
        return await self.readiness.describe()

    # -- sessions ----------------------------------------------------------------------------------------------

    def default_folder(self) -> Path:
        """Return the folder for sessions and terminals without one: the first workspace."""
        return self.workspaces[0] if self.workspaces else Path.cwd()

    async def get(self, ident: str) -> Session:
        """Find a session by id or by the name that a client gave it, and load it."""
        session = self.catalogue.find(ident)
        if session is None and self.members.several:
            await self.members.catch_up()  # another host may just have started it
            session = self.catalogue.find(ident)
        if session is None:
            raise NotFound("session", ident)
        session.used_at = time.monotonic()
        if self.members.several:
            self.members.used(session.channel)
            return await session.load()
        return session if session.loaded else await session.load()

    def has(self, ident: str) -> bool:
        return self.catalogue.summary(ident) is not None

    def session_of(self, ident: str) -> str:
        """Return the session of an approval or a question: their ids start with its id."""
        session, _, rest = ident.rpartition(".")
        if not rest or self.catalogue.summary(session) is None:
            raise NotFound("approval or question", ident)
        return session

    @property
    def running(self) -> int:
        """The number of running turns."""
        return len(self.turns)

    def changed(self, session: Session) -> None:
        if session.summary.parent != self.catalogue.parent_of.get(session.id):
            self.catalogue.place(session.summary)
        self._watchers.call(session.id, session.summary)

    def deleted(self, session: Session) -> None:
        self._watchers.call(session.id, None)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` when a summary changes; return a function that unsubscribes."""
        return self._watchers.add(watcher)

    async def audit(self, action: str, by: str, **detail: object) -> None:
        await self.log.append(HOST, e.Audited(action=action, by=by, detail=detail))

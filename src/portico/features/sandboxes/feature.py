"""The feature: every session's sandbox, from the choice to the running processes.

`confine` is what all code that starts a process of a session calls. It returns a policy or, for a session without a
sandbox, the reason why there is none. It raises where a sandbox is chosen and does not work: nothing ever runs
unconfined because something failed.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import msgspec

from portico.features.automations.events import AutomationPlan
from portico.features.sandboxes.access import AccessRequests, SessionGate
from portico.features.sandboxes.agent import OFF, AgentProcess, ConfinableAgent
from portico.features.sandboxes.build import build_policy, rules_of
from portico.features.sandboxes.choice import KEY, REQUIRED, chosen, is_unattended, mode_of
from portico.features.sandboxes.commands import ChooseSandbox, FolderSandbox
from portico.features.sandboxes.events import SandboxChosen, SandboxEntered
from portico.features.sandboxes.folders import FolderChoices, SessionFolders, chosen_in, normal_folder
from portico.features.sandboxes.grants import SandboxGrants
from portico.features.sandboxes.host_git import EnteredFolders, HostGit
from portico.features.sandboxes.links import GitLinks
from portico.features.sandboxes.offer import modes_for
from portico.features.sandboxes.record import NetworkRecord
from portico.features.sandboxes.running import RunningSandbox, remove_left
from portico.features.sandboxes.shapes import SandboxChoice
from portico.kernel import commands as c
from portico.kernel.approval import Request, Ruling
from portico.kernel.errors import Forbidden, SandboxUnavailable
from portico.kernel.events import (
    GrantAdded,
    GrantRevoked,
    Json,
    Record,
    SessionClosed,
    SessionConfigured,
    SessionStarted,
)
from portico.kernel.feature import Feature, Routing, guard, handle, receive
from portico.kernel.folders import check_folder
from portico.kernel.host import Host
from portico.kernel.services import HostServices
from portico.kernel.session import Session
from portico.kernel.state import SessionState
from portico.sandbox import available
from portico.sandbox.egress import Egress
from portico.sandbox.network import Network
from portico.sandbox.policy import Confinement, Mode, Policy, SandboxRules
from portico.sandbox.vendors import VENDORS, Vendor
from portico.server.settings import SandboxSettings
from portico.workspace.git import confined_by

LINKS = "sandbox.links"
"""The links from before the sandbox of a session, while it has one."""
VENDOR_AGENTS = frozenset(f"acp:{name}" for name in VENDORS)
INSIDE = frozenset({"read", "write", "shell"})
"""Kinds of actions that happen inside. Tools of clients, of MCP servers over HTTP and of the host run elsewhere."""


def _is_guarded(kind: type[c.Command]) -> bool:
    chooses = kind in (c.StartSession, c.ChangeSession, c.ConfigureSession) or "plan" in kind.__struct_fields__
    return chooses or kind.scope == "terminal"


class Sandboxes(Feature):
    name = "sandbox"
    needs = (NetworkRecord,)
    commands = (ChooseSandbox,)
    events = (SandboxChosen, SandboxEntered)
    settings = SandboxSettings

    def __init__(self, host: Host, record: NetworkRecord) -> None:
        super().__init__(host)
        self._record = record
        self._settings = SandboxSettings()
        self._ending = asyncio.Lock()
        """Held while a sandbox ends, so that the host does not close before that."""
        self._running: dict[str, RunningSandbox] = {}
        self._vendors: dict[str, Network] = {}
        """What the agent of a session reaches besides: its commands share its network."""
        self._opening: dict[str, asyncio.Lock] = {}
        self._folders = FolderChoices(host.log)
        self._origins = SessionFolders(host.log)
        self._entered = EnteredFolders(host.log)
        self._links: dict[str, GitLinks] = {}
        self._git = HostGit(self._entered, self._links)
        agents: list[object] = list(host.agents.values())
        for agent in agents:
            if isinstance(agent, ConfinableAgent):
                agent.confine_with(self.confine_agent)
        self.access = AccessRequests(host, self.mode, self.changed)
        host.policies.append(self._rule)

    def configure(self, settings: SandboxSettings) -> None:
        if settings != self._settings:
            self._settings = settings
            for session in self.host.catalogue.live():
                session.runner.refresh()  # an open conversation has a process of the old settings

    @receive(SessionConfigured)
    def _configured(self, record: Record) -> None:
        """Restart the agent's process with the next turn: it was started with the sandbox of before."""
        session = self.host.find(record.channel.removeprefix("session/"))
        event = record.event
        if session is None or not isinstance(event, SessionConfigured):
            return
        if KEY in event.values or event.replace:
            session.runner.refresh()
        known = session.state
        if known.parent is None and not is_unattended(known.by):
            self._remember(event.values, chosen_in(known.cwd, known.worktree), event.by, record.channel)

    async def recover(self) -> None:
        await self._folders.read()
        await self._entered.read()
        confined_by.append(self._git.policy)
        await asyncio.to_thread(remove_left)
        for channel, data in (await self.host.log.list_kv(LINKS)).items():
            links = msgspec.json.decode(data, type=GitLinks)
            if await asyncio.to_thread(lambda: links.is_left):  # noqa: B023 - awaited here
                await self._remove_links(channel, links)
                self.host.log.put_kv(channel, LINKS, None)

    async def forget(self, session: Session, by: str) -> None:
        await self.end(session.id)

    @receive(SessionClosed)
    def _closed(self, record: Record) -> None:
        ident = record.channel.removeprefix("session/")
        if ident in self._running:
            self.host.own(self.end(ident), f"end the sandbox of {ident}")

    async def sweep(self) -> None:
        """End the sandboxes of sessions that are closed or not in use."""
        for ident in list(self._running):
            session = self.host.find(ident)
            if session is None or session.state.closed:
                await self.end(ident)

    async def close(self) -> None:
        if self._git.policy in confined_by:
            confined_by.remove(self._git.policy)
        await asyncio.gather(*(self._end(ident) for ident in list(self._running)))
        async with self._ending:  # of a session whose turn or process has just ended
            pass

    async def changed(self, ident: str) -> None:
        """Apply changed grants: to new connections immediately, to commands when they start. Empty: of all sessions."""
        for each in [ident] if ident else list(self._running):
            session = self.host.find(each)
            if session is not None and session.loaded and each in self._running and self.mode(session) != "off":
                await self.confine(session)
                session.runner.refresh()  # the agent's own process sees new paths after a restart

    async def _remove_links(self, channel: str, links: GitLinks) -> None:
        for path in await asyncio.to_thread(links.remove_new):
            self.host.logger.warning("%s: removed %s, a link that leads out of its git folder", channel, path)

    async def _store_links(self, session: Session) -> None:
        """Store the links from before the sandbox durably, before its first process starts."""
        folders = [session.state.cwd, *session.folders.reach()]
        left = await self.host.log.get_kv(session.channel, LINKS)
        if left is not None:  # of a host that was killed on another machine
            await self._remove_links(session.channel, msgspec.json.decode(left, type=GitLinks))
        links = self._links[session.id] = await asyncio.to_thread(GitLinks.of, folders)
        self._record.after_turn[session.channel] = partial(self._remove_links, session.channel, links)
        self.host.log.put_kv(session.channel, LINKS, msgspec.json.encode(links))
        await self.host.log.flush()

    async def end(self, session: str) -> None:
        async with self._ending:
            await self._end(session)

    async def _end(self, session: str) -> None:
        self._vendors.pop(session, None)
        channel = f"session/{session}"
        self._record.after_turn.pop(channel, None)
        links = self._links.get(session)
        if links is not None:
            await self._remove_links(channel, links)
            self._links.pop(session, None)  # it may end twice concurrently: by its turn, and as the host closes
            self.host.log.put_kv(channel, LINKS, None)
        running = self._running.pop(session, None)
        if running is not None:
            await running.close()

    # -- the choice ----------------------------------------------------------------------------------------------

    def mode(self, session: Session) -> Mode:
        return self._mode_in(session.state)

    def _mode_in(self, state: SessionState) -> Mode:
        above = self.host.find(state.parent) if state.parent is not None and chosen(state.config) is None else None
        if above is not None and above.loaded:
            return self._mode_in(above.state)  # a sub-agent works in the sandbox of its session
        remembered = self._folders.of(chosen_in(state.cwd, state.worktree), state.created)
        return self._resolved(state.config, state.agent, state.by, remembered)

    def _resolved(self, config: Json, agent: str, by: str, remembered: Mode | None) -> Mode:
        unattended = is_unattended(by)
        works = unattended and self._can_confine(agent) and available.problem() is None
        return mode_of(config, agent, self._settings, unattended=unattended, works=works, remembered=remembered)

    def choice(self, folder: str, agent: str) -> SandboxChoice:
        """Return what can be chosen for a conversation in this folder."""
        remembered = self._folders.latest(folder)
        return self._choice(self._resolved({}, agent, "", remembered), remembered)

    def _choice(self, mode: Mode, remembered: Mode | None) -> SandboxChoice:
        problem = available.problem()
        return SandboxChoice(
            mode=mode,
            modes=modes_for(required=self._settings.require, works=problem is None),
            remembered=remembered or "",
            required=self._settings.require,
            problem=available.unavailable(*problem).message if problem is not None else "",
        )

    @handle
    async def choose(self, command: ChooseSandbox, caller: c.Caller) -> FolderSandbox:
        folder = check_folder(command.folder, "folder")
        mode = chosen({KEY: command.mode}, field="mode")
        self.check_possible(mode, "mode")
        await self._folders.choose(folder, mode or "", caller.by, self.host.now())
        return FolderSandbox(normal_folder(folder), mode or "")

    @receive(SandboxChosen)
    def _chosen(self, record: Record) -> None:
        self._folders.apply(record)

    @receive(SandboxEntered)
    def _folder_entered(self, record: Record) -> None:
        self._entered.apply(record)

    @receive(SessionStarted)
    def _started(self, record: Record) -> None:
        """Remember an explicit choice of a person. Jobs, automations, sub-agents and forks choose for themselves."""
        event = record.event
        assert isinstance(event, SessionStarted)
        if event.parent is None and event.origin is None and not is_unattended(event.by):
            self._remember(event.config, chosen_in(event.cwd, event.worktree), event.by, record.channel)

    def _remember(self, config: Json, folder: str, by: str, channel: str) -> None:
        mode = chosen(config)
        if mode is not None and mode != self._folders.latest(folder):
            self.host.own(
                self._folders.choose(folder, mode, by, self.host.now()), f"sandbox of the folder of {channel}"
            )

    def routes(self, route: Routing) -> None:
        query = {"cwd": "of a new session", "agent": "of a new session", "session": "one that exists"}

        @route(
            "/v1/sandbox", "read", "The sandboxes that can be chosen for a session.", query=query, codes=["not_found"]
        )
        async def sandbox(request: Any) -> SandboxChoice:
            asked = request.query_params
            if ident := asked.get("session"):
                state = (await route.view(request).get(ident)).state
                remembered = self._folders.latest(chosen_in(state.cwd, state.worktree))
                return self._choice(self._mode_in(state), remembered)
            return self.choice(asked.get("cwd") or str(self.host.default_folder()), asked.get("agent") or "")

    def _can_confine(self, ident: str) -> bool:
        agent: object = self.host.agents.get(ident)
        return isinstance(agent, ConfinableAgent)

    def _check_agent(self, ident: str) -> None:
        """Refuse an agent whose processes cannot be confined."""
        if not self._can_confine(ident):
            other = f"acp:{ident}"
            instead = f"Choose {other!r}" if other in VENDOR_AGENTS else "Choose another agent"
            why = f"The agent {ident!r} cannot be confined: it starts its processes itself."
            raise SandboxUnavailable(f"{why} {instead}, or sandbox = 'off'.")

    @receive(GrantAdded, GrantRevoked)
    def _grants_changed(self, record: Record) -> None:
        self.access.grants_changed(record)

    @guard(_is_guarded)
    def _guard(self, command: c.Command, caller: c.Caller) -> None:
        """Refuse a value that is no sandbox, a sandbox that does not work, and a change that needs another scope: a
        sandbox lets calls pass without approval, and without one a process can do more."""
        if self._settings.require and command.__struct_config__.tag == "terminal.open":
            raise Forbidden("This host requires a sandbox (sandbox.require), and a terminal runs outside of it.")
        if not isinstance(command, c.StartSession | c.ChangeSession | c.ConfigureSession):
            plan: object = getattr(command, "plan", None)
            if isinstance(plan, AutomationPlan) and plan.prompt is not None:  # rejected now, not when it is due
                self.check_possible(chosen(plan.prompt.config, f"prompt.config.{KEY}"), f"prompt.config.{KEY}")
            return
        if isinstance(command, c.StartSession):
            before: Mode | None = self._default_for(command, caller)
            mode = chosen(command.config)
        else:
            known = self.host.find(command.session)
            before = self.mode(known) if known is not None and known.loaded else None  # not read yet: any change counts
            mode = _changed_to(command, before)
        if mode is None:
            return
        self.check_possible(mode)
        if isinstance(command, c.StartSession) and mode != "off" and command.agent in self.host.agents:
            self._check_agent(command.agent)
        if mode != before:
            caller.require("approve")

    def check_possible(self, mode: Mode | None, field: str = f"config.{KEY}") -> None:
        """Refuse a sandbox that does not work here, and a session without one where the settings require it."""
        if mode == "off" and self._settings.require:
            raise Forbidden(REQUIRED, field=field)
        if mode not in ("off", None):
            available.check()

    def _default_for(self, command: c.StartSession, caller: c.Caller) -> Mode:
        """Return the sandbox that the session would have without a choice."""
        folder = command.cwd if command.cwd is not None else str(self.host.default_folder())
        remembered = self._folders.latest(folder)
        return self._resolved({}, command.agent or "", caller.by, remembered)

    def _rule(self, session: Session, request: Request) -> Ruling | None:
        """Allow a call inside the sandbox: it cannot leave it. Rules that deny or ask come first."""
        if request.result or request.strict or request.kind not in INSIDE or request.action.unclear:
            return None
        mode = self.mode(session)
        return Ruling(True, f"sandbox: {mode}") if mode != "off" else None

    # -- processes -----------------------------------------------------------------------------------------------

    @property
    def requires(self) -> bool:
        return self._settings.require

    async def confine_folder(self, cwd: str) -> Policy:
        """Return how to start a command that belongs to no session: in the folder, without a network."""
        available.check()
        return await self._policy(cwd, (), SandboxGrants(), AgentProcess(), rules_of(self._settings, ""), "project")

    async def _policy(
        self,
        cwd: str,
        folders: Iterable[str],
        grants: SandboxGrants,
        process: AgentProcess,
        rules: SandboxRules,
        mode: Literal["project", "strict"],
    ) -> Policy:
        """Build a policy, and record what its processes can write before the first of them starts."""

        def build() -> tuple[Policy, dict[str, tuple[str, ...]]]:
            policy = build_policy(cwd, folders, grants, process, rules, mode, self._entered.made_inside)
            return policy, self._entered.news(policy)

        policy, news = await asyncio.to_thread(build)
        if news:
            await self._entered.enter(news)
        return policy

    async def confine(self, session: Session) -> Confinement:
        """Return how to start a command of the session."""
        return await self._confine(session, AgentProcess())

    async def confine_agent(self, session: str, process: AgentProcess) -> Confinement:
        """Return how to start the agent's own process for the session."""
        return await self._confine(await self.host.get(session), process)

    async def _confine(self, session: Session, process: AgentProcess) -> Confinement:
        mode = self.mode(session)
        if mode == "off":
            return OFF
        self._check_agent(session.state.agent)
        folders, grants = session.folders.reach(), self.access.granted(session)
        await self._origins.check(session, [session.state.cwd, *folders])
        rules = rules_of(self._settings, session.state.agent)
        policy = await self._policy(session.state.cwd, folders, grants, process, rules, mode)
        running = await self._sandbox(session, policy, process.vendor)
        return running.applied(policy)

    async def egress(self, session: Session) -> Egress | None:
        """Return the way out of the session's sandbox; None: it has no sandbox."""
        if isinstance(await self.confine(session), Policy):
            return self._running[session.id].egress
        return None

    def gate(self, session: Session) -> SessionGate | None:
        """Return what records the connections of the session; None: it has no sandbox."""
        return SessionGate(self.access, self._record, session) if self.mode(session) != "off" else None

    async def _sandbox(self, session: Session, policy: Policy, vendor: Vendor) -> RunningSandbox:
        """Return the session's running sandbox, with the network of this policy."""
        async with self._opening.setdefault(session.id, asyncio.Lock()):
            running = self._running.get(session.id)
            if running is not None and not running.usable:
                await self.end(session.id)
                running = None
            known = self._vendors.get(session.id, Network())
            extra = self._vendors[session.id] = _merged(known, vendor.hosts, vendor.ports)
            network = _merged(policy.network, extra.hosts, extra.ports)
            if running is None:
                await self._store_links(session)
                gate = SessionGate(self.access, self._record, session)
                try:
                    running = self._running[session.id] = await RunningSandbox.open(network, gate, policy.limits)
                except BaseException:
                    await self.end(session.id)
                    raise
            elif network != running.network:
                await running.allow(network)
            return running


def _changed_to(command: c.ChangeSession | c.ConfigureSession, before: Mode | None) -> Mode | None:
    """Return the sandbox after a command; None if it stays. Settings that are replaced lose what they do not name."""
    if isinstance(command, c.ChangeSession):
        return chosen(command.config or {})
    dropped = command.replace and KEY not in command.values and KEY not in command.keeps
    return chosen(command.values) or ("off" if dropped and before != "off" else None)


def _merged(network: Network, hosts: tuple[str, ...], ports: tuple[int, ...]) -> Network:
    return msgspec.structs.replace(
        network,
        hosts=tuple(dict.fromkeys((*network.hosts, *hosts))),
        ports=tuple(dict.fromkeys((*network.ports, *ports))),
    )


def _feature(host: HostServices) -> Sandboxes | None:
    return next((part for part in host.parts if isinstance(part, Sandboxes)), None)


def check_modes(host: Host, modes: Iterable[str]) -> None:
    """Refuse a job whose sandboxes do not work here, or that leaves one which is required."""
    feature = _feature(host)
    for mode in sorted(modes):
        if feature is not None:
            feature.check_possible(chosen({KEY: mode}, KEY), KEY)


async def confine_required(host: Host, cwd: str) -> Confinement | None:
    """Return how to start a command that belongs to no session; None: this host does not require a sandbox."""
    feature = _feature(host)
    return await feature.confine_folder(cwd) if feature is not None and feature.requires else None


async def confine(session: Session) -> Confinement:
    """Return how to start a command of the session, also on a host without this feature."""
    feature = _feature(session.host)
    if feature is not None:
        return await feature.confine(session)
    if chosen(session.state.config) in (None, "off"):
        return OFF
    raise SandboxUnavailable("This host has no sandboxes.")


async def egress_of(session: Session) -> Egress | None:
    """Return the way out of the session's sandbox, for requests that the host makes for it; None: it has no sandbox."""
    await confine(session)  # raises where a sandbox is chosen and does not work
    feature = _feature(session.host)
    return await feature.egress(session) if feature is not None else None


def gate_of(session: Session) -> SessionGate | None:
    """Return what records the connections of the session; None: it has no sandbox."""
    feature = _feature(session.host)
    return feature.gate(session) if feature is not None else None

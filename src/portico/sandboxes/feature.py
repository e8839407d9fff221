"""The feature: every session's sandbox, from the choice to the running processes.

`confine` is what all code that starts a process of a session calls. It returns a policy or, for a session without a
sandbox, the reason why there is none. It raises where a sandbox is chosen and does not work: nothing ever runs
unconfined because something failed.
"""

import asyncio

import msgspec

from portico import commands as c
from portico.errors import Forbidden, SandboxUnavailable
from portico.events import Record, SessionClosed, SessionConfigured
from portico.host.approval import Request, Ruling
from portico.host.feature import Feature, receive
from portico.host.host import Host
from portico.host.session import Session
from portico.sandbox import available
from portico.sandbox.network import Network
from portico.sandbox.policy import (
    Confinement,
    Mode,
    Policy,
)
from portico.sandbox.vendors import Vendor
from portico.sandboxes.access import AccessRequests, SessionGate
from portico.sandboxes.agent import OFF, AgentProcess, ConfinableAgent
from portico.sandboxes.build import build_policy, rules_of
from portico.sandboxes.choice import KEY, REQUIRED, chosen, is_unattended, mode_of
from portico.sandboxes.record import NetworkRecord
from portico.sandboxes.running import RunningSandbox, remove_left
from portico.settings import SandboxSettings

INSIDE = frozenset({"read", "write", "shell"})
"""Kinds of actions that happen inside. Tools of clients, of MCP servers over HTTP and of the host run elsewhere."""


class Sandboxes(Feature):
    name = "sandbox"
    needs = (NetworkRecord,)
    settings = SandboxSettings

    def __init__(self, host: Host, record: NetworkRecord) -> None:
        super().__init__(host)
        self._record = record
        self._settings = SandboxSettings()
        self._running: dict[str, RunningSandbox] = {}
        self._vendors: dict[str, Network] = {}
        """What the agent of a session reaches besides: its commands share its network."""
        self._opening: dict[str, asyncio.Lock] = {}
        agents: list[object] = list(host.agents.values())
        for agent in agents:
            if isinstance(agent, ConfinableAgent):
                agent.confine_with(self.confine_agent)
        self.access = AccessRequests(host, self.mode, self.changed)
        host.commands.guard(self._guard)
        host.policies.append(self._rule)

    def configure(self, settings: SandboxSettings) -> None:
        if settings != self._settings:
            self._settings = settings
            for session in self.host.catalogue:
                session.runner.refresh()  # an open conversation has a process of the old settings

    @receive(SessionConfigured)
    def _configured(self, record: Record) -> None:
        """Restart the agent's process with the next turn: it was started with the sandbox of before."""
        session = self.host.find(record.channel.removeprefix("session/"))
        event = record.event
        if session is not None and isinstance(event, SessionConfigured) and (KEY in event.values or event.replace):
            session.runner.refresh()

    async def recover(self) -> None:
        await asyncio.to_thread(remove_left)

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
        await asyncio.gather(*(self.end(ident) for ident in list(self._running)))

    async def changed(self, ident: str) -> None:
        """Apply changed grants: to new connections immediately, to commands when they start. Empty: of all sessions."""
        for each in [ident] if ident else list(self._running):
            session = self.host.find(each)
            if session is not None and session.loaded and each in self._running and self.mode(session) != "off":
                await self.confine(session)
                session.runner.refresh()  # the agent's own process sees new paths after a restart

    async def end(self, session: str) -> None:
        self._vendors.pop(session, None)
        running = self._running.pop(session, None)
        if running is not None:
            await running.close()

    # -- the choice ----------------------------------------------------------------------------------------------

    def mode(self, session: Session) -> Mode:
        state = session.state
        above = self.host.find(state.parent) if state.parent is not None and chosen(state.config) is None else None
        if above is not None and above.loaded:
            return self.mode(above)  # a sub-agent works in the sandbox of its session
        unattended = is_unattended(state.by)
        works = unattended and self._can_confine(state.agent) and available.problem() is None
        return mode_of(state.config, state.agent, self._settings, unattended=unattended, works=works)

    def _can_confine(self, ident: str) -> bool:
        agent: object = self.host.agents.get(ident)
        return isinstance(agent, ConfinableAgent)

    def _guard(self, command: c.Command, caller: c.Caller) -> None:
        """Refuse a value that is no sandbox, a sandbox that does not work, and a change that needs another scope: a
        sandbox lets calls pass without approval, and without one a process can do more."""
        if self._settings.require and command.__struct_config__.tag == "terminal.open":
            raise Forbidden("This host requires a sandbox (sandbox.require), and a terminal runs outside of it.")
        if not isinstance(command, c.StartSession | c.ChangeSession | c.ConfigureSession):
            return
        if isinstance(command, c.StartSession):
            before: Mode | None = "off"
            mode = chosen(command.config)
        else:
            known = self.host.find(command.session)
            before = self.mode(known) if known is not None and known.loaded else None  # not read yet: any change counts
            mode = _changed_to(command, before)
        if mode is None:
            return
        if mode != before:
            caller.require("approve")
        if mode != "off":
            available.check()
        elif self._settings.require:
            raise Forbidden(REQUIRED)

    def _rule(self, session: Session, request: Request) -> Ruling | None:
        """Allow a call inside the sandbox: it cannot leave it. Rules that deny or ask come first."""
        if request.result or request.strict or request.kind not in INSIDE or request.action.unclear:
            return None
        mode = self.mode(session)
        return Ruling(True, f"sandbox: {mode}") if mode != "off" else None

    # -- processes -----------------------------------------------------------------------------------------------

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
        if not self._can_confine(session.state.agent):
            raise SandboxUnavailable(
                f"The agent {session.state.agent!r} cannot be confined: it starts its processes itself. Choose another"
                " agent, or sandbox = 'off'."
            )
        folders, grants = session.folders.reach(), self.access.granted(session)
        rules = rules_of(self._settings, session.state.agent)
        policy = await asyncio.to_thread(build_policy, session.state.cwd, folders, grants, process, rules, mode)
        running = await self._sandbox(session, policy, process.vendor)
        return running.applied(policy)

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
                gate = SessionGate(self.access, self._record, session)
                running = self._running[session.id] = await RunningSandbox.open(network, gate, policy.limits.tmp)
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


async def confine(session: Session) -> Confinement:
    """Return how to start a command of the session, also on a host without this feature."""
    feature = next((part for part in session.host.parts if isinstance(part, Sandboxes)), None)
    if feature is not None:
        return await feature.confine(session)
    if chosen(session.state.config) in (None, "off"):
        return OFF
    raise SandboxUnavailable("This host has no sandboxes.")

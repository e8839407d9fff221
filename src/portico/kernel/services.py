"""What a session, its turns and its tools use of the host. `Host` implements it; modules about one session import this
interface, so they do not depend on the modules about all sessions."""

import asyncio
import logging
from collections.abc import Callable, Container, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from portico.kernel import commands as c
from portico.kernel.clock import Clock
from portico.kernel.commits import Commits
from portico.kernel.component import (
    Component,
    FolderCaptures,
    HostTerminals,
    Judge,
    RunCommandLine,
    Spending,
)
from portico.kernel.decide.decision import Context
from portico.kernel.events import Event, Grant, ToolSpec
from portico.kernel.log.log import Log
from portico.kernel.members import Members
from portico.kernel.state import SessionState, Summary

if TYPE_CHECKING:
    from portico.kernel.agent import Agent, AgentInfo, AgentReadiness
    from portico.kernel.approval import Policy
    from portico.kernel.session import Session
    from portico.kernel.tool import Tool
    from portico.kernel.turn import Turn

T = TypeVar("T")


class KnownGrants(Protocol):
    """The grants of the host."""

    def values(self) -> Iterable[Grant]: ...
    def now(self) -> int: ...


class HostServices(Protocol):
    log: Log
    clock: Clock
    logger: logging.Logger
    members: Members
    commits: Commits
    agents: "dict[str, Agent]"
    tools: "dict[str, Tool]"
    turns: "dict[str, Turn]"
    """The running turns by session."""
    rules: Judge
    readiness: "AgentReadiness"
    policies: "list[Policy]"
    captures: "Callable[[Session], FolderCaptures]"
    spending: Spending
    terminals: HostTerminals
    run_command: RunCommandLine
    approval_timeout: float | None
    turn_idle_timeout: float
    stopping: bool
    connected: Container[str]

    @property
    def grants(self) -> KnownGrants: ...
    @property
    def parts(self) -> Sequence[Component]: ...

    def own(self, work: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]": ...
    def now(self) -> int: ...
    def agent(self, ident: str) -> "Agent": ...
    async def described(self, ident: str) -> "AgentInfo": ...
    def tools_of(self, state: SessionState) -> list[ToolSpec]: ...
    async def get(self, ident: str) -> "Session": ...
    def find(self, ident: str) -> "Session | None": ...
    def has(self, ident: str) -> bool: ...
    def changed(self, session: "Session") -> None: ...
    def root(self, session: "Session") -> "Session": ...
    def descendants(self, ident: str) -> list[Summary]: ...
    def summaries(self) -> Iterable[Summary]: ...
    def owner_of(self, session: "Session") -> str: ...
    def context(self, session: "Session", caller: c.Caller) -> Context: ...
    def react(self, session: "Session", event: Event) -> None: ...
    async def do(self, command: c.Command, caller: c.Caller) -> Any: ...
    async def spawn(self, turn: "Turn", prompt: str, title: str, call: str | None, agent: str) -> "Turn": ...
    async def audit(self, action: str, by: str, **detail: object) -> None: ...

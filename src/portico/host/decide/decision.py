"""What a decision is made of: the state, the command, and what was asked of the world before."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from msgspec import Struct

from portico import limits
from portico.commands import Caller, Scope
from portico.errors import Conflict, LogUnavailable, RateLimited, SessionIsClosed
from portico.events import Channel, Event, Grant, Json
from portico.host.state import SessionState, is_subagent

F = TypeVar("F", bound=Callable[..., Any])


def by_type(parameter: str, *functions: F) -> dict[type[Any], F]:
    """Functions by the types that this parameter of theirs is annotated with: their signatures are the table."""
    found = [(each, each.__annotations__[parameter]) for each in functions]
    return {kind: each for each, types in found for kind in get_args(types) or (types,)}


class HostState(Struct, frozen=True):
    """What all sessions share."""

    agents: frozenset[str] = frozenset()
    grants: Mapping[str, Grant] = {}
    settings: Json = {}
    """What editors push."""
    now: int = 0
    next_grant: str = "grant-1"


class Context(Struct, frozen=True):
    caller: Caller
    new_id: Callable[[str], str]
    """The next id with that prefix."""
    running: int = 0
    """Turns that run on this host."""
    stopping: bool = False
    withdrawn: bool = False
    """The running turn is being cancelled: what it asked is not to be answered any more."""
    found: Any = None
    """What the world answered, for commands that have to ask it something first."""
    full: str = ""
    """Why there is no room for another turn on the disk; empty when there is."""
    owner: str = ""
    """The person whose session it is; empty: everybody's."""
    resting: bool = False
    """A command waits until nothing runs in the session: nothing new is started."""
    shared: HostState = HostState()
    """For commands that are about it."""

    @property
    def by(self) -> str:
        return self.caller.by

    def require(self, scope: Scope) -> None:
        self.caller.require(scope)

    def check_room(self) -> None:
        """Whether one more turn may begin."""
        if self.stopping:
            raise LogUnavailable("The host is stopping.")
        self.check_space()
        if self.running >= limits.LIVE_TURNS:
            raise RateLimited(f"{self.running} turns are running; wait for one to end.", retry_after=5)

    def check_space(self) -> None:
        """Whether clients may write more beside the session."""
        if self.full:
            raise LogUnavailable(self.full)


class Outcome(Struct, frozen=True):
    """The events that a command becomes, none where it changes nothing; a refusal is raised."""

    events: Sequence[Event] = ()
    answer: Any = None
    host_events: Sequence[Event] = ()
    """For the host's own channel, in the same commit: what has to be on record."""
    others: Sequence[tuple[Channel, Event]] = ()
    """For other sessions, in the same commit."""
    offer: str = ""
    """A queued message that the running agent is asked to take now; its answer is the command's."""


def check_open(state: SessionState, *, writes: bool = True) -> None:
    """Whether it takes messages, or goes on with what it was told."""
    if state.closed:
        raise SessionIsClosed(f"The session {state.id!r} is closed; reopen it first.")
    if writes and is_subagent(state):
        words = f"{state.id!r} is a sub-agent: only the agent that has started it talks to it."
        raise Conflict(f"{words} Write to {state.parent!r}, or fork it.")

"""The inputs and the result of a decision: the state, the context and the outcome."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from msgspec import Struct

from portico.kernel import limits
from portico.kernel.commands import Caller, Scope
from portico.kernel.errors import Conflict, LogUnavailable, RateLimited, SessionIsClosed
from portico.kernel.events import Channel, Event, Grant, Json
from portico.kernel.state import SessionState, is_subagent

F = TypeVar("F", bound=Callable[..., Any])


def by_type(parameter: str, *functions: F) -> dict[type[Any], F]:
    """Return the functions by the annotated types of this parameter: the signatures are the table."""
    found = [(each, each.__annotations__[parameter]) for each in functions]
    return {kind: each for each, types in found for kind in get_args(types) or (types,)}


def set_column(column: str, *functions: Callable[..., Any]) -> None:
    """Set a column of the commands that the functions are annotated with."""
    for kind, function in by_type("command", *functions).items():
        setattr(kind, column, function)


class HostState(Struct, frozen=True):
    """The state that all sessions share."""

    agents: frozenset[str] = frozenset()
    grants: Mapping[str, Grant] = {}
    settings: Json = {}
    """The settings that editors push."""
    now: int = 0
    next_grant: str = "grant-1"


class Context(Struct, frozen=True):
    caller: Caller
    new_id: Callable[[str], str]
    """The next id with that prefix."""
    running: int = 0
    """Number of turns that run on this host."""
    stopping: bool = False
    withdrawn: bool = False
    """The running turn is being cancelled: its approvals and questions can no longer be answered."""
    found: Any = None
    """The result of the queries before the decision, for commands that need them."""
    full: str = ""
    """Why the disk or the session has no space for another turn; empty if it has."""
    owner: str = ""
    """The person who owns the session; empty: no owner."""
    resting: bool = False
    """A command waits until no turn runs in the session: no turn is started."""
    shared: HostState = HostState()
    """For commands about the shared state."""

    @property
    def by(self) -> str:
        return self.caller.by

    def require(self, scope: Scope) -> None:
        self.caller.require(scope)

    def check_room(self) -> None:
        """Raise if no further turn may start."""
        if self.stopping:
            raise LogUnavailable("The host is stopping.")
        if self.full:
            raise LogUnavailable(self.full)
        if self.running >= limits.LIVE_TURNS:
            raise RateLimited(f"{self.running} turns are running; wait for one to end.", retry_after=5)

    def check_space(self) -> None:
        """Raise if clients may not store more data with the session."""
        if self.full:
            raise LogUnavailable(self.full)


class Outcome(Struct, frozen=True):
    """The events of a command, none if it changes nothing. Refusals are raised."""

    events: Sequence[Event] = ()
    answer: Any = None
    host_events: Sequence[Event] = ()
    """Events for the host's channel, in the same commit, such as audit events."""
    others: Sequence[tuple[Channel, Event]] = ()
    """Events for other sessions, in the same commit."""
    offer: str = ""
    """A queued message to offer to the running agent now; the result is the answer of the command."""


def check_open(state: SessionState, *, writes: bool = True) -> None:
    """Raise if the session is closed or, with `writes`, is a sub-agent."""
    if state.closed:
        raise SessionIsClosed(f"The session {state.id!r} is closed; reopen it first.")
    if writes and state.origin is not None and is_subagent(state):
        words = f"{state.id!r} is a sub-agent: only the agent that has started it talks to it."
        raise Conflict(f"{words} Write to {state.parent!r}, or fork it.")

"""The interfaces of optional components, and the defaults that the host uses without them.

The application registers the components (`compose.py`); the core imports none of them. A bare host runs sessions: it
requests approval for every call, captures no folder, creates no worktree and has no terminals.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from portico.kernel.commands import Caller, Isolation
from portico.kernel.errors import BadRequest, NotFound
from portico.kernel.events import Breadth, Channel, Json
from portico.kernel.state import ChangeList

if TYPE_CHECKING:
    from portico.kernel.approval import Request, Ruling
    from portico.kernel.session import Session
    from portico.kernel.turn import Turn


RunCommandLine = Callable[["Turn", str], Awaitable[None]]
"""Runs the command line of a turn; see `command_turn`."""


async def no_commands(turn: "Turn", line: str) -> None:
    raise BadRequest("This host runs no commands: it has no terminals.")


class Component:
    """Lifecycle callbacks of a component. Each method does nothing unless overridden."""

    async def recover(self) -> None:
        """Close what a crash left open. Called at start."""

    async def on_serving(self) -> None:
        """Called when the doors are open, before clients are served."""

    async def compactable(self, before: int) -> dict[Channel, int]:
        """Return by channel the first position to keep when events older than `before` are deleted."""
        return {}

    async def take_over(self, channels: Collection[Channel]) -> None:
        """Close what a host that is gone left open in these channels."""

    async def let_go(self, channels: Collection[Channel]) -> None:
        """Stop what still runs here for channels that another host has taken over, without writing events."""

    async def sweep(self) -> None:
        """Called once a minute."""

    async def poll(self) -> None:
        """Called once a second while the doors are open, to check what others change: files, tokens."""

    async def forget(self, session: "Session", by: str) -> None:
        """Called when the session is being deleted."""

    async def stop(self) -> None:
        """Called when the host stops, before its turns are ended: start nothing more. It may be called twice."""

    async def close(self) -> None:
        """Called when the host stops, after its turns have ended."""


class Judge:
    """Decides which calls need no approval, and which always do. By default no rule allows a call, and an answer is
    remembered only for the identical call."""

    def refuse(self, session: "Session", request: "Request") -> "Ruling | None":
        """Return a refusal. Called before all other checks."""
        return None

    def allow(self, session: "Session", request: "Request") -> "Ruling | None":
        """Return a permission. Called after the check of the session's setting."""
        return None

    def must_ask(self, session: "Session", request: "Request") -> str | None:
        """Return the rule that requires a person, even if other rules allow the call."""
        return None

    def coverage(self, request: "Request", breadth: Breadth = "shown") -> list[str] | None:
        """Return what a remembered answer covers; empty: the tool with any input; None: this breadth is not offered."""
        return [f"call:{request.tool}:{request.input}"] if breadth == "shown" else None

    def covered(self, covers: Iterable[str], request: "Request", *, allow: bool = True) -> bool:
        """Return whether a remembered answer, an approval or a refusal, covers this call."""
        return f"call:{request.tool}:{request.input}" in covers

    def push(self, values: Json) -> None:
        """Called when the settings that editors share have changed."""


class FolderCaptures:
    """Captures what the turns of one session change in its folder. By default it captures nothing."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    def begin(self, turn: str, *, resumed: bool = False) -> None:
        """Called when the turn starts. Returns immediately; `ready` waits."""

    async def ready(self, turn: str) -> None:
        """Wait for the capture. Awaited before a side effect."""

    async def finish(self, turn: str, *, effects: bool) -> None:
        """Called when the turn is over."""

    def recover(self, turn: str) -> None:
        """Called at start if the host crashed in this turn."""

    async def list(self, turn: str | None) -> ChangeList:
        return ChangeList(git=False)

    async def diff(self, path: str | None, turn: str | None) -> str:
        raise NotFound("capture", turn or self._session.id, "This host captures no folders.")


class Spending:
    """Limits the cost of turns. By default there is no limit."""

    async def start(self, turn: "Turn", *, resumed: bool) -> None:
        """Wait until the turn may start, before any agent gets the message. Raises BudgetSpent if it may not."""

    async def held_at_start(self, session: "Session", turn: str) -> bool | None:
        """Return whether a turn that waited in `start` when its host stopped was resumed. None: it did not wait."""
        return None

    async def admit(self, turn: "Turn") -> None:
        """Wait until the turn may continue, before a model call or a tool. Raises BudgetSpent if it may not."""

    def unanswered(self, caller: Caller) -> list[Any]:
        """Return the questions about exhausted limits that no turn shows and the caller may see."""
        return []


class HostTerminals:
    """The terminals of the host. By default there are none."""

    async def start(self, **details: Any) -> Any:
        """Start a shell or a program in a terminal; see `portico.features.terminals`."""
        raise BadRequest("This host has no terminals.")

    def find(self, ident: str) -> Any:
        """Return a terminal by id, or by the name that a client gave it; None: there is none."""
        return None

    def had(self, ident: str) -> bool:
        """Return whether a terminal of this id exists or existed."""
        return False

    def list(self) -> Sequence[Any]:
        return ()


class Worktrees:
    """Creates git worktrees. By default it creates none."""

    async def isolate(self, folder: str, session: str, wanted: Isolation) -> tuple[str, Json]:
        """Create a worktree for one session; return its folder and the data for `release`."""
        raise BadRequest("This host makes no worktrees.", field="worktree")

    async def release(self, tree: Json) -> str:
        """Remove the worktree unless work would be lost; return a sentence about what is kept."""
        return f"The worktree {tree.get('path')!r} stays: this host makes no worktrees."

"""What the host needs of the rooms beside it, and what stands there when a room is left out.

The application registers the rooms (`compose.py`); the core imports none of them. A bare host runs sessions: it asks
about every call, captures no folder, makes no worktree and has no terminals.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from portico.commands import Isolation
from portico.errors import BadRequest, NotFound
from portico.events import Breadth, Channel, Json
from portico.host.state import ChangeList

if TYPE_CHECKING:
    from portico.host.approval import Request, Ruling
    from portico.host.session import Session
    from portico.host.turn import Turn


class Component:
    """A room's share in the life of a host: each method is called at its time, and does nothing unless overridden."""

    async def recover(self) -> None:
        """At start: gives what a crash left open its end."""

    async def on_serving(self) -> None:
        """The doors are open, and clients are about to be served."""

    async def compactable(self, before: int) -> dict[Channel, int]:
        """By channel: the first position that has to stay when what is older than `before` goes."""
        return {}

    async def take_over(self, channels: Collection[Channel]) -> None:
        """Another host is gone: what it left open in these channels gets its end."""

    async def let_go(self, channels: Collection[Channel]) -> None:
        """Another host has taken these over: what of them still runs here ends, and nothing is written about it."""

    async def sweep(self) -> None:
        """Once a minute."""

    async def forget(self, session: "Session", by: str) -> None:
        """The session is being deleted."""

    async def close(self) -> None:
        """The host stops; its turns have ended."""


class Judge:
    """Which calls pass without a person, and which never do. As it is, nothing passes by a rule, and an answer is
    remembered for the identical call only."""

    def refuse(self, session: "Session", request: "Request") -> "Ruling | None":
        """Asked before anything else."""
        return None

    def allow(self, session: "Session", request: "Request") -> "Ruling | None":
        """Asked after the session's own setting."""
        return None

    def must_ask(self, session: "Session", request: "Request") -> str | None:
        """The rule by which a person is asked, whatever else would let it pass."""
        return None

    def coverage(self, request: "Request", breadth: Breadth = "shown") -> list[str] | None:
        """What a yes for a while is about; empty: the tool, whatever it is called with; None: not so much."""
        return [f"call:{request.tool}:{request.input}"] if breadth == "shown" else None

    def covered(self, covers: Iterable[str], request: "Request", *, allow: bool = True) -> bool:
        """Whether a remembered answer, an approval or a refusal, covers this call."""
        return f"call:{request.tool}:{request.input}" in covers

    def push(self, values: Json) -> None:
        """The settings that editors share have changed."""


class FolderCaptures:
    """What the turns of one session change in its folder. As it is, it captures nothing."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    def begin(self, turn: str, *, resumed: bool = False) -> None:
        """The turn starts. Returns immediately; `ready` waits."""

    async def ready(self, turn: str) -> None:
        """To be awaited before an effect."""

    async def finish(self, turn: str, *, effects: bool) -> None:
        """The turn is over."""

    def recover(self, turn: str) -> None:
        """The host died in this turn."""

    async def list(self, turn: str | None) -> ChangeList:
        return ChangeList(git=False)

    async def diff(self, path: str | None, turn: str | None) -> str:
        raise NotFound("capture", turn or self._session.id, "This host captures no folders.")


class Spending:
    """What turns may cost. As it is, there is no limit."""

    async def start(self, turn: "Turn", *, resumed: bool) -> None:
        """Before the agent gets the message, for every kind of agent: returns when the turn may start. BudgetSpent: it
        may not."""

    async def held_at_start(self, session: "Session", turn: str) -> bool | None:
        """Whether the turn waited in `start` when its host ended, and may wait again: then whether it was being
        resumed. None: it did not wait."""
        return None

    async def admit(self, turn: "Turn") -> None:
        """Before a model call or a tool: returns when the turn may go on. BudgetSpent: it may not."""


class Worktrees:
    """As it is, it makes none."""

    async def isolate(self, folder: str, session: str, wanted: Isolation) -> tuple[str, Json]:
        """A worktree for one session: its folder, and what `release` needs to know."""
        raise BadRequest("This host makes no worktrees.", field="worktree")

    async def release(self, tree: Json) -> str:
        """Removes it as far as nothing is lost; says what stays, in a sentence."""
        return f"The worktree {tree.get('path')!r} stays: this host makes no worktrees."

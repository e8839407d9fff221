"""What the host needs of the rooms beside it, and what stands there when a room is left out.

The application registers the rooms (`compose.py`); the core imports none of them. A bare host runs sessions: it asks
about every call, captures no folder, makes no worktree and has no terminals.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Protocol

from portico.commands import Isolation
from portico.errors import BadRequest, NotFound
from portico.events import Breadth, Channel, Json, Record
from portico.host.state import ChangeList

if TYPE_CHECKING:
    from portico.host.approval import Request, Ruling
    from portico.host.session import Session
    from portico.host.turn import Turn


class Component:
    """A room's share in the life of a host: each method is called at its time, and does nothing unless overridden."""

    prefix: str = ""
    """Of the channels whose records it is told of when they are committed."""

    async def recover(self) -> None:
        """At start: gives what a crash left open its end."""

    def apply(self, record: Record) -> None:
        """A record of one of its channels was committed."""

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


class Judge(Protocol):
    """Which calls pass without a person, and which never do."""

    def refuse(self, session: "Session", request: "Request") -> "Ruling | None":
        """Asked before anything else."""

    def allow(self, session: "Session", request: "Request") -> "Ruling | None":
        """Asked after the session's own setting."""

    def must_ask(self, session: "Session", request: "Request") -> str | None:
        """The rule by which a person is asked, whatever else would let it pass."""

    def coverage(self, request: "Request", breadth: Breadth = "shown") -> list[str] | None:
        """What a yes for a while is about; empty: the tool, whatever it is called with; None: not so much."""

    def covered(self, covers: Iterable[str], request: "Request", *, allow: bool = True) -> bool:
        """Whether a remembered answer, an approval or a refusal, covers this call."""

    def push(self, values: Json) -> None:
        """The settings that editors share have changed."""


class AskAlways:
    """Nothing passes by a rule, and an answer is remembered for the very same call only."""

    def refuse(self, session: "Session", request: "Request") -> "Ruling | None":
        return None

    def allow(self, session: "Session", request: "Request") -> "Ruling | None":
        return None

    def must_ask(self, session: "Session", request: "Request") -> str | None:
        return None

    def coverage(self, request: "Request", breadth: Breadth = "shown") -> list[str] | None:
        return [f"call:{request.tool}:{request.input}"] if breadth == "shown" else None

    def covered(self, covers: Iterable[str], request: "Request", *, allow: bool = True) -> bool:
        return f"call:{request.tool}:{request.input}" in covers

    def push(self, values: Json) -> None:
        pass


class FolderCaptures(Protocol):
    """What the turns of one session change in its folder."""

    def begin(self, turn: str, *, resumed: bool = False) -> None:
        """The turn starts. Returns at once; `ready` waits."""

    async def ready(self, turn: str) -> None:
        """To be awaited before an effect."""

    async def finish(self, turn: str, *, effects: bool) -> None:
        """The turn is over."""

    def recover(self, turn: str) -> None:
        """The host died in this turn."""

    async def list(self, turn: str | None) -> ChangeList: ...

    async def diff(self, path: str | None, turn: str | None) -> str: ...


class NoCaptures:
    def __init__(self, session: "Session") -> None:
        self._session = session

    def begin(self, turn: str, *, resumed: bool = False) -> None:
        pass

    async def ready(self, turn: str) -> None:
        pass

    async def finish(self, turn: str, *, effects: bool) -> None:
        pass

    def recover(self, turn: str) -> None:
        pass

    async def list(self, turn: str | None) -> ChangeList:
        return ChangeList(git=False)

    async def diff(self, path: str | None, turn: str | None) -> str:
        raise NotFound("capture", turn or self._session.id, "This host captures no folders.")


class Spending(Protocol):
    """What turns may cost."""

    async def admit(self, turn: "Turn") -> None:
        """Before a model call or a tool: returns when the turn may go on. BudgetSpent: it may not."""


class NoBudgets:
    async def admit(self, turn: "Turn") -> None:
        pass


class Worktrees(Protocol):
    async def isolate(self, folder: str, session: str, wanted: Isolation) -> tuple[str, Json]:
        """A worktree for one session: its folder, and what `release` needs to know."""

    async def release(self, tree: Json) -> str:
        """Removes it as far as nothing is lost; says what stays, in a sentence."""


class NoWorktrees:
    async def isolate(self, folder: str, session: str, wanted: Isolation) -> tuple[str, Json]:
        raise BadRequest("This host makes no worktrees.", field="worktree")

    async def release(self, tree: Json) -> str:
        return f"The worktree {tree.get('path')!r} stays: this host makes no worktrees."

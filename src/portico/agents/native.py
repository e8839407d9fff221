"""Sessions that an agent's own program keeps: the interface of agents that can list them and read their history.

Agents without such sessions (`loop`, `scripted`) do not implement it: the host's log has everything that they know.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from portico.kernel.state import TurnState


class NativeSession(Struct, frozen=True, omit_defaults=True):
    """A session as the agent's program lists it."""

    id: str
    """The program's id of it."""
    cwd: str = ""
    title: str = ""
    updated: int = 0
    """Its last change, in milliseconds since the epoch; 0: unknown."""
    messages: int | None = None
    """How many messages it has, if the program reports it."""


class NativePage(Struct, frozen=True, omit_defaults=True):
    sessions: list[NativeSession]
    next: str | None = None
    """The cursor of the next page; None: this is the last one."""


class NativeHistory(Struct, frozen=True):
    turns: list[TurnState]
    model: str = ""
    """The model that the session uses, if the program reports it."""


class OwnCommand(Struct, frozen=True):
    """A command line of the agent's own program."""

    command: list[str]
    env: dict[str, str]
    """Its complete environment."""


@runtime_checkable
class KeepsSessions(Protocol):
    """An agent whose program keeps sessions that can be listed, read and continued."""

    async def native_sessions(self, cwd: str | None, cursor: str | None, folders: Sequence[str]) -> NativePage:
        """Return one page, newest first where the program sorts them. `folders`: where to search if no `cwd` is given,
        for programs that list one folder at a time."""

    async def native_history(self, session: NativeSession) -> NativeHistory:
        """Return the finished turns in the program's order. Their ids are unique in the session."""

    async def native_release(self) -> None:
        """Make sure that the program can open a session whose conversation has ended here. Raises Conflict if it cannot
        now."""

    def native_command(self, session: str, cwd: str) -> str:
        """Return the shell command that continues the session in the agent's own program; empty: there is none."""

    def native_message(self, session: str, text: str) -> OwnCommand | None:
        """Return the command that sends one message to the session in the agent's own program and ends; None: there is
        none. Tests of the agent use it."""

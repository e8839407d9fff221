"""Commands about sessions that were started in an agent's own program."""

from msgspec import Struct

from portico.kernel.commands import AboutSession, Command, Http, NoLock, register


class FoundSession(Struct, frozen=True, omit_defaults=True):
    agent: str
    id: str
    """The program's id of the session."""
    cwd: str = ""
    title: str = ""
    updated: int = 0
    """Milliseconds since the epoch; 0: unknown."""
    open: bool = False
    """It changed a few seconds ago: it is probably open in its own program."""


class FoundPage(Struct, frozen=True, omit_defaults=True):
    """The sessions of one agent that were started in its own program and are not adopted."""

    agent: str
    sessions: list[FoundSession] = []
    next: str | None = None
    """The cursor of the next page."""
    problem: str = ""
    """Why there are none: the agent is slow, not signed in, or does not list its sessions."""


class FoundSessions(Struct):
    agents: list[FoundPage]
    """One page of each agent."""


class TerminalLine(Struct):
    """How to continue a session in the agent's own program."""

    agent: str
    native: str
    """The program's id of the session."""
    command: str
    """A line for a shell on the host's machine."""


class FindSessions(Command, frozen=True, tag="native.list"):
    """List sessions that were started in agents' own programs and are not adopted."""

    scope = "drive"
    lock = NoLock("It reads the lists of the programs and writes nothing.")
    gives = FoundSessions
    errors = ("not_found",)

    agent: str | None = None
    """Only the sessions of this agent; by default the first page of every agent whose program keeps sessions."""
    cwd: str | None = None
    """Only the sessions of this folder."""
    cursor: str | None = None
    """`next` of the page before; only with `agent`."""
    start: bool = True
    """Start agents that do not run. Without it, only what is cached is listed."""


class AdoptSession(Command, frozen=True, tag="session.adopt"):
    """Adopt a session that was started in an agent's own program, with its history."""

    scope = "drive"
    lock = "feature"
    http = Http("POST", "/v1/sessions/adopt", 201)
    errors = ("not_found", "conflict", "agent_failed", "agent_unavailable", "quota_exceeded")

    agent: str
    native: str
    """The program's id of the session, as `GET /v1/agents/{id}/native-sessions` lists it."""
    cwd: str = ""
    """Its folder, for programs that list one folder at a time."""
    confirm: bool = False
    """Adopt it even if it was changed a few seconds ago and may be open elsewhere."""


class ContinueInTerminal(AboutSession, frozen=True, tag="session.native"):
    """Return the command that continues a session in the agent's own program, and release the session here."""

    scope = "drive"
    lock = "session"
    gives = TerminalLine
    http = Http("POST", "/v1/sessions/{id}/native")
    errors = ("conflict",)


register(FindSessions, AdoptSession, ContinueInTerminal)

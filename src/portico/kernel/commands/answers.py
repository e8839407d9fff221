"""What commands are answered with, where it is not the summary of the thing they are about."""

from typing import Literal

from msgspec import Struct

from portico.kernel.events import Json, QuestionResponse


class Deleted(Struct):
    kept: str
    """What stays of its worktree, and why."""


class TurnBegun(Struct):
    turn: str


class Queued(Struct):
    queued: bool
    pending: str
    position: int


class Steered(Struct):
    steered: bool
    queued: bool
    """The agent did not take it: it waits for the end of the turn."""


class Offered(Struct):
    steered: bool


class DraftText(Struct):
    text: str
    """The text in every input now; empty: none."""


class ServerReply(Struct):
    """One of the two, as the server returned it."""

    result: Json | None = None
    error: Json | None = None


class Decided(Struct):
    approval: str
    allowed: bool
    by: str


class Answered(Struct):
    question: str
    response: QuestionResponse


class Drafted(Struct):
    question: str


class JobNamed(Struct):
    job: str


class TaskNamed(Struct):
    task: str


class AutomationMade(Struct, omit_defaults=True):
    automation: str
    secret: str = ""
    """Of its hook: shown this once."""


class AutomationNamed(Struct):
    automation: str


class HookSecret(Struct):
    secret: str


class RunNamed(Struct):
    run: str


class Done(Struct):
    """It was done; there is no further result."""


Busy = Literal["queue", "steer", "refuse"]
"""What becomes of a message while a turn runs."""


class Committed(Struct):
    commit: str


class Discarded(Struct):
    undo: str
    """Brings the files back, until the next discard."""


class TokenMade(Struct):
    name: str
    scopes: list[str]
    created: int
    token: str
    """This is the only time it can be seen."""
    expires: int = 0
    """Milliseconds since the epoch; 0: never."""
    tools: list[str] = []
    """The MCP tools that it was created for by name."""


class Member(Struct, omit_defaults=True):
    """One host, as lists show it."""

    id: int
    name: str
    place: str
    state: str
    """`up`, `draining`, `away` (its lease has ended), `stopped`."""
    sessions: int = 0
    running: int = 0
    capacity: int = 0
    labels: list[str] = []
    version: str = ""
    url: str = ""
    """Where clients reach it."""
    seen: int = 0
    """Its last sign of life: milliseconds since the epoch."""
    here: bool = False
    """It is the one that answers."""


class GivenUp(Struct):
    sessions: int
    """That were ended as interrupted."""


class Quota(Struct):
    name: str
    """As in the settings: `sessions`, `turns`, `terminals`, `disk_mb`."""
    used: int
    bound: int
    """0: none."""


class PersonShown(Struct):
    name: str
    scopes: list[str]
    created: int
    login: str
    """Where they log in: a provider, `proxy`, or nothing yet."""
    quotas: list[Quota]


class OwnToken(Struct, omit_defaults=True):
    name: str
    scopes: list[str]
    created: int
    expires: int = 0
    """Milliseconds since the epoch; 0: never."""
    used: int = 0
    """When it was last seen, to the minute; 0: not yet."""
    login: bool = False
    """A browser's."""
    tools: list[str] = []
    """The MCP tools that it was created for by name."""


class OwnTokenMade(OwnToken, kw_only=True):
    token: str
    """This is the only time it can be seen."""


class Planned(Struct, frozen=True):
    session: str
    action: Literal["archive", "delete"]
    owner: str
    title: str
    cwd: str
    idle_days: int


class RetentionDone(Struct):
    dry_run: bool
    sessions: list[Planned]
    """What was done; with `dry_run`, what would be."""

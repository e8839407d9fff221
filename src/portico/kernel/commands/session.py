"""Commands about a session as a whole: its beginning and end, and its settings."""

from msgspec import Struct

from portico.kernel.commands.answers import Deleted
from portico.kernel.commands.command import AboutSession, Command, Http, NoLock
from portico.kernel.events import Json, Marked, Origin

_ONE = "/v1/sessions/{id}"
_AGENT = ("conflict", "agent_failed", "agent_unavailable")


class Isolation(Struct, frozen=True, forbid_unknown_fields=True):
    """What a caller may choose about a session's own git worktree."""

    name: str = ""
    """Of the folder and the branch (`portico/NAME`); the session's id by default."""
    base: str = "HEAD"
    """The branch or commit it starts from."""


class StartSession(Command, frozen=True, tag="session.start"):
    """Start a session."""

    scope = "drive"
    lock = NoLock("It reads nothing that another start changes; ids and names are reserved without an await.")
    http = Http("POST", "/v1/sessions", 201)
    errors = ("not_found", *_AGENT, "quota_exceeded")
    private = frozenset({"uri", "parent", "origin", "model_config", "data"})
    names = ("parent",)

    agent: str | None = None
    """The first one that is ready, when none is named."""
    model: str | None = None
    cwd: str | None = None
    """The first workspace, when none is named."""
    title: str = ""
    config: Json = {}
    worktree: bool | Isolation = False
    folders: list[str] = []
    """Where it works besides `cwd`."""
    uri: str | None = None
    """What its client calls it."""
    parent: str | None = None
    origin: Origin | None = None
    """Where a child comes from. A `fork` begins with the turns of that session, through that turn."""
    model_config: Json = {}
    draft: bool = False
    """It is not listed before its first message. Without one, it is deleted when its client leaves, or after a day."""
    data: dict[str, Json] = {}
    """What clients share through it from the beginning, by its key; see `client.share`."""
    place: str = ""
    """Of several hosts: the place or a label of the one that is to run it; its folder's place, when none is named."""
    label: str = ""
    """A label that its host has."""


class ForkSession(AboutSession, frozen=True, tag="session.fork"):
    """A new session from this one's turns."""

    scope = "drive"
    lock = NoLock("It reads nothing that another start changes; ids and names are reserved without an await.")
    http = Http("POST", f"{_ONE}/fork", 201)
    errors = (*_AGENT, "quota_exceeded")
    private = frozenset({"uri"})

    turn: str | None = None
    """The last turn that it has; all finished ones, when none is named."""
    uri: str | None = None


class RenameSession(AboutSession, frozen=True, tag="session.rename"):
    """Give a session another title."""

    scope = "drive"
    lock = NoLock("It is a fact that holds in any order with others.")
    plain = True

    title: str


class ChangeSession(AboutSession, frozen=True, tag="session.change"):
    """Rename, change the model, archive, mark as read, configure: all that is named, or nothing."""

    scope = "drive"
    http = Http("PATCH", _ONE)

    title: str | None = None
    model: str | None = None
    archived: bool | None = None
    read: bool | None = None
    config: Json | None = None


class SetModel(AboutSession, frozen=True, tag="session.model"):
    """Change the model, from the next turn on."""

    scope = "drive"

    model: str
    config: Json = {}


class ConfigureSession(AboutSession, frozen=True, tag="session.configure"):
    """Change a session's settings. What loosens approval needs the scope approve."""

    scope = "drive"

    values: Json
    replace: bool = False
    """All settings are these now, but for `keeps` and those that only a caller with the scope approve can drop."""
    keeps: list[str] = []


class ArchiveSession(AboutSession, frozen=True, tag="session.archive"):
    """Archive a session, or take it back."""

    scope = "drive"
    lock = NoLock("It is a fact that holds in any order with others.")
    plain = True
    private = frozenset({"only"})

    archived: bool
    only: Marked | None = None
    """The session as a whole, or its own conversation; both by default."""


class MarkRead(AboutSession, frozen=True, tag="session.read"):
    """Mark a session as read or unread."""

    scope = "drive"
    private = frozenset({"only"})

    read: bool
    only: Marked | None = None


class CloseSession(AboutSession, frozen=True, tag="session.close"):
    """Release the agent; the history stays."""

    scope = "drive"
    lock = "at_rest"
    waits = True
    http = Http("POST", f"{_ONE}/close")
    private = frozenset({"reason"})

    reason: str = ""


class ReopenSession(AboutSession, frozen=True, tag="session.reopen"):
    """Take a closed session up again."""

    scope = "drive"
    http = Http("POST", f"{_ONE}/reopen")


class DeleteSession(AboutSession, frozen=True, tag="session.delete"):
    """Delete a session, its history and its children."""

    scope = "drive"
    lock = NoLock("It closes the session at rest, and removes it under the session's lock if it is still there.")
    owner_only = True
    gives = Deleted
    http = Http("DELETE", _ONE)


class TruncateSession(AboutSession, frozen=True, tag="session.truncate"):
    """Forget the turns after one."""

    scope = "drive"
    lock = "at_rest"
    waits = True
    http = Http("POST", f"{_ONE}/truncate")

    turn: str | None = None
    """The last that stays; none stays, when none is named."""

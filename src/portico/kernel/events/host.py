"""What happens to the host: its start and end, the audit record, remembered answers, the catalogue of sessions."""

from typing import Literal

from msgspec import Struct

from portico.kernel.events.shapes import Event, Json


class HostStarted(Event, frozen=True, tag="host.started"):
    version: str
    pid: int


class LogLost(Event, frozen=True, tag="log.lost"):
    """A start found that the last numbers of the log are gone (a cut write-ahead log, an older copy of the file). None
    of them is given again, and cursors from before are refused."""

    count: int
    """0: it is not known how many; the mark of the log is lost, too."""
    last: int
    """The last number that was given before."""


class HostStopped(Event, frozen=True, tag="host.stopped"):
    reason: str = ""


class Audited(Event, frozen=True, tag="audit"):
    """Append-only record of what matters for security (SECURITY 26). Never carries a secret."""

    action: str
    by: str
    detail: Json = {}


Breadth = Literal["shown", "folder", "all"]
"""What an answer that is remembered is about: what the card showed, the folder of its files, or all that the tool does
(of files, all in the session's folder)."""


class Grant(Struct, frozen=True, omit_defaults=True):
    """A remembered answer. Deny beats allow; it never crosses agents; it always ends."""

    id: str
    agent: str
    tool: str
    """The tool's name, or `*`."""
    allow: bool
    expires: int
    """Milliseconds since the epoch."""
    session: str | None = None
    project: str | None = None
    """Exactly one of session and project (a folder) is set."""
    pattern: str = "*"
    """Glob over the path or command line of the call; it counts where nothing is in `covers`."""
    covers: list[str] = []
    """What was shown with the answer: `command:npm test`, `line:...`, `path:...`, `folder:...`, `call:...`."""
    owner: str = ""
    """The person in whose sessions it counts. Empty: in everybody's."""


class GrantAdded(Event, frozen=True, tag="grant.added"):
    grant: Grant
    by: str


class GrantRevoked(Event, frozen=True, tag="grant.revoked"):
    grant: str
    by: str


class SessionListed(Event, frozen=True, tag="session.listed"):
    """The catalogue has a new session; its own story is on its own channel."""

    session: str
    agent: str
    cwd: str
    parent: str | None = None


class SessionRemoved(Event, frozen=True, tag="session.removed"):
    """A session and its history were deleted. Its id is never used again."""

    session: str
    by: str

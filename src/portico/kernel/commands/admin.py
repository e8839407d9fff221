"""Commands for the administration of the host: tokens, people, old sessions, logins of agents, other hosts."""

from portico.kernel.commands.answers import Done, GivenUp, Member, OwnTokenMade, PersonShown, RetentionDone, TokenMade
from portico.kernel.commands.command import Command, Http, NoLock
from portico.kernel.events import Json


class ImportSession(Command, frozen=True, tag="session.import"):
    """A session of another host."""

    scope = "admin"
    lock = NoLock("It reads nothing that another start changes; ids and names are reserved without an await.")
    method = "import_archive"

    archive: Json
    """As `GET /v1/sessions/{id}/archive` gives it."""
    agent: str | None = None
    cwd: str | None = None


class AddToken(Command, frozen=True, tag="token.add"):
    """Make a token."""

    scope = "admin"
    lock = "feature"
    gives = TokenMade
    http = Http("POST", "/v1/tokens", 201)
    secret = True

    name: str
    scopes: list[str] | None = None
    """Absent: only `read`."""
    days: float | None = None
    """How long it lasts; absent: until it is revoked."""
    tools: list[str] = []
    """MCP tools beyond those of `read`, `drive` and `jobs`."""


class RevokeToken(Command, frozen=True, tag="token.revoke"):
    """End a token."""

    scope = "admin"
    lock = "feature"
    about = "token"
    gives = Done
    http = Http("DELETE", "/v1/tokens/{id}", 204)
    errors = ()

    token: str
    """Its name."""


class SignIn(Command, frozen=True, tag="agent.sign_in"):
    """Give the agents that ask for it a token of a resource, or take it back with an empty one.

    It counts for the editor that gives it; from elsewhere for all sessions that no editor has begun, which needs the
    scope `admin`.
    """

    scope = "any"
    lock = NoLock("An agent replaces its token in one step; the last one counts.")
    gives = Done
    secret = True

    resource: str
    token: str = ""
    seconds: float | None = None
    """How long it is valid, where that is known."""


class AddOwnToken(Command, frozen=True, tag="own_token.add"):
    """Make a token of your own."""

    scope = "any"
    lock = "feature"
    gives = OwnTokenMade
    http = Http("POST", "/v1/people/me/tokens", 201)
    secret = True

    name: str
    scopes: list[str] | None = None
    """Absent: only `read`."""
    days: float | None = None
    """How long it lasts; absent: for ever."""
    tools: list[str] = []
    """As in `token.add`."""


class RevokeOwnToken(Command, frozen=True, tag="own_token.revoke"):
    """End one of your tokens."""

    scope = "any"
    lock = "feature"
    gives = Done
    http = Http("DELETE", "/v1/people/me/tokens/{name}", 204)
    errors = ()

    name: str


class AddPerson(Command, frozen=True, tag="person.add"):
    """Add a person."""

    scope = "admin"
    lock = "feature"
    gives = PersonShown
    http = Http("POST", "/v1/people", 201)

    name: str
    scopes: list[str] = []
    """Those of `people.scopes`, when none are named."""


class RemovePerson(Command, frozen=True, tag="person.remove"):
    """Remove a person; their tokens end."""

    scope = "admin"
    lock = "feature"
    gives = Done
    http = Http("DELETE", "/v1/people/{name}", 204)
    errors = ()

    name: str


class ErasePerson(Command, frozen=True, tag="person.erase"):
    """Delete all sessions of a person."""

    scope = "admin"
    lock = "feature"
    gives = RetentionDone
    http = Http("POST", "/v1/people/{name}/erase")
    errors = ()

    name: str
    dry_run: bool = False


class ApplyRetention(Command, frozen=True, tag="retention.apply"):
    """Archive and delete old sessions by rule."""

    scope = "admin"
    lock = "feature"
    gives = RetentionDone
    http = Http("POST", "/v1/retention")
    errors = ()

    dry_run: bool = False


class DrainHost(Command, frozen=True, tag="host.drain"):
    """Hand over the sessions of a host: idle ones immediately, busy ones after their turn."""

    scope = "admin"
    lock = NoLock("It is one statement in the table of hosts.")
    gives = Member
    http = Http("POST", "/v1/hosts/{name}/drain")
    errors = ("not_found", "conflict")

    name: str


class GiveUpHost(Command, frozen=True, tag="host.give_up"):
    """Give up a host that is gone for good: its turns end as interrupted."""

    scope = "admin"
    lock = NoLock("Each session is taken over once, in one statement.")
    gives = GivenUp
    http = Http("POST", "/v1/hosts/{name}/give-up")
    errors = ("not_found", "conflict")

    name: str

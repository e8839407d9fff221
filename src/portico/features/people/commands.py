"""Commands about people and tokens, sharing, and the retention of sessions. What they return is here too."""

from typing import Literal

from msgspec import Struct

from portico.kernel.commands import AboutSession, Command, Done, Http, register
from portico.kernel.events import Right


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


class ShareSession(AboutSession, frozen=True, tag="session.share"):
    """Let another person, or everybody, read, drive or (with that scope) approve in a session of one's own."""

    scope = "drive"
    owner_only = True
    http = Http("POST", "/v1/sessions/{id}/share")

    person: str
    """A name, or `*` for everybody."""
    rights: list[Right] | None = None
    """From now on, in place of those from before; each of them includes reading. Absent: only `read`."""


class UnshareSession(AboutSession, frozen=True, tag="session.unshare"):
    """Take back what a person, or everybody, was allowed in a session."""

    scope = "drive"
    owner_only = True
    http = Http("POST", "/v1/sessions/{id}/unshare")

    person: str


register(ShareSession, UnshareSession)
register(AddToken, RevokeToken, AddOwnToken, RevokeOwnToken, AddPerson, RemovePerson, ErasePerson, ApplyRetention)

"""Commands of whoever looks after the host: tokens, logins of agents, sessions of other hosts."""

from portico.commands.answers import Done, TokenMade
from portico.commands.command import Command, Http
from portico.events import Json


class ImportSession(Command, frozen=True, tag="session.import"):
    """A session of another host."""

    scope = "admin"
    about = "host"
    method = "import_archive"

    archive: Json
    """As `GET /v1/sessions/{id}/archive` gives it."""
    agent: str | None = None
    cwd: str | None = None


class AddToken(Command, frozen=True, tag="token.add"):
    """Make a token."""

    scope = "admin"
    about = "host"
    gives = TokenMade
    http = Http("POST", "/v1/tokens", 201)
    secret = True

    name: str
    scopes: list[str] | None = None
    """Absent: only `read`."""
    days: float | None = None
    """How long it lasts; absent: until it is revoked."""


class RevokeToken(Command, frozen=True, tag="token.revoke"):
    """End a token."""

    scope = "admin"
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
    about = "host"
    gives = Done
    secret = True

    resource: str
    token: str = ""
    seconds: float | None = None
    """How long it is valid, where that is known."""


AdminCommand = ImportSession | AddToken | RevokeToken | SignIn

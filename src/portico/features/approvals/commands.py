"""Commands about what is allowed without asking: remembered answers, and the settings that editors share."""

from portico.kernel import limits
from portico.kernel.commands import Command, Done, Http, register
from portico.kernel.events import Grant, Json


class AddGrant(Command, frozen=True, tag="grant.add"):
    """Remember an answer in advance."""

    scope = "approve"
    lock = "host"
    gives = Grant
    http = Http("POST", "/v1/grants", 201)
    errors = ("not_found", "conflict")

    agent: str
    tool: str
    allow: bool
    session: str | None = None
    project: str | None = None
    pattern: str = "*"
    seconds: float = limits.GRANT_SECONDS


class RevokeGrant(Command, frozen=True, tag="grant.revoke"):
    """Forget a remembered answer."""

    scope = "approve"
    lock = "host"
    about = "grant"
    gives = Done
    http = Http("DELETE", "/v1/grants/{id}", 204)

    grant: str


class ConfigureHost(Command, frozen=True, tag="host.configure"):
    """Settings that editors share through the host. What loosens approval needs the scope approve."""

    scope = "drive"
    lock = "host"
    gives = Done

    values: Json
    replace: bool = False
    action: Json = {}


register(AddGrant, RevokeGrant, ConfigureHost)

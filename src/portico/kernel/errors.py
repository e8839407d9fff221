"""Everything that can go wrong, in one small tree.

    PorticoError
    ├── BadRequest            the caller's input is wrong; `field` names the place
    ├── WrongMethod           the page exists, the HTTP method does not fit
    ├── NotFound              no such session, turn, agent, model, approval, path ...
    ├── Conflict              right request, wrong moment
    │   ├── TurnInProgress
    │   ├── AlreadyAnswered   an approval or question has its first valid answer
    │   ├── AlreadyExists
    │   ├── SessionClosed
    │   └── HomeInUse         another host runs on this home folder
    ├── Unauthenticated       no valid token
    ├── Forbidden             a valid token, without the scope, from a foreign page, or outside the jail
    ├── Misdirected           the Host header names another host
    ├── TooLarge              a body, frame, file or list over its limit
    ├── RateLimited           slow down; `retry_after` seconds
    ├── QuotaExceeded         a person has as much as they may; `field` names the setting
    ├── CursorLost            a cursor of another log or beyond its end; take a snapshot
    ├── TooSlow               a reader behind its bound; it can resume from its cursor
    ├── Unreachable           a client finds no host, or it does not answer
    ├── PlaceAway             no host that sees the session's files is there
    ├── LogUnavailable        the disk is full, read-only or locked; what was acknowledged is safe
    │   ├── LogDamaged        the file is not a (whole) database
    │   └── LogTooNew         written by a newer Portico
    ├── SandboxUnavailable    a sandbox is required and does not work here
    └── AgentError            the agent failed
        ├── AgentUnavailable  it is not installed, not signed in or will not start
        │   └── SignInRequired
        ├── AgentDied         its process ended or fell silent in mid-turn
        └── BudgetSpent       a person stopped it when its budget was spent

Every leaf has a stable `code`. `KINDS` maps codes to HTTP status, JSON-RPC code and exit code; doors read that
table and nothing else. A message describes what happened and what to do next; names in it are quoted with `!r`.
"""

import difflib
from collections.abc import Iterable
from typing import NamedTuple, Self


class PorticoError(Exception):
    code: str = "internal"

    def __init__(self, message: str, *, field: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.retry_after = retry_after

    def copy(self) -> Self:
        """The same refusal for another caller. An exception that is raised again and again keeps every traceback."""
        error = type(self).__new__(type(self), self.message)
        error.__dict__.update(self.__dict__)
        return error


class BadRequest(PorticoError):
    code = "bad_request"


class WrongMethod(PorticoError):
    code = "wrong_method"

    def __init__(self, method: str, allowed: list[str]) -> None:
        super().__init__(f"{method} is not possible here; use {' or '.join(allowed)}.", field="method")
        self.allowed = allowed


class NotFound(PorticoError):
    code = "not_found"

    def __init__(self, what: str, name: str, hint: str = "") -> None:
        super().__init__(f"There is no {what} {name!r}." + (f" {hint}" if hint else ""))
        self.what = what
        self.name = name


class Conflict(PorticoError):
    code = "conflict"


class TurnInProgress(Conflict):
    code = "turn_in_progress"


class AlreadyAnswered(Conflict):
    code = "already_answered"


class AlreadyExists(Conflict):
    code = "already_exists"


class SessionIsClosed(Conflict):
    code = "session_closed"


class HomeInUse(Conflict):
    code = "home_in_use"


class Unauthenticated(PorticoError):
    code = "unauthenticated"


class Forbidden(PorticoError):
    code = "forbidden"


class Misdirected(PorticoError):
    code = "misdirected"


class TooLarge(PorticoError):
    code = "too_large"


class RateLimited(PorticoError):
    code = "rate_limited"


class QuotaExceeded(PorticoError):
    code = "quota_exceeded"


class CursorLost(PorticoError):
    code = "cursor_lost"


class TooSlow(PorticoError):
    code = "too_slow"


class Unreachable(PorticoError):
    code = "unreachable"


class PlaceAway(PorticoError):
    code = "place_away"


class LogUnavailable(PorticoError):
    code = "log_unavailable"


class LogDamaged(LogUnavailable):
    code = "log_damaged"


class LogTooNew(LogUnavailable):
    code = "log_too_new"


class SandboxUnavailable(PorticoError):
    code = "sandbox_unavailable"


class AgentError(PorticoError):
    code = "agent_failed"


class AgentUnavailable(AgentError):
    code = "agent_unavailable"


class SignInRequired(AgentUnavailable):
    code = "sign_in_required"


class AgentDied(AgentError):
    code = "agent_died"


class BudgetSpent(AgentError):
    code = "budget_spent"


class Kind(NamedTuple):
    http: int
    rpc: int
    exit: int


KINDS: dict[str, Kind] = {
    "internal": Kind(500, -32603, 70),
    "bad_request": Kind(400, -32602, 64),
    "wrong_method": Kind(405, -32601, 64),
    "not_found": Kind(404, -32008, 66),
    "conflict": Kind(409, -32011, 75),
    "turn_in_progress": Kind(409, -32004, 75),
    "already_answered": Kind(409, -32011, 75),
    "already_exists": Kind(409, -32010, 73),
    "session_closed": Kind(409, -32001, 75),
    "home_in_use": Kind(409, -32603, 75),
    "unauthenticated": Kind(401, -32007, 77),
    "forbidden": Kind(403, -32009, 77),
    "misdirected": Kind(421, -32009, 77),
    "too_large": Kind(413, -32602, 65),
    "rate_limited": Kind(429, -32603, 75),
    "quota_exceeded": Kind(429, -32603, 75),
    "cursor_lost": Kind(410, -32008, 75),
    "too_slow": Kind(503, -32603, 75),
    "unreachable": Kind(503, -32603, 69),
    "place_away": Kind(503, -32603, 75),
    "log_unavailable": Kind(503, -32603, 74),
    "log_damaged": Kind(503, -32603, 74),
    "log_too_new": Kind(503, -32603, 74),
    "sandbox_unavailable": Kind(503, -32603, 69),
    "agent_failed": Kind(502, -32603, 69),
    "agent_unavailable": Kind(503, -32603, 69),
    "sign_in_required": Kind(503, -32007, 77),
    "agent_died": Kind(502, -32603, 69),
    "budget_spent": Kind(409, -32603, 75),
}


def nearest(name: str, known: Iterable[str], likeness: float = 0.5) -> str | None:
    """Return the known name that is most similar to an unknown one."""
    return next(iter(difflib.get_close_matches(name, list(known), 1, likeness)), None)


def kind(error: BaseException) -> Kind:
    """The row of `error` in the table; anything that is not ours is internal."""
    return KINDS[error.code if isinstance(error, PorticoError) else "internal"]

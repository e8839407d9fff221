"""Requests to a host that may lack events that other hosts have acknowledged.

While the database is unavailable, requests are answered from the state of this host. It cannot know that something does
not exist: such a request gets 503 with `Retry-After`, never 404 or 410.
"""

from starlette.types import Scope

from portico.kernel.errors import CursorLost, LogUnavailable, NotFound, PorticoError

BEHIND = "portico.behind"
"""Scope key: whether events that another host has acknowledged may be missing here."""


def is_behind(scope: Scope) -> bool:
    return bool(scope.get(BEHIND))


def not_current() -> LogUnavailable:
    return LogUnavailable(
        "The database is away, and this host may not know yet what others have written; try again.", retry_after=1
    )


def certain(scope: Scope, error: PorticoError) -> PorticoError:
    """Return the error, or 503 if it is a not-found error and this host may lack the data."""
    return not_current() if is_behind(scope) and isinstance(error, NotFound | CursorLost) else error

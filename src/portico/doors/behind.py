"""A host that may not know yet what other hosts have acknowledged.

While the database is away, requests are answered from what this host knows. It cannot know that something does not
exist: such a request gets 503 with `Retry-After`, never 404 or 410.
"""

from starlette.types import Scope

from portico.errors import CursorLost, LogUnavailable, NotFound, PorticoError

BEHIND = "portico.behind"
"""In the scope of a request: whether something that another host has acknowledged may be missing here."""


def is_behind(scope: Scope) -> bool:
    return bool(scope.get(BEHIND))


def not_current() -> LogUnavailable:
    return LogUnavailable(
        "The database is away, and this host may not know yet what others have written; try again.", retry_after=1
    )


def certain(scope: Scope, error: PorticoError) -> PorticoError:
    """The error, unless it is that something is not there and this host cannot know that."""
    return not_current() if is_behind(scope) and isinstance(error, NotFound | CursorLost) else error

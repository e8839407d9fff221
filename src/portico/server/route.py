"""The route table of a door. Each route has the scope that a caller needs.

Doors register routes only through these tables, so a route without a scope cannot exist. The scope `open` is for
routes without authentication: the login page, the files of the pages, the health check.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypedDict

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from portico.kernel.commands import SCOPES, Caller, Scope

__all__ = ["SCOPES", "Caller", "Doc", "Param", "Route", "Scope", "Socket", "Table", "caller"]

Endpoint = Callable[[Request], Awaitable[Response]]


class Param(NamedTuple):
    """A query parameter that is not a plain string."""

    meaning: str
    kind: Any
    required: bool = False


class LaterShape(NamedTuple):
    """A type that is built when the OpenAPI document is requested: building all types would delay the start."""

    make: Callable[[], Any]


Media = str | tuple[str, ...] | None
"""Content types of a response; None: no body."""


class Doc(TypedDict, total=False):
    """Details of a route for the OpenAPI document. Body and answer are msgspec types."""

    body: Any
    """`str`: raw text. A `LaterShape` is built on demand."""
    answer: Any
    """The type of the JSON response. A tuple lists alternatives. A `LaterShape` is built on demand."""
    media: str | tuple[str, ...]
    """Content types of a response that is not JSON."""
    status: int
    """HTTP status of the response; default 200."""
    others: Mapping[int, Media]
    """Further responses by status."""
    errors: list[str]
    """Error codes of the Portal door, which are returned with the status of a normal response."""
    codes: list[str]
    """Codes from errors.py that this route can return in addition to those of every route."""
    query: dict[str, str | Param]
    """Query parameters and their descriptions."""


class Route(Struct, frozen=True):
    """One HTTP route. `path` uses Starlette syntax. Either `endpoint` returns a response, or `app` is an ASGI app."""

    path: str
    endpoint: Endpoint | None
    scope: Scope
    methods: tuple[str, ...] = ("GET",)
    summary: str = ""
    app: ASGIApp | None = None
    stream: bool = False
    """A long response (an event stream). Revoking the token ends it."""
    limited: bool = False
    """Counts against the caller's rate."""
    max_body: int | None = None
    doc: Doc = field(default_factory=lambda: Doc())


class Socket(Struct, frozen=True):
    """One WebSocket route. Revoking the token closes it."""

    path: str
    endpoint: Callable[[WebSocket], Awaitable[None]]
    scope: Scope
    summary: str = ""


Table = list[Route | Socket]


def caller(connection: Request | WebSocket) -> Caller:
    found = connection.scope["portico.caller"]
    assert isinstance(found, Caller)
    return found

"""How a door says what it offers: a table of routes, each with the scope a caller needs.

Doors hand these tables to the gate and cannot reach the server in any other way, so a route without a scope cannot
exist. `open` is for what a stranger may see: the login page, the pages' own files, the health check.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypedDict

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from portico.commands import SCOPES, Caller, Scope

__all__ = ["SCOPES", "Caller", "Doc", "Param", "Route", "Scope", "Socket", "Table", "caller"]

Endpoint = Callable[[Request], Awaitable[Response]]


class Param(NamedTuple):
    """A query parameter that is more than some text."""

    meaning: str
    kind: Any
    required: bool = False


class LaterShape(NamedTuple):
    """A shape that is made when somebody asks for the document: all of them together would delay the start."""

    make: Callable[[], Any]


Media = str | tuple[str, ...] | None
"""Content types of an answer; None: it has no body."""


class Doc(TypedDict, total=False):
    """What the OpenAPI document says of a route beyond its path: the shapes are msgspec types."""

    body: Any
    """`str`: raw text. A `LaterShape` is one that is not made yet."""
    answer: Any
    """As JSON; several types in a tuple are alternatives."""
    media: str | tuple[str, ...]
    """Content types of an answer that is no JSON."""
    status: int
    """Of the answer: 200 unless said otherwise."""
    others: Mapping[int, Media]
    """Further answers by status."""
    errors: list[str]
    """The codes of the Portal door, which come with the answer's own status."""
    codes: list[str]
    """The codes of errors.py that this route has beyond those of every route."""
    query: dict[str, str | Param]
    """Query parameters: what they mean."""


class Route(Struct, frozen=True):
    """One HTTP route. `path` is in Starlette's syntax. `endpoint` makes a response, or `app` is plain ASGI."""

    path: str
    endpoint: Endpoint | None
    scope: Scope
    methods: tuple[str, ...] = ("GET",)
    summary: str = ""
    app: ASGIApp | None = None
    stream: bool = False
    """A long answer (an event stream): revoking the token ends it."""
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

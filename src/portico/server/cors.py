"""CORS for the origins in `security.allow_origins`. By default there are none.

A browser lets a page of another origin read our responses only if a header allows it, and sends a preflight request
before it sends a token. Origins that are not listed exactly get no header, so the browser blocks the response.
"""

from starlette.datastructures import Headers
from starlette.types import Scope

_METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"
_HEADERS = b"Authorization, Content-Type, If-Match, Last-Event-ID"
_EXPOSED = b"Content-Disposition, ETag, Retry-After"
_REMEMBERED_SECONDS = b"600"
"""How long a browser caches a preflight: the longest time that all browsers honour."""

RawHeaders = list[tuple[bytes, bytes]]


def is_preflight(scope: Scope, headers: Headers, origins: frozenset[str]) -> bool:
    """Return whether this is a preflight for an allowed origin. Any other OPTIONS is an ordinary request."""
    return (
        scope["type"] == "http"
        and scope["method"] == "OPTIONS"
        and headers.get("origin") in origins
        and "access-control-request-method" in headers
    )


def answer_headers(origin: str | None, origins: frozenset[str]) -> RawHeaders:
    """Return the headers of every response to a page of an allowed origin."""
    if not origins:
        return []
    vary = (b"vary", b"Origin")  # also without a match: a cache must not serve the response of one origin to another
    if origin is None or origin not in origins:
        return [vary]
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-credentials", b"true"),
        (b"access-control-expose-headers", _EXPOSED),
        vary,
    ]


def preflight_headers() -> RawHeaders:
    return [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _HEADERS),
        (b"access-control-max-age", _REMEMBERED_SECONDS),
    ]

"""Parsed request headers for the gate. A client sends the same headers with every request, so the results are cached:
the values, and the caller of the token or cookie.

Only the headers are used here, never the path or the query. A cached identity is valid until a token changes.
"""

import time
from http.cookies import CookieError, SimpleCookie
from typing import Literal, NamedTuple

from starlette.types import Scope

from portico.kernel.cache import Cache
from portico.server.identity import Tokens
from portico.server.proxy import ROOT
from portico.server.route import Caller

RawHeaders = list[tuple[bytes, bytes]]

HEAD = "portico.head"
"""Scope key of the `RequestHead`."""
PAGE_KEY = b"x-portico-key"
"""Header with the key of a page. Streams, sockets and links cannot set headers and use `?key=`."""
_REMEMBERED = 500
_REMEMBERED_BYTES = 4096
"""Largest cached head: enough for a browser with cookies. Larger heads are parsed each time, so the cache needs at
most 2 MB."""


class HeaderIdentity(NamedTuple):
    """The callers that the token and the cookie in the headers identify."""

    version: tuple[object, ...]
    """The version of the tokens; see `Tokens.version`."""
    until: float
    token: Caller | None = None
    cookie: Caller | None = None
    cookie_text: str = ""
    keyed: bool = False
    """Whether the headers also contain the page key of the cookie."""
    owner: Literal["", "token", "cookie"] = ""


class RequestHead:
    def __init__(self, raw: RawHeaders, cookie_name: str) -> None:
        self.size = sum(len(name) + len(value) + 4 for name, value in raw)
        self._values: dict[bytes, bytes] = {}
        for name, value in raw:
            self._values.setdefault(name, value)
        # All Host headers: if there are two, a proxy may have checked the other one.
        self.host = ", ".join([value.decode("latin-1") for name, value in raw if name == b"host"]) or None
        self.bearer = self._bearer()
        self.length = self.get(b"content-length")
        self.request_id = self.get(b"x-request-id")
        self.bodiless = self.length is None and b"transfer-encoding" not in self._values
        self.checked_for: object = None
        """The configured hosts and origins for which `host` was checked and `extra` was built."""
        self.origin_checked_for: object = None
        """The configured origins for which the origin of these headers was accepted."""
        self.extra: RawHeaders = []
        """Headers of every response."""
        self._cookie_name = cookie_name
        self._identity: HeaderIdentity | None = None

    def get(self, name: bytes) -> str | None:
        value = self._values.get(name)
        return value.decode("latin-1") if value is not None else None

    def __contains__(self, name: bytes) -> bool:
        return name in self._values

    def identify(self, tokens: Tokens) -> HeaderIdentity:
        found = self._identity
        if found is None or found.version != tokens.version(found.owner) or time.time() >= found.until:
            found = self._look_up(tokens, tokens.version())
            if found.token == tokens.owner():
                found = found._replace(version=found.version[:1], owner="token")
            elif found.cookie == tokens.owner():
                found = found._replace(version=found.version[0:3:2], owner="cookie")
            self._identity = found
        return found

    def _look_up(self, tokens: Tokens, version: tuple[object, ...]) -> HeaderIdentity:
        if self.bearer is not None:
            caller = tokens.by_token(self.bearer)
            return HeaderIdentity(version, tokens.until(caller), caller)
        cookie = self._cookie()
        caller = tokens.by_cookie(cookie) if cookie is not None else None
        if cookie is None or caller is None:
            return HeaderIdentity(version, float("inf"))
        keyed = tokens.is_page_key(self.get(PAGE_KEY) or "", cookie)
        until = min(tokens.cookie_until(cookie), tokens.until(caller))
        return HeaderIdentity(version, until, None, caller, cookie, keyed)

    def _bearer(self) -> str | None:
        kind, _, token = (self.get(b"authorization") or "").partition(" ")
        return token.strip() if kind.lower() == "bearer" and token.strip() else None

    def _cookie(self) -> str | None:
        text = self.get(b"cookie")
        if text is None:
            return None
        try:
            morsel = SimpleCookie(text).get(self._cookie_name)
        except CookieError:
            return None
        return morsel.value if morsel else None


class RequestHeads:
    """Cache of the heads of the last few hundred clients."""

    def __init__(self, cookie: str) -> None:
        self._cookie = cookie
        self._known = Cache[tuple[object, ...], RequestHead](_REMEMBERED)

    def of(self, scope: Scope) -> RequestHead:
        raw: RawHeaders = scope["headers"]
        key = (scope["scheme"], scope.get(ROOT), *raw)
        head = self._known.get(key)
        if head is None:
            head = RequestHead(raw, self.cookie_of(scope))
            if head.size <= _REMEMBERED_BYTES:
                self._known[key] = head
        return head

    def cookie_of(self, scope: Scope) -> str:
        """Return the name of the cookie. Over TLS, browsers let only this server set a cookie with these prefixes.
        Without TLS, only the port in the name separates two servers on one machine."""
        if scope["scheme"] not in ("https", "wss"):
            return self._cookie
        return f"__Secure-{self._cookie}" if scope.get(ROOT) else f"__Host-{self._cookie}"

"""Who may come in. Every request passes here before any door sees it.

The order: the size of the head (413), the Host header (421), a browser's preflight, the route (404, 405), the body's
announced size (413), who it is (401, slowed when wrong again and again), the scope (403), where it comes from (403),
the caller's rate (429). The doors' tables are the only way to a route.
"""

import asyncio
import logging
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.convertors import Convertor
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from portico import limits
from portico.correlation import REQUEST, begin_request
from portico.doors.body import error_response, too_large
from portico.doors.cors import answer_headers, is_preflight, preflight_headers
from portico.doors.ending import POLICY_VIOLATION, SERVICE_RESTART, Ending
from portico.doors.identity import Tokens
from portico.doors.origin import check_host, check_origin, is_editor_origin
from portico.doors.proxy import PROXY_LOGIN, ROOT
from portico.doors.rate import WrongTokens
from portico.doors.route import Caller, Route, Socket, Table
from portico.errors import Forbidden, NotFound, PorticoError, RateLimited, TooLarge, Unauthenticated, WrongMethod
from portico.host.rate import Bucket

logger = logging.getLogger("portico.gate")

Audit = Callable[..., Awaitable[None]]

SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


VISITOR = "portico.visitor"
"""In the scope of a request with a valid cookie. Alone it is good for the pages' own files: see `identity`."""
PAGE_KEY = "x-portico-key"
"""Where a page's key stands; in `?key=` for what cannot have headers: streams, sockets, links."""


class _Entry:
    """A route, compiled when somebody first comes near it: most never are, and all together delay the start."""

    def __init__(self, route: Route | Socket) -> None:
        self.route = route
        self.app = _app(route)

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], str, dict[str, Convertor[Any]]]:
        return compile_path(self.route.path)

    def match(self, path: str) -> dict[str, object] | None:
        regex, _, converters = self._compiled
        found = regex.match(path)
        if found is None:
            return None
        try:
            return {name: converters[name].convert(value) for name, value in found.groupdict().items()}
        except ValueError:
            return None


class Gate:
    def __init__(
        self,
        tokens: Tokens,
        *,
        hosts: frozenset[str],
        origins: frozenset[str] = frozenset(),
        cookie: str = "portico",
        audit: Audit | None = None,
    ) -> None:
        self.tokens = tokens
        self.hosts = hosts
        self.origins = origins
        self.cookie = cookie
        self.table: Table = []
        self.requests: defaultdict[int, int] = defaultdict(int)
        self.connections = 0
        self.by_proxy: Callable[[str], Caller] | None = None
        """Who somebody is whom a trusted proxy has logged in."""
        self._audit = audit
        self._entries: defaultdict[str, list[_Entry]] = defaultdict(list)
        self._wrong = WrongTokens()
        self._buckets: dict[str, Bucket] = {}
        self._open: defaultdict[str, set[asyncio.Task[None]]] = defaultdict(set)
        self._ending: dict[asyncio.Task[None], int] = {}

    def add(self, table: Table) -> None:
        """The only way for a door to be reached."""
        for route in table:
            if not isinstance(route, Route | Socket):
                raise TypeError(f"{route!r} is not a Route or Socket: it would have no scope.")
            self.table.append(route)
            self._entries[_first(route.path)].append(_Entry(route))

    # -- one request -------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        self.connections += 1
        try:
            if self.connections > limits.CONNECTIONS:
                raise RateLimited(f"There are {limits.CONNECTIONS} open connections.", retry_after=5)
            await self._enter(scope, receive, send)
        except PorticoError as error:
            await self._refuse(scope, receive, send, error)
        finally:
            self.connections -= 1

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        _check_head(scope)
        begin_request(headers.get("x-request-id"))
        # All of them: of two, a proxy on the way may have looked at the other.
        check_host(", ".join(headers.getlist("host")) or None, self.hosts)
        if is_preflight(scope, headers, self.origins):
            await self._answer_preflight(headers, send)
            return
        entry = self._find(scope)
        route = entry.route
        if isinstance(route, Route):
            receive = _bounded(headers, receive, route.max_body or limits.BODY_BYTES)
        caller = await self._identify(scope, headers, route)
        caller.require(route.scope)
        if route.scope != "open" or scope.get("method") not in ("GET", "HEAD"):
            self._check_origin(scope, headers, route)
        if isinstance(route, Route) and route.limited:
            self._charge(caller)
        scope["portico.caller"] = caller
        if isinstance(route, Route):
            send = self._counting(headers, send)
        if isinstance(route, Socket) or route.stream:
            await self._hold(caller, entry, scope, receive, send)
        else:
            await entry.app(scope, receive, send)

    def _find(self, scope: Scope) -> _Entry:
        path: str = scope["path"]
        for key in (_first(path), "{"):
            allowed: set[str] = set()
            for entry in self._entries.get(key, ()):
                params = entry.match(path)
                if params is None:
                    continue
                if isinstance(entry.route, Socket) is not (scope["type"] == "websocket"):
                    continue
                if isinstance(entry.route, Route) and scope["method"] not in _methods(entry.route):
                    allowed.update(entry.route.methods)
                    continue
                scope["path_params"] = params
                return entry
            if allowed and key != "{":  # the pages' catch-all matches everything: it says nothing about this path
                raise WrongMethod(scope["method"], sorted(allowed))
        raise NotFound("page", path)

    def _check_origin(self, scope: Scope, headers: Headers, route: Route | Socket) -> None:
        if _token(scope, headers, route) and isinstance(route, Socket) and is_editor_origin(headers.get("origin")):
            return
        secure = scope["scheme"] in ("https", "wss")
        check_origin(
            headers.get("host", ""), secure, headers.get("origin"), headers.get("sec-fetch-site"), self.origins
        )

    # -- who it is ---------------------------------------------------------------------------------------------

    async def _identify(self, scope: Scope, headers: Headers, route: Route | Socket) -> Caller:
        token = _token(scope, headers, route)
        if token is not None:
            caller = self.tokens.by_token(token)
            if caller is None:
                await self.wrong_token(scope)
                raise Unauthenticated("This token is not valid (any more). `portico token list` shows the valid ones.")
            return caller
        named = scope.get(PROXY_LOGIN)
        if named is not None and self.by_proxy is not None:
            return self.by_proxy(named)
        cookie = self._cookie(scope, headers)
        caller = self.tokens.by_cookie(cookie) if cookie else None
        if cookie is not None and caller is not None:
            scope[VISITOR] = True
            if self.tokens.is_page_key(_page_key(scope, headers), cookie):
                return caller
        if not self.tokens.required:
            return self.tokens.owner()
        if route.scope == "open":
            return Caller("", "nobody", frozenset())
        if caller is not None:
            raise Unauthenticated("The page has lost the key of its login (or never had it): log in again at /login.")
        raise Unauthenticated("A token is needed: 'Authorization: Bearer TOKEN', or log in at /login.")

    def cookie_of(self, scope: Scope) -> str:
        """Its name. Over TLS browsers themselves refuse such a name to whoever is not this very server; without it
        only the port in the name keeps two servers of one machine apart."""
        if scope["scheme"] not in ("https", "wss"):
            return self.cookie
        return f"__Secure-{self.cookie}" if scope.get(ROOT) else f"__Host-{self.cookie}"

    def _cookie(self, scope: Scope, headers: Headers) -> str | None:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self.cookie_of(scope))
        except CookieError:
            return None
        return morsel.value if morsel else None

    async def wrong_token(self, scope: Scope) -> None:
        """Slows down whoever guesses, by address; a right token is never held up."""
        address = scope["client"][0] if scope.get("client") else "unknown"
        wait, news = self._wrong.count(address, time.monotonic())
        if news and self._audit is not None:
            await self._audit("login.failed", "nobody", address=address, slowed=wait > 0)
        if wait > 0:
            await asyncio.sleep(wait)
            raise RateLimited("Too many wrong tokens from this address.", retry_after=60)

    def _charge(self, caller: Caller) -> None:
        bucket = self._buckets.setdefault(caller.id, Bucket(limits.REQUESTS_PER_SECOND, limits.REQUEST_BURST))
        wait = bucket.take(time.monotonic())
        if wait > 0:
            raise RateLimited("Too many requests with this token.", retry_after=wait)

    # -- long connections --------------------------------------------------------------------------------------

    async def _hold(self, caller: Caller, entry: _Entry, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs a stream or socket so that it can be ended from here: its token was revoked, or the host stops."""
        task = asyncio.current_task()
        assert task is not None
        self._open[caller.id].add(task)
        ending = Ending(scope, send)
        try:
            await entry.app(scope, receive, ending.send)
        except asyncio.CancelledError:
            code = self._ending.get(task)
            if code is None:
                raise
            task.uncancel()
            await ending.say(code)
        finally:
            self._ending.pop(task, None)
            self._open[caller.id].discard(task)
            if not self._open[caller.id]:
                del self._open[caller.id]

    def close_revoked(self) -> int:
        """Ends the open connections of tokens that are no more; returns how many. Called every second."""
        for ident in [each for each in self._buckets if self.tokens.by_id(each) is None]:
            del self._buckets[ident]
        revoked = [ident for ident in self._open if self.tokens.by_id(ident) is None]
        return sum(self._close(ident, POLICY_VIOLATION) for ident in revoked)

    def close_all(self) -> None:
        """The host stops: every stream and socket ends."""
        for ident in list(self._open):
            self._close(ident, SERVICE_RESTART)

    def _close(self, ident: str, code: int) -> int:
        tasks = [task for task in self._open[ident] if task not in self._ending]
        for task in tasks:
            self._ending[task] = code
            task.cancel()
        return len(tasks)

    # -- answers -----------------------------------------------------------------------------------------------

    def _counting(self, headers: Headers, send: Send) -> Send:
        extra = [*SECURITY_HEADERS, *answer_headers(headers, self.origins)]
        if ident := REQUEST.get():
            extra.append((b"x-request-id", ident.encode()))

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.requests[message["status"]] += 1
                message["headers"] = [*message.get("headers", []), *extra]
            await send(message)

        return counted

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, error: PorticoError) -> None:
        if scope["type"] == "websocket":
            await _refuse_socket(scope, receive, send, error)
            return
        await error_response(error)(scope, receive, self._counting(Headers(scope=scope), send))

    async def _answer_preflight(self, headers: Headers, send: Send) -> None:
        send = self._counting(headers, send)
        await send({"type": "http.response.start", "status": 204, "headers": preflight_headers()})
        await send({"type": "http.response.body", "body": b""})


def _methods(route: Route) -> tuple[str, ...]:
    return (*route.methods, "HEAD") if "GET" in route.methods else route.methods


def _first(path: str) -> str:
    """The first segment of a path: routes are found by it. Patterns that begin with a parameter share a key."""
    segment = path.lstrip("/").partition("/")[0]
    return "{" if segment.startswith("{") else segment


def _app(route: Route | Socket) -> ASGIApp:
    if isinstance(route, Socket):
        return _socket_app(route)
    if route.app is not None:
        return _guarded(route.app)
    assert route.endpoint is not None
    return _guarded(_endpoint_app(route))


def _endpoint_app(route: Route) -> ASGIApp:
    endpoint = route.endpoint
    assert endpoint is not None

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    return app


def _guarded(app: ASGIApp) -> ASGIApp:
    """Our errors become answers; anything else is a bug: logged here, and told without its traceback."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watching(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await app(scope, receive, watching)
        except PorticoError as error:
            if started:
                logger.warning("%s broke off: %s", scope["path"], error.message)
                raise
            await error_response(error)(scope, receive, send)
        except ClientDisconnect:
            return  # it left in the middle of its body, or was cut off: nobody is there to be told
        except Exception:
            logger.exception("%s %s failed", scope.get("method"), scope["path"])
            if started:
                raise
            await error_response(PorticoError("Something went wrong inside the host; its log says what."))(
                scope, receive, send
            )

    return guarded


def _socket_app(route: Socket) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await route.endpoint(WebSocket(scope, receive, send))

    return app


async def _refuse_socket(scope: Scope, receive: Receive, send: Send, error: PorticoError) -> None:
    """Before the upgrade there is still HTTP to answer with. Editors know 403 for a wrong token, not 401."""
    response = error_response(Forbidden(error.message) if isinstance(error, Unauthenticated) else error)
    await receive()
    if "websocket.http.response" in scope.get("extensions", {}):
        await send(
            {
                "type": "websocket.http.response.start",
                "status": response.status_code,
                "headers": response.raw_headers,
            }
        )
        await send({"type": "websocket.http.response.body", "body": response.body})
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": error.message[:120]})


def _check_head(scope: Scope) -> None:
    size = len(scope["raw_path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    if size > limits.HEADER_BYTES:
        raise TooLarge(f"Address and headers are over the limit of {limits.HEADER_BYTES} bytes.", field="headers")


def _bounded(headers: Headers, receive: Receive, limit: int) -> Receive:
    announced = headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced) > limit:
        raise too_large(limit)
    received = 0

    async def bounded() -> Message:
        nonlocal received
        message = await receive()
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            if received > limit:
                raise too_large(limit)
        return message

    return bounded


def _token(scope: Scope, headers: Headers, route: Route | Socket) -> str | None:
    """The token that the caller itself presents; a cookie is another matter."""
    return _bearer(headers) or (_query_token(scope) if isinstance(route, Socket) else None)


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None


def _page_key(scope: Scope, headers: Headers) -> str:
    values = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("key")
    return headers.get(PAGE_KEY) or (values[0] if values else "")


def _query_token(scope: Scope) -> str | None:
    values = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("tkn")
    return values[0] if values else None

"""Access control. Every request passes the gate before it reaches a door.

The checks, in order: the size of the head (413), the Host header (421), a CORS preflight, the route (404, 405), the
announced size of the body (413), authentication (401, delayed after repeated wrong tokens), the scope (403), the origin
(403), the rate limit of the caller (429). Routes can be reached only through the tables of the doors.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from portico import limits
from portico.kernel import limits as kernel_limits
from portico.kernel.correlation import NEW_IDS, REQUEST, request_id
from portico.kernel.errors import BadRequest, Forbidden, NotFound, PorticoError, RateLimited, TooLarge, Unauthenticated
from portico.kernel.rate import Bucket
from portico.server.behind import BEHIND, certain
from portico.server.body import error_response, too_large
from portico.server.cors import answer_headers, is_preflight, preflight_headers
from portico.server.identity import Tokens
from portico.server.origin import check_host, check_origin, check_sent_by_us, is_editor_origin
from portico.server.proxy import PROXY_LOGIN, SCHEME_KNOWN
from portico.server.rate import WrongTokens
from portico.server.request_head import HEAD, PAGE_KEY, RawHeaders, RequestHead, RequestHeads
from portico.server.route import Caller, Route, Socket, Table
from portico.server.router import Router, RouterEntry
from portico.server.stream_end import POLICY_VIOLATION, SERVICE_RESTART, StreamEnd

logger = logging.getLogger("portico.gate")
access_logger = logging.getLogger("portico.access")

Audit = Callable[..., Awaitable[None]]

SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


VISITOR = "portico.visitor"
"""Set in the scope of a request with a valid cookie. The cookie alone allows only the files of the pages: see
`identity`."""
LOGIN = "portico.login"
"""The cookie of the login, in the scope of its requests. Its open connections are closed when the login ends."""
_NOBODY = Caller("", "nobody", frozenset())
_STRICT = "/v1"
"""Path prefix where unknown query parameters are refused. The doors of the seeds ignore them, as they always did."""
_CREDENTIALS = ("key", "tkn")


class _Answer:
    """Counts a response, adds the common headers, and records whether it has started."""

    __slots__ = ("_extra", "_requests", "_send", "started")

    def __init__(self, send: Send, extra: RawHeaders, requests: dict[int, int]) -> None:
        self._send = send
        self._extra = extra
        self._requests = requests
        self.started = False

    def send(self, message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            self.started = True
            self._requests[message["status"]] += 1
            ident = (b"x-request-id", REQUEST.get().encode())
            message["headers"] = [*message.get("headers", ()), *self._extra, ident]
        return self._send(message)


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
        self.public_origin = ""
        """The origin of `server.public_url`. A proxy that ends TLS there need not be in `server.trusted_proxies`."""
        self.cookie = cookie
        self.table: Table = []
        self.requests: defaultdict[int, int] = defaultdict(int)
        self.connections = 0
        self.by_proxy: Callable[[str], Caller] | None = None
        """Returns the caller for a person whom a trusted proxy has logged in."""
        self.catch_up: Callable[[], Awaitable[bool]] | None = None
        """In a cluster: returns True once this host has all events that others acknowledged before this request."""
        self.share: Callable[[], Awaitable[None]] | None = None
        """In a cluster: exchanges new tokens with the other hosts, in both directions."""
        self._audit = audit
        self._router = Router()
        self.heads = RequestHeads(cookie)
        self._wrong = WrongTokens()
        self._buckets: dict[str, Bucket] = {}
        self._open: defaultdict[str, dict[asyncio.Task[None], tuple[Caller, str]]] = defaultdict(dict)
        """Open streams and sockets by token id, with the caller and the cookie of the login."""
        self._ending: dict[asyncio.Task[None], int] = {}

    def add(self, table: Table) -> None:
        """Register the routes of a door. A door cannot be reached in any other way."""
        for route in table:
            if not isinstance(route, Route | Socket):
                raise TypeError(f"{route!r} is not a Route or Socket: it would have no scope.")
            self.table.append(route)
            self._router.add(route)

    def taken(self, route: Route | Socket) -> str | None:
        """Return the path of an existing route that would receive the requests of this one."""
        return self._router.taken(route)

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a route that is neither a stream nor a socket, for a caller whom another host has authenticated."""
        entry, who = self._router.find(scope), scope["portico.caller"]
        if entry.socket or entry.held or entry.route.scope == "open":
            raise NotFound("page", scope["path"])
        who.require(entry.route.scope)
        scope[HEAD] = self.heads.of(scope)
        answer = _Answer(send, [], self.requests)
        await _run(entry.app, scope, receive, answer.send, answer)

    # -- one request -------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        self.connections += 1
        if access_logger.isEnabledFor(logging.DEBUG):
            send = _logged(scope, send)
        try:
            if self.connections > limits.CONNECTIONS:
                raise RateLimited(f"There are {limits.CONNECTIONS} open connections.", retry_after=5)
            await self._enter(scope, receive, send)
        except PorticoError as error:
            await self._refuse(scope, receive, send, error)
        finally:
            self.connections -= 1

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = self.heads.of(scope)
        if self.public_origin and self._came_through_tls(scope, head):
            scope["scheme"] = "wss" if scope["type"] == "websocket" else "https"
            head = self.heads.of(scope)
        REQUEST.set(request_id(head.request_id) if head.request_id else next(NEW_IDS))
        if head.size + len(scope["raw_path"]) + len(scope["query_string"]) > limits.HEADER_BYTES:
            raise TooLarge(f"Address and headers are over the limit of {limits.HEADER_BYTES} bytes.", field="headers")
        if head.checked_for != (self.hosts, self.origins):
            self._check_host(head)
        if scope.get("method") == "OPTIONS" and is_preflight(scope, Headers(scope=scope), self.origins):
            await self._answer_preflight(head, send)
            return
        entry = self._router.find(scope)
        route = entry.route
        if isinstance(route, Route) and not head.bodiless:
            receive = _bounded(head, receive, route.max_body or limits.BODY_BYTES)
        caller = await self._identify(scope, head, entry)
        caller.require(route.scope)
        changes = route.scope != "open" or scope.get("method") not in ("GET", "HEAD")
        if changes and head.origin_checked_for is not self.origins:
            self._check_origin(scope, head, entry)
        if PROXY_LOGIN in scope and head.bearer is None and _changes_by_get(scope, route):
            check_sent_by_us(head.get(b"origin"), head.get(b"sec-fetch-site"))
        if caller.id:
            self.tokens.used[caller.id] = int(time.time() * 1000)
        scope["portico.caller"], scope[HEAD] = caller, head
        if self.catch_up is not None and route.scope != "open" and (scope["path_params"] or entry.held):
            scope[BEHIND] = not await self.catch_up()
        if isinstance(route, Socket):
            await self._hold(caller, entry, scope, receive, send)
            return
        if scope["query_string"] and route.path.startswith(_STRICT):
            _check_query(route, scope)
        if route.limited:
            self._charge(caller)
        answer = _Answer(send, head.extra, self.requests)
        if route.stream and scope["method"] == "HEAD":
            with suppress(ClientDisconnect):
                await _run(entry.app, scope, receive, _head_alone(answer.send), answer)
        elif route.stream:
            await self._hold(caller, entry, scope, receive, answer.send, answer)
        else:
            await _run(entry.app, scope, receive, answer.send, answer)

    def _check_host(self, head: RequestHead) -> None:
        check_host(head.host, self.hosts)
        head.extra = [*SECURITY_HEADERS, *answer_headers(head.get(b"origin"), self.origins)]
        head.checked_for = (self.hosts, self.origins)

    def _came_through_tls(self, scope: Scope, head: RequestHead) -> bool:
        """Whether a proxy ended TLS before this host: the request names `server.public_url`, which is https. So the
        cookie of a login is never one that a browser sends over plain HTTP to that name."""
        if scope["scheme"] not in ("http", "ws") or SCHEME_KNOWN in scope:
            return False
        return self.public_origin == f"https://{(head.host or '').lower()}"

    def is_secure(self, scope: Scope) -> bool:
        """Whether the client uses TLS. Some proxies replace the Host header; then the origin of a form shows it."""
        if scope["scheme"] == "https":
            return True
        if SCHEME_KNOWN in scope or not self.public_origin.startswith("https:"):
            return False
        return (self.heads.of(scope).get(b"origin") or "").lower() == self.public_origin

    def _check_origin(self, scope: Scope, head: RequestHead, entry: RouterEntry) -> None:
        origin = head.get(b"origin")
        if entry.socket and is_editor_origin(origin) and (head.bearer or _query(scope, "tkn")):
            return
        secure = scope["scheme"] in ("https", "wss")
        if self.public_origin and (origin or "").lower() == self.public_origin:
            head.origin_checked_for = self.origins
            return
        check_origin(head.get(b"host") or "", secure, origin, head.get(b"sec-fetch-site"), self.origins)
        head.origin_checked_for = self.origins

    # -- who it is ---------------------------------------------------------------------------------------------

    async def _identify(self, scope: Scope, head: RequestHead, entry: RouterEntry) -> Caller:
        found, token = head.identify(self.tokens), head.bearer
        if self.share is not None and found.token is found.cookie is None and _claims(scope, head):
            await self.share()
            found = head.identify(self.tokens)
        caller = found.token
        if token is None and entry.socket and (token := _query(scope, "tkn")):
            caller = self.tokens.by_token(token)
        if token is not None:
            if caller is None:
                await self.wrong_token(scope)
                raise Unauthenticated("This token is not valid (any more). `portico token list` shows the valid ones.")
            return caller
        named = scope.get(PROXY_LOGIN)
        if named is not None and self.by_proxy is not None:
            return self.by_proxy(named)
        if found.cookie is not None:
            scope[VISITOR] = True
            if found.keyed or (PAGE_KEY not in head and self._is_keyed(scope, found.cookie_text)):
                scope[LOGIN] = found.cookie_text
                return found.cookie
        if not self.tokens.required:
            return self.tokens.owner()
        if entry.route.scope == "open":
            return _NOBODY
        if found.cookie is not None:
            raise Unauthenticated("The page has lost the key of its login (or never had it): log in again at /login.")
        raise Unauthenticated("A token is needed: 'Authorization: Bearer TOKEN', or log in at /login.")

    def _is_keyed(self, scope: Scope, cookie: str) -> bool:
        return self.tokens.is_page_key(_query(scope, "key") or "", cookie)

    async def wrong_token(self, scope: Scope) -> None:
        """Delay repeated wrong tokens from one address. A valid token is never delayed."""
        address = scope["client"][0] if scope.get("client") else "unknown"
        wait, news = self._wrong.count(address, time.monotonic())
        if news and self._audit is not None:
            await self._audit("login.failed", "nobody", address=address, slowed=wait > 0)
        if wait > 0:
            await asyncio.sleep(wait)
            raise RateLimited("Too many wrong tokens from this address.", retry_after=60)

    def _charge(self, caller: Caller) -> None:
        bucket = self._buckets.setdefault(
            caller.id, Bucket(kernel_limits.REQUESTS_PER_SECOND, kernel_limits.REQUEST_BURST)
        )
        wait = bucket.take(time.monotonic())
        if wait > 0:
            raise RateLimited("Too many requests with this token.", retry_after=wait)

    # -- long connections --------------------------------------------------------------------------------------

    async def _hold(
        self,
        caller: Caller,
        entry: RouterEntry,
        scope: Scope,
        receive: Receive,
        send: Send,
        answer: _Answer | None = None,
    ) -> None:
        """Run a stream or socket so that the gate can end it when its token is revoked or the host stops."""
        task = asyncio.current_task()
        assert task is not None
        self._open[caller.id][task] = (caller, scope.get(LOGIN, ""))
        ending = StreamEnd(scope, send)
        try:
            if answer is None:
                await entry.app(scope, receive, ending.send)
            else:
                await _run(entry.app, scope, receive, ending.send, answer)
        except asyncio.CancelledError:
            code = self._ending.get(task)
            if code is None:
                raise
            task.uncancel()
            await ending.say(code)
        finally:
            self._ending.pop(task, None)
            self._open[caller.id].pop(task, None)
            if not self._open[caller.id]:
                del self._open[caller.id]

    def close_revoked(self) -> int:
        """Close the open connections of revoked or changed tokens and of finished logins; return their number. Called
        every second."""
        for ident in [each for each in self._buckets if self.tokens.by_id(each) is None]:
            del self._buckets[ident]
        valid = {ident: self.tokens.by_id(ident) for ident in self._open}
        return sum(self._close(ident, POLICY_VIOLATION, unless=caller) for ident, caller in valid.items())

    def close_all(self) -> None:
        """Close every stream and socket because the host stops."""
        for ident in list(self._open):
            self._close(ident, SERVICE_RESTART)

    def _close(self, ident: str, code: int, unless: Caller | None = None) -> int:
        tasks = [
            task
            for task, (caller, login) in self._open[ident].items()
            if task not in self._ending and (caller != unless or (login and self.tokens.is_logged_out(login)))
        ]
        for task in tasks:
            self._ending[task] = code
            task.cancel()
        return len(tasks)

    # -- answers -----------------------------------------------------------------------------------------------

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, error: PorticoError) -> None:
        if scope["type"] == "websocket":
            await _refuse_socket(scope, receive, send, error)
            return
        origin = Headers(scope=scope).get("origin")
        extra = [*SECURITY_HEADERS, *answer_headers(origin, self.origins)]
        await error_response(error)(scope, receive, _Answer(send, extra, self.requests).send)

    async def _answer_preflight(self, head: RequestHead, send: Send) -> None:
        send = _Answer(send, head.extra, self.requests).send
        await send({"type": "http.response.start", "status": 204, "headers": preflight_headers()})
        await send({"type": "http.response.body", "body": b""})


def _logged(scope: Scope, send: Send) -> Send:
    """Log one line per response, so that an operator can find a reported request by its id."""

    async def logged(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.accept"):
            status = message.get("status", 101)
            access_logger.debug("%s %s %d", scope.get("method", "GET"), scope["path"], status)
        await send(message)

    return logged


async def _run(app: ASGIApp, scope: Scope, receive: Receive, send: Send, answer: _Answer) -> None:
    """Run an app and convert its `PorticoError`s to responses. Any other exception is a bug: it is logged, and the
    response has no traceback."""
    try:
        await app(scope, receive, send)
    except PorticoError as error:
        if answer.started:
            logger.warning("%s broke off: %s", scope["path"], error.message)
            raise
        await error_response(certain(scope, error))(scope, receive, send)
    except ClientDisconnect:
        return  # the client disconnected during its body, or was cut off: no response is possible
    except Exception:  # a bug in a door also gets a response, without the traceback
        logger.exception("%s %s failed", scope.get("method"), scope["path"])
        if answer.started:
            raise
        unknown = PorticoError("Something went wrong inside the host; its log says what.")
        await error_response(unknown)(scope, receive, send)


async def _refuse_socket(scope: Scope, receive: Receive, send: Send, error: PorticoError) -> None:
    """Refuse a socket with an HTTP response before the upgrade. Editors expect 403 for a wrong token, not 401."""
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


def _changes_by_get(scope: Scope, route: Route | Socket) -> bool:
    """Return whether this is a GET that changes state. The portal has such routes: they accept GET and POST."""
    return isinstance(route, Route) and scope["method"] == "GET" and "POST" in route.methods and route.scope != "read"


def _bounded(head: RequestHead, receive: Receive, limit: int) -> Receive:
    announced = head.length or "0"
    if not announced.isdecimal() or int(announced) > limit:
        raise too_large(limit)
    if head.length is not None:
        return receive  # the parser accepts no more bytes than announced
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


def _claims(scope: Scope, head: RequestHead) -> bool:
    """Return whether the request has credentials."""
    return head.bearer is not None or b"cookie" in head or _query(scope, "tkn") is not None


def _head_alone(send: Send) -> Send:
    """End the response to HEAD after its headers. Otherwise a stream would block the connection forever."""

    async def alone(message: Message) -> None:
        await send(message)
        await send({"type": "http.response.body", "body": b""})
        raise ClientDisconnect

    return alone


def _check_query(route: Route, scope: Scope) -> None:
    """Refuse unknown query parameters: if a misspelt one were ignored, the response would be wrong."""
    known = route.doc.get("query", {})
    for name in parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True):
        if name not in known and name not in _CREDENTIALS:
            there = f"there are: {', '.join(known)}" if known else "there are none"
            raise BadRequest(f"There is no parameter {name!r} here; {there}.", field=name)


def _query(scope: Scope, name: str) -> str | None:
    query = scope["query_string"]
    values = parse_qs(query.decode("latin-1")).get(name) if query else None
    return values[0] if values else None

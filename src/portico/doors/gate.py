"""Who may come in. Every request passes here before any door sees it.

The order: the size of the head (413), the Host header (421), a browser's preflight, the route (404, 405), the body's
announced size (413), who it is (401, slowed when wrong again and again), the scope (403), where it comes from (403),
the caller's rate (429). The doors' tables are the only way to a route.
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
from portico.correlation import REQUEST, begin_request
from portico.doors.behind import BEHIND, certain
from portico.doors.body import error_response, too_large
from portico.doors.cors import answer_headers, is_preflight, preflight_headers
from portico.doors.origin import check_host, check_origin, is_editor_origin
from portico.doors.proxy import PROXY_LOGIN
from portico.doors.rate import WrongTokens
from portico.doors.request_head import HEAD, PAGE_KEY, RawHeaders, RequestHead, RequestHeads
from portico.doors.route import Caller, Route, Socket, Table
from portico.doors.router import Router, RouterEntry
from portico.doors.stream_end import POLICY_VIOLATION, SERVICE_RESTART, StreamEnd
from portico.errors import BadRequest, Forbidden, NotFound, PorticoError, RateLimited, TooLarge, Unauthenticated
from portico.host.rate import Bucket
from portico.people.identity import Tokens

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
"""In the scope of a request with a valid cookie. Alone it is good for the pages' own files: see `identity`."""
LOGIN = "portico.login"
"""In the scope of a request by a login: its cookie. What it holds open ends with the login."""
_NOBODY = Caller("", "nobody", frozenset())
_STRICT = "/v1"
"""Where a parameter that a route does not have is refused. The doors of the seeds pass over it, as they always did."""
_CREDENTIALS = ("key", "tkn")


class _Answer:
    """Counts an answer, adds what every one carries, and knows whether it has begun."""

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
        self.cookie = cookie
        self.table: Table = []
        self.requests: defaultdict[int, int] = defaultdict(int)
        self.connections = 0
        self.by_proxy: Callable[[str], Caller] | None = None
        """Who somebody is whom a trusted proxy has logged in."""
        self.catch_up: Callable[[], Awaitable[bool]] | None = None
        """Several hosts: what another one has acknowledged before this request is known here when it returns True."""
        self.share: Callable[[], Awaitable[None]] | None = None
        """Several hosts: a token that another one has made before is known here when it returns, and ours there."""
        self._audit = audit
        self._router = Router()
        self.heads = RequestHeads(cookie)
        self._wrong = WrongTokens()
        self._buckets: dict[str, Bucket] = {}
        self._open: defaultdict[str, dict[asyncio.Task[None], tuple[Caller, str]]] = defaultdict(dict)
        """By token: what is held open, by whom, and the cookie of the login."""
        self._ending: dict[asyncio.Task[None], int] = {}

    def add(self, table: Table) -> None:
        """The only way for a door to be reached."""
        for route in table:
            if not isinstance(route, Route | Socket):
                raise TypeError(f"{route!r} is not a Route or Socket: it would have no scope.")
            self.table.append(route)
            self._router.add(route)

    def taken(self, route: Route | Socket) -> str | None:
        """The path of the route that would get the requests of this one."""
        return self._router.taken(route)

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What is answered at once, to a caller whom another host has let in."""
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
        begin_request(head.get(b"x-request-id"))
        if head.size + len(scope["raw_path"]) + len(scope["query_string"]) > limits.HEADER_BYTES:
            raise TooLarge(f"Address and headers are over the limit of {limits.HEADER_BYTES} bytes.", field="headers")
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
        if route.scope != "open" or scope.get("method") not in ("GET", "HEAD"):
            self._check_origin(scope, head, entry)
        self.tokens.seen(caller)
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
        names = (self.hosts, self.origins)
        if head.checked_for != names:
            check_host(head.host, self.hosts)
            head.extra = [*SECURITY_HEADERS, *answer_headers(head.get(b"origin"), self.origins)]
            head.checked_for = names

    def _check_origin(self, scope: Scope, head: RequestHead, entry: RouterEntry) -> None:
        if head.origin_checked_for is self.origins:
            return
        origin = head.get(b"origin")
        if entry.socket and is_editor_origin(origin) and (head.bearer or _query(scope, "tkn")):
            return
        secure = scope["scheme"] in ("https", "wss")
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

    async def _hold(
        self,
        caller: Caller,
        entry: RouterEntry,
        scope: Scope,
        receive: Receive,
        send: Send,
        answer: _Answer | None = None,
    ) -> None:
        """Runs a stream or socket so that it can be ended from here: its token was revoked, or the host stops."""
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
        """Ends the open connections of tokens that were revoked or changed, and of logins that have ended; returns how
        many. Called every second."""
        for ident in [each for each in self._buckets if self.tokens.by_id(each) is None]:
            del self._buckets[ident]
        valid = {ident: self.tokens.by_id(ident) for ident in self._open}
        return sum(self._close(ident, POLICY_VIOLATION, unless=caller) for ident, caller in valid.items())

    def close_all(self) -> None:
        """The host stops: every stream and socket ends."""
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
    """A line for each answer, so that an operator finds the request that somebody tells of by its id."""

    async def logged(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.accept"):
            status = message.get("status", 101)
            access_logger.debug("%s %s %d", scope.get("method", "GET"), scope["path"], status)
        await send(message)

    return logged


async def _run(app: ASGIApp, scope: Scope, receive: Receive, send: Send, answer: _Answer) -> None:
    """Our errors become answers; anything else is a bug: logged here, and told without its traceback."""
    try:
        await app(scope, receive, send)
    except PorticoError as error:
        if answer.started:
            logger.warning("%s broke off: %s", scope["path"], error.message)
            raise
        await error_response(certain(scope, error))(scope, receive, send)
    except ClientDisconnect:
        return  # it left in the middle of its body, or was cut off: nobody is there to be told
    except Exception:  # a bug of any door is answered too, without its traceback
        logger.exception("%s %s failed", scope.get("method"), scope["path"])
        if answer.started:
            raise
        unknown = PorticoError("Something went wrong inside the host; its log says what.")
        await error_response(unknown)(scope, receive, send)


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


def _bounded(head: RequestHead, receive: Receive, limit: int) -> Receive:
    announced = head.length or "0"
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


def _claims(scope: Scope, head: RequestHead) -> bool:
    """Whether somebody says who they are."""
    return head.bearer is not None or b"cookie" in head or _query(scope, "tkn") is not None


def _head_alone(send: Send) -> Send:
    """A stream would never end, and the next request on its connection wait for ever: it is over with its head."""

    async def alone(message: Message) -> None:
        await send(message)
        await send({"type": "http.response.body", "body": b""})
        raise ClientDisconnect

    return alone


def _check_query(route: Route, scope: Scope) -> None:
    """A misspelt parameter that is passed over answers another question."""
    known = route.doc.get("query", {})
    for name in parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True):
        if name not in known and name not in _CREDENTIALS:
            there = f"there are: {', '.join(known)}" if known else "there are none"
            raise BadRequest(f"There is no parameter {name!r} here; {there}.", field=name)


def _query(scope: Scope, name: str) -> str | None:
    query = scope["query_string"]
    values = parse_qs(query.decode("latin-1")).get(name) if query else None
    return values[0] if values else None

"""SECURITY 4 to 10 and 24: every route has a scope, and nobody passes the gate without what it asks for."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import websockets
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from portico import limits
from portico.doors.gate import Gate
from portico.doors.rate import WrongTokens
from portico.doors.route import SCOPES, Route, Socket
from portico.home import Home
from portico.host.rate import Bucket
from portico.people import identity
from portico.people.identity import Tokens, new_login, new_token, remove_person, revoke_token
from portico.people.people import add_person, drop_person
from tests.doors import sharing
from tests.doors.standing import Standing, options, problem, standing

anyio_backend = sharing.anyio_backend


async def _fail(request: Request) -> Response:
    raise RuntimeError("a secret of the inside")


async def _length(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


_HEADS: dict[str, list[tuple[bytes, bytes]]] = {
    "length": [(b"content-length", b"2")],
    "chunked": [],
    "upper": [(b"Content-Length", b"2"), (b"X-Two", b"2")],
    "close": [(b"content-length", b"2"), (b"connection", b"close")],
    "split": [(b"content-length", b"2"), (b"x-two", b"a\r\nset-cookie: b")],
    "name": [(b"content-length", b"2"), (b"x two", b"a")],
    "short": [(b"content-length", b"3")],
}


async def _raw(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADS[scope["path_params"]["how"]]})
    await send({"type": "http.response.body", "body": b"ok"})


async def _echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_text(str(len(await socket.receive_text())))
    except WebSocketDisconnect:
        return


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Standing]:
    async with standing(tmp_path_factory.mktemp("gate")) as here:
        here.server.gate.add(
            [
                Route("/test/fail", _fail, "read"),
                Route("/test/length", _length, "drive", ("POST",)),
                Route("/test/small", _length, "drive", ("POST",), max_body=10),
                Route("/test/limited", _length, "drive", ("POST",), limited=True),
                Route("/test/raw/{how}", None, "read", app=_raw),
                Socket("/test/echo", _echo, "drive"),
            ]
        )
        yield here


# -- every route has a scope -----------------------------------------------------------------------------------


def test_every_route_of_a_built_server_has_a_scope(shared: Standing) -> None:
    table = shared.server.gate.table
    assert len(table) > 30
    for route in table:
        assert route.scope in ("open", "any", *SCOPES), route


def test_only_these_routes_are_open_to_strangers(shared: Standing) -> None:
    """Whoever opens another door to strangers must say so here."""
    opened = {
        (route.path, route.methods)
        for route in shared.server.gate.table
        if route.scope == "open" and isinstance(route, Route)
    }
    assert opened <= {
        ("/", ("GET",)),
        ("/login", ("GET",)),
        ("/login", ("POST",)),
        ("/login/ways", ("GET",)),
        ("/login/oidc", ("GET",)),
        ("/login/oidc/callback", ("GET",)),
        ("/logout", ("POST",)),
        ("/{name:path}", ("GET",)),
        ("/healthz", ("GET",)),
        ("/readyz", ("GET",)),
        ("/entry.schema.json", ("GET",)),
        ("/hooks/{name}", ("POST",)),  # its deliveries are signed
    }
    assert not [route for route in shared.server.gate.table if isinstance(route, Socket) and route.scope == "open"]


def test_something_without_a_scope_cannot_be_added(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make()
    gate = Gate(Tokens(home), hosts=frozenset({"localhost"}))
    with pytest.raises(TypeError, match="no scope"):
        gate.add([("/open", _length)])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        Route("/open", _length)  # type: ignore[call-arg]


async def test_every_route_refuses_a_stranger(shared: Standing) -> None:
    for route in shared.server.gate.table:
        if not isinstance(route, Route) or route.scope == "open":
            continue
        answer = await shared.stranger.request(route.methods[0], re.sub(r"\{[^}]*\}", "x", route.path))
        assert answer.status_code == 401, route


async def test_a_request_is_no_socket_and_a_socket_no_request(shared: Standing) -> None:
    assert (await shared.http.get("/test/echo")).status_code == 404
    with pytest.raises(websockets.InvalidStatus) as refused:
        await _connect(shared, "/test/length", Authorization=f"Bearer {shared.home.token()}")
    assert refused.value.response.status_code == 404


async def test_every_socket_refuses_a_stranger(shared: Standing, caplog: pytest.LogCaptureFixture) -> None:
    for route in shared.server.gate.table:
        if isinstance(route, Socket):
            with pytest.raises(websockets.InvalidStatus) as refused:
                await _connect(shared, re.sub(r"\{[^}]*\}", "x", route.path))
            assert refused.value.response.status_code == 403, route
    assert not [each for each in caplog.records if each.levelname == "ERROR"], "a stranger fills no log"


async def test_a_token_reaches_only_what_its_scopes_name(shared: Standing) -> None:
    tokens = {scope: new_token(shared.home, f"only-{scope}", [scope]) for scope in SCOPES}
    for scope, token in tokens.items():
        async with shared.client(token) as http:
            for route in shared.server.gate.table:
                if not isinstance(route, Route) or route.scope in ("open", "any", scope):
                    continue  # what is for any token, its commands' own scopes guard: test_scopes.py
                answer = await http.request(route.methods[0], re.sub(r"\{[^}]*\}", "x", route.path))
                assert route.scope in problem(answer, 403, "forbidden"), route


async def test_what_a_caller_says_of_its_scope_is_ignored(shared: Standing) -> None:
    token = new_token(shared.home, "modest", ["read"])
    boasts = {"X-Scope": "admin", "X-Scopes": "admin", "X-User": "owner", "X-Forwarded-User": "owner"}
    async with shared.client(token, **boasts) as http:
        problem(await http.get("/v1/audit?scope=admin"), 403, "forbidden")


# -- the Host header (421) -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "DELETE"])
async def test_a_rebound_host_name_is_misdirected_for_every_method(shared: Standing, method: str) -> None:
    answer = await shared.http.request(method, "/v1", headers={"Host": "evil.example:8888"})
    assert answer.status_code == 421
    if method != "HEAD":
        assert "allow_hosts" in problem(answer, 421, "misdirected")


async def test_a_rebound_host_name_is_misdirected_for_an_upgrade_and_for_pages(shared: Standing) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        await _connect(shared, "/test/echo", Host="evil.example")
    assert refused.value.response.status_code == 421
    assert (await shared.stranger.get("/healthz", headers={"Host": "evil.example"})).status_code == 421


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
async def test_loopback_names_are_ours(shared: Standing, name: str) -> None:
    port = shared.server.port
    assert (await shared.http.get("/v1", headers={"Host": f"{name}:{port}"})).status_code == 200


# -- origin (403) ----------------------------------------------------------------------------------------------

FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN)
async def test_another_sites_page_can_neither_read_nor_change(shared: Standing, headers: dict[str, str]) -> None:
    for method, path in [("GET", "/v1"), ("POST", "/v1/sessions"), ("DELETE", "/v1/sessions/x"), ("POST", "/login")]:
        problem(await shared.http.request(method, path, headers=headers), 403, "forbidden")
    stream = {**headers, "Accept": "text/event-stream"}
    problem(await shared.http.get("/v1/events", headers=stream), 403, "forbidden")


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_another_sites_page_gets_no_socket(shared: Standing, origin: str) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        await _connect(shared, f"/test/echo?tkn={shared.home.token()}", Origin=origin)
    assert refused.value.response.status_code == 403


EDITOR = "vscode-file://vscode-app"
WEBVIEW = "vscode-webview://0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.mark.parametrize("path", ["/test/echo", "/", "/ahp"])
@pytest.mark.parametrize(
    ("origin", "proof", "status"),
    [
        (EDITOR, "query", 101),
        (EDITOR, "bearer", 101),
        (WEBVIEW, "query", 101),
        (WEBVIEW, "bearer", 101),
        (EDITOR, "cookie", 403),  # a browser adds it by itself: it does not show that the user chose this client
        (WEBVIEW, "cookie", 403),
        (EDITOR, "wrong", 403),
        (EDITOR, "none", 403),
        ("https://evil.example", "query", 403),
        ("https://evil.example", "bearer", 403),
        ("https://vscode-app", "query", 403),
        ("http://vscode-file", "query", 403),
        ("vscode-file://vscode-app.evil.example", "query", 403),
        ("vscode-webview://evil.example", "query", 403),
        ("https://vscode.dev", "query", 403),
        ("null", "query", 403),
    ],
)
async def test_desktop_editors_come_in_with_a_token_and_web_pages_do_not(
    shared: Standing, path: str, origin: str, proof: str, status: int
) -> None:
    """VS Code opens its socket with the origin of its own window; every such upgrade was refused."""
    token = shared.home.token()
    cookie = shared.server.tokens.cookie(shared.server.tokens.owner())
    query, headers = {
        "query": (f"?tkn={token}", {}),
        "bearer": ("", {"Authorization": f"Bearer {token}"}),
        "cookie": (
            f"?key={shared.server.tokens.page_key(cookie)}",
            {"Cookie": f"{shared.server.gate.cookie}={cookie}"},
        ),
        "wrong": ("?tkn=wrong", {}),
        "none": ("", {}),
    }[proof]
    assert await _upgrade(shared, path + query, Origin=origin, **headers) == status


async def test_an_editors_origin_opens_no_http_route(shared: Standing) -> None:
    for method, path in [("GET", "/v1"), ("POST", "/v1/sessions"), ("GET", "/v1/events")]:
        problem(await shared.http.request(method, path, headers={"Origin": EDITOR}), 403, "forbidden")


async def test_without_token_an_editors_origin_is_refused_like_any_other(tmp_path: Path) -> None:
    async with standing(tmp_path, with_token=False) as here:
        assert await _upgrade(here, "/ahp", Origin=EDITOR) == 403
        assert await _upgrade(here, "/ahp") == 101


async def test_an_origin_of_any_scheme_can_be_allowed(tmp_path: Path) -> None:
    origin = "tauri://localhost"
    async with standing(tmp_path, flags={"security.allow_origins": [origin]}) as here:
        path = f"/ahp?tkn={here.home.token()}"
        assert await _upgrade(here, path, Origin=origin) == 101
        assert await _upgrade(here, path, Origin="tauri://localhost.evil") == 403
        answer = await here.http.get("/v1", headers={"Origin": origin})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)


async def test_our_own_page_may(shared: Standing) -> None:
    headers = {"Origin": shared.url, "Sec-Fetch-Site": "same-origin"}
    assert (await shared.http.get("/v1", headers=headers)).status_code == 200
    assert (await shared.http.get("/v1", headers={"Sec-Fetch-Site": "none"})).status_code == 200


async def test_no_cors_header_by_default(shared: Standing) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    for answer in (
        await shared.http.get("/v1"),
        await shared.http.get("/v1", headers=headers),
        await shared.http.options("/v1", headers=headers),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_cors_for_an_origin_on_the_exact_list(tmp_path: Path) -> None:
    origin = "https://pages.example"
    async with standing(tmp_path, flags={"security.allow_origins": [origin]}) as here:
        ask = {"Origin": origin, "Access-Control-Request-Method": "PATCH"}
        preflight = await here.stranger.options("/v1/sessions/x", headers=ask)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == origin
        assert "PATCH" in preflight.headers["access-control-allow-methods"]
        assert "Authorization" in preflight.headers["access-control-allow-headers"]

        call = await here.http.get("/v1", headers={"Origin": origin, "Sec-Fetch-Site": "cross-site"})
        assert (call.status_code, call.headers["access-control-allow-origin"]) == (200, origin)
        assert call.headers["vary"] == "Origin"

        refusal = await here.stranger.get("/v1", headers={"Origin": origin})
        assert (refusal.status_code, refusal.headers["access-control-allow-origin"]) == (401, origin)

        for near in ("https://pages.example.evil.org", "https://PAGES.example", "http://pages.example", "null"):
            asked = {"Origin": near, "Access-Control-Request-Method": "GET"}
            answer = await here.http.options("/v1", headers=asked)
            assert (answer.status_code, "access-control-allow-origin" in answer.headers) == (405, False)
            assert (await here.http.get("/v1", headers={"Origin": near})).status_code == 403


# -- routes ----------------------------------------------------------------------------------------------------


async def test_an_unknown_path_is_not_found_and_a_wrong_method_names_the_right_ones(shared: Standing) -> None:
    for method in ("GET", "POST", "DELETE"):
        problem(await shared.http.request(method, "/v1/nosuch"), 404, "not_found")
    answer = await shared.http.put("/v1/sessions")
    assert "GET or POST" in problem(answer, 405, "wrong_method", "method")
    assert answer.headers["allow"] == "GET, POST"


async def test_head_is_answered_like_get_without_a_body(shared: Standing) -> None:
    answer = await shared.http.head("/v1")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_a_bug_inside_is_told_without_its_traceback(shared: Standing, caplog: pytest.LogCaptureFixture) -> None:
    answer = await shared.http.get("/test/fail")
    assert "secret" not in problem(answer, 500, "internal")
    assert "a secret of the inside" in caplog.text  # the host's own log has it


async def test_every_answer_is_harmless_to_a_browser(shared: Standing) -> None:
    for answer in (await shared.http.get("/v1"), await shared.stranger.get("/v1"), await shared.http.get("/nosuch")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "server" not in answer.headers


# -- sockets ---------------------------------------------------------------------------------------------------


async def test_a_socket_takes_a_bearer_header_a_cookie_or_the_query(shared: Standing) -> None:
    token = shared.home.token()
    cookie = shared.server.tokens.cookie(shared.server.tokens.owner())
    key = shared.server.tokens.page_key(cookie)
    for path, headers in [
        ("/test/echo", {"Authorization": f"Bearer {token}"}),
        (f"/test/echo?key={key}", {"Cookie": f"{shared.server.gate.cookie}={cookie}", "Origin": shared.url}),
        (f"/test/echo?tkn={token}", {}),
    ]:
        async with await _connect(shared, path, **headers) as socket:
            await socket.send("four")
            assert await socket.recv() == "4"


async def test_a_cookie_alone_opens_the_pages_and_nothing_else(shared: Standing) -> None:
    """Browsers give it to every server of the machine, whatever the port; a program there could approve with it."""
    cookie = shared.server.tokens.cookie(shared.server.tokens.owner())
    other = shared.server.tokens.cookie(shared.server.tokens.owner()).replace(".", ".0", 1)
    headers = {"Cookie": f"{shared.server.gate.cookie}={cookie}"}
    wrong = ["", "x", shared.server.tokens.page_key(other), "0" * 64]
    for key in wrong:
        sent = {**headers, "X-Portico-Key": key} if key else headers
        problem(await shared.stranger.get("/v1", headers=sent), 401, "unauthenticated")
        command = {"command": "session.start", "arguments": {}}
        problem(await shared.stranger.post("/v1/commands", json=command, headers=sent), 401, "unauthenticated")
    with pytest.raises(websockets.InvalidStatus):
        await _connect(shared, "/test/echo", **headers)
    key = shared.server.tokens.page_key(cookie)
    assert (await shared.stranger.get("/v1", headers={**headers, "X-Portico-Key": key})).json()["you"] == "owner"
    assert (await shared.stranger.get(f"/v1?key={key}", headers=headers)).json()["you"] == "owner"
    problem(await shared.stranger.get(f"/v1?key={key}"), 401, "unauthenticated")


async def test_a_token_in_the_query_opens_no_http_route(shared: Standing) -> None:
    problem(await shared.stranger.get(f"/v1?tkn={shared.home.token()}"), 401, "unauthenticated")


async def test_a_wrong_token_in_the_query_is_refused(shared: Standing) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        await _connect(shared, "/test/echo?tkn=wrong")
    assert refused.value.response.status_code == 403


async def test_a_token_in_an_address_is_never_logged(shared: Standing, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    token = shared.home.token()
    async with await _connect(shared, f"/test/echo?tkn={token}"):
        pass
    await shared.stranger.get(f"/login?tkn={token}")
    ours = [r.getMessage() for r in caplog.records if not r.name.startswith(("httpx", "httpcore", "websockets.client"))]
    assert token not in "".join(ours)


async def test_revoking_a_token_ends_its_sockets_and_streams(
    shared: Standing, caplog: pytest.LogCaptureFixture
) -> None:
    token = new_token(shared.home, "guest", ["read", "drive"])
    async with shared.client(token, Accept="text/event-stream") as http, http.stream("GET", "/v1/events") as stream:
        lines = stream.aiter_lines()
        assert await anext(lines) == "retry: 1000"
        async with await _connect(shared, f"/test/echo?tkn={token}") as socket:
            revoke_token(shared.home, "guest")
            assert shared.server.gate.close_revoked() == 2
            with pytest.raises(websockets.ConnectionClosed):
                await socket.recv()
            assert (socket.close_code, socket.close_reason) == (1008, "the token was revoked")
        async with asyncio.timeout(30):
            async for _ in lines:  # a clean end, not a broken connection
                pass
    assert "Exception in ASGI" not in caplog.text
    assert shared.server.gate.close_revoked() == 0


# -- limits (SECURITY 24) --------------------------------------------------------------------------------------


async def test_a_body_may_be_as_large_as_its_limit_and_not_one_byte_larger(shared: Standing) -> None:
    async def pieces(size: int) -> AsyncIterator[bytes]:
        for _ in range(size):
            yield b"x"

    assert (await shared.http.post("/test/small", content=b"x" * 10)).text == "10"
    assert (await shared.http.post("/test/small", content=pieces(10))).text == "10"
    problem(await shared.http.post("/test/small", content=b"x" * 11), 413, "too_large", "body")
    problem(await shared.http.post("/test/small", content=pieces(11)), 413, "too_large", "body")


async def test_the_default_body_limit(shared: Standing) -> None:
    full = b"x" * limits.BODY_BYTES
    assert (await shared.http.post("/test/length", content=full)).text == str(limits.BODY_BYTES)
    problem(await shared.http.post("/test/length", content=full + b"x"), 413, "too_large", "body")


async def test_a_frame_may_be_as_large_as_its_limit_and_not_one_byte_larger(shared: Standing) -> None:
    async with await _connect(shared, f"/test/echo?tkn={shared.home.token()}") as socket:
        await socket.send("x" * limits.FRAME_BYTES)
        assert await socket.recv() == str(limits.FRAME_BYTES)
        with contextlib.suppress(websockets.ConnectionClosed):  # it may go before all of it is sent
            await socket.send("x" * (limits.FRAME_BYTES + 1))
        await socket.wait_closed()
        assert socket.close_code == 1009


async def test_connections_over_the_limit_are_told_to_come_back(
    shared: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS", 2)
    token = shared.home.token()
    async with await _connect(shared, f"/test/echo?tkn={token}"):
        assert (await shared.http.get("/v1")).status_code == 200
        async with await _connect(shared, f"/test/echo?tkn={token}"):
            answer = await shared.http.get("/v1")
            problem(answer, 429, "rate_limited")
            assert answer.headers["retry-after"] == "5"
            with pytest.raises(websockets.InvalidStatus) as refused:
                await _connect(shared, f"/test/echo?tkn={token}")
            assert refused.value.response.status_code == 429


async def test_headers_may_be_as_large_as_their_limit_and_not_one_byte_larger(shared: Standing) -> None:
    plain = await shared.http.get("/v1")
    size = len(b"/v1") + sum(len(name) + len(value) + 4 for name, value in plain.request.headers.raw)
    room = limits.HEADER_BYTES - size - len("x-long") - 4
    assert (await shared.http.get("/v1", headers={"X-Long": "x" * room})).status_code == 200
    problem(await shared.http.get("/v1", headers={"X-Long": "x" * (room + 1)}), 413, "too_large", "headers")


async def test_a_head_that_never_ends_is_cut_off(shared: Standing) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", shared.server.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
    sent = 0
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(30):
            while not reader.at_eof() and sent < 100 * limits.HEADER_BYTES:
                writer.write(b"x" * 8192)
                await writer.drain()
                await asyncio.sleep(0)
                sent += 8192
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    assert sent < 100 * limits.HEADER_BYTES
    assert (await shared.http.get("/v1")).status_code == 200


async def test_too_many_messages_of_one_token_are_slowed_and_nobody_elses(
    shared: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REQUESTS_PER_SECOND", 0.001)
    monkeypatch.setattr(limits, "REQUEST_BURST", 3)
    token = new_token(shared.home, "busy", ["drive"])
    async with shared.client(token) as http:
        assert [(await http.post("/test/limited")).status_code for _ in range(4)] == [200, 200, 200, 429]
        answer = await http.post("/test/limited")
        problem(answer, 429, "rate_limited")
        assert int(answer.headers["retry-after"]) >= 1
        assert (await http.post("/test/length")).status_code == 200  # only what is limited
    assert (await shared.http.post("/test/limited")).status_code == 200


def test_a_bucket_fills_again() -> None:
    bucket = Bucket(rate=2, burst=2)
    assert [bucket.take(10.0) for _ in range(3)] == [0, 0, 0.5]
    assert bucket.take(10.5) == 0
    assert [bucket.take(100.0) for _ in range(3)] == [0, 0, 0.5]  # never more than the burst


# -- wrong tokens (SECURITY 10) --------------------------------------------------------------------------------


def test_wrong_tokens_are_counted_per_address_and_forgotten_after_a_minute() -> None:
    wrong = WrongTokens()
    first = [wrong.count("1.1.1.1", 0.0) for _ in range(limits.WRONG_TOKENS)]
    assert first == [(0.0, True)] * limits.WRONG_TOKENS
    assert wrong.count("1.1.1.1", 1.0) == (1.0, True)  # the first slowed one is worth a line
    assert wrong.count("1.1.1.1", 2.0) == (1.0, False)
    assert wrong.count("2.2.2.2", 2.0) == (0.0, True)
    assert wrong.count("1.1.1.1", 63.0) == (0.0, True)


async def test_a_guesser_is_slowed_and_the_owner_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WrongTokens, "_WAIT", 1.5)
    async with standing(tmp_path) as here:
        async with here.client("guess") as guesser:
            statuses = [(await guesser.get("/v1")).status_code for _ in range(limits.WRONG_TOKENS)]
            assert statuses == [401] * limits.WRONG_TOKENS
            guesses = [asyncio.ensure_future(guesser.get("/v1")) for _ in range(5)]
            login = asyncio.ensure_future(here.stranger.post("/login", data={"tkn": "guess"}))
            assert (await here.http.get("/v1")).status_code == 200  # same address, right token
            assert not any(guess.done() for guess in guesses)  # it was not held up: they all wait still
            for answer in [*await asyncio.gather(*guesses), await login]:
                problem(answer, 429, "rate_limited")
                assert answer.headers["retry-after"] == "60"
        audit = (await here.http.get("/v1/audit")).json()["audit"]
        failures = [each for each in audit if each["action"] == "login.failed"]
        # the guesses are on record, but a guesser cannot fill the disk
        assert len(failures) == limits.WRONG_TOKENS + 1
        assert failures[0]["detail"] == {"address": "127.0.0.1", "slowed": False}
        assert "guess" not in str(failures)


async def test_without_token_leaves_host_and_origin_checks_on(tmp_path: Path) -> None:
    async with standing(tmp_path, with_token=False) as here:
        assert (await here.stranger.get("/v1")).status_code == 200
        problem(await here.stranger.get("/v1", headers={"Host": "evil.example"}), 421, "misdirected")
        for headers in FOREIGN:
            problem(await here.stranger.get("/v1", headers=headers), 403, "forbidden")
        assert options(tmp_path, with_token=False).with_token is False


async def _upgrade(here: Standing, path: str, **headers: str) -> int:
    try:
        async with await _connect(here, path, **headers):
            return 101
    except websockets.InvalidStatus as refused:
        return refused.response.status_code


async def _connect(here: Standing, path: str, **headers: str) -> websockets.ClientConnection:
    url = here.url.replace("http://", "ws://") + path
    host = headers.pop("Host", None)
    if host is not None:  # the client sets its own Host: give it the name and the address apart
        port = here.server.port
        return await websockets.connect(f"ws://{host}:{port}{path}", host="127.0.0.1", port=port, proxy=None)
    return await websockets.connect(url, additional_headers=headers, max_size=None, proxy=None)


async def test_two_host_headers_are_none(shared: Standing) -> None:
    """A proxy may look at one of them, and we at the other."""
    for names in (b"Host: localhost\r\nHost: evil.example\r\n", b"Host: evil.example\r\nHost: localhost\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", shared.server.port)
        writer.write(b"GET /healthz HTTP/1.1\r\n" + names + b"Connection: close\r\n\r\n")
        async with asyncio.timeout(30):
            head = await reader.readline()
        writer.close()
        assert head.split()[1] in (b"400", b"421"), head


# -- what is remembered of a client's headers ------------------------------------------------------------------


@pytest.mark.parametrize("change", ["revoked", "owner", "hosts", "origins", "scopes"])
async def test_a_remembered_head_counts_only_as_long_as_what_it_was_checked_against(
    tmp_path: Path, change: str
) -> None:
    async with standing(tmp_path, flags={"security.allow_origins": ["https://pal.example"]}) as here:
        token = here.home.token() if change == "owner" else new_token(here.home, "phone", ["read", "drive"])
        async with here.client(token, Origin="https://pal.example") as client:
            for _ in range(2):
                assert (await client.get("/v1/sessions")).status_code == 200
            if change == "hosts":
                here.server.gate.hosts = frozenset({"elsewhere"})
            elif change == "origins":
                here.server.gate.origins = frozenset()
            else:
                revoke_token(here.home, "owner" if change == "owner" else "phone")
            if change == "scopes":
                assert new_token(here.home, "phone", ["read"]) != token
            status = {"hosts": 421, "origins": 403}.get(change, 401)
            assert (await client.get("/v1/sessions")).status_code == status


@pytest.mark.parametrize("change", ["expires", "revoked", "removed", "narrowed"])
@pytest.mark.parametrize("kind", ["login", "token"])
async def test_a_person_is_let_in_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, change: str
) -> None:
    """Over the very connection that has let them in until now; a stream and a socket of theirs end, too."""
    async with standing(tmp_path) as here:
        tokens, person = here.server.tokens, add_person(here.home, "ann", ["read", "drive"])
        if kind == "token":
            token = new_token(here.home, "laptop", ["read", "drive"], "ann", days=1)
            headers, name = {"Authorization": f"Bearer {token}"}, "laptop"
        else:
            found = tokens.by_id(new_login(here.home, person, 24))
            assert found is not None
            cookie, name = tokens.cookie(found), found.name
            headers = {"Cookie": f"{here.server.gate.cookie}={cookie}", "X-Portico-Key": tokens.page_key(cookie)}
        feed = here.stranger.stream("GET", "/v1/events", headers={**headers, "Accept": "text/event-stream"})
        async with feed as stream, await _connect(here, "/v1/board/socket", **headers) as socket:
            for _ in range(2):
                assert (await here.stranger.get("/v1/sessions", headers=headers)).status_code == 200
            assert here.server.gate.close_revoked() == 0
            if change == "expires":
                now = time.time()
                monkeypatch.setattr(time, "time", lambda: now + 86_401)
            elif change == "revoked":
                revoke_token(here.home, name, "ann")
            elif change == "removed":
                remove_person(here.home, "ann")
            else:
                drop_person(here.home, "ann")
                add_person(here.home, "ann", ["drive"])
            status = 403 if change == "narrowed" else 401
            assert (await here.stranger.get("/v1/sessions", headers=headers)).status_code == status
            async with asyncio.timeout(30):  # closed by the server itself, which looks every second
                with contextlib.suppress(websockets.ConnectionClosedError):
                    async for _ in socket:
                        pass
                assert socket.close_code == 1008
                async for _ in stream.aiter_lines():
                    pass


async def test_a_remembered_cookie_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with standing(tmp_path) as here:
        tokens = here.server.tokens
        cookie = tokens.cookie(tokens.owner())
        headers = {"Cookie": f"{here.server.gate.cookie}={cookie}", "X-Portico-Key": tokens.page_key(cookie)}
        for _ in range(2):
            assert (await here.stranger.get("/v1", headers=headers)).status_code == 200
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + identity.COOKIE_SECONDS + 1)
        assert (await here.stranger.get("/v1", headers=headers)).status_code == 401


# -- answers on the wire ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "framing"),
    [
        ("length", "content-length"),
        ("chunked", "transfer-encoding"),
        ("upper", "content-length"),
        ("close", "connection"),
    ],
)
async def test_an_answer_is_framed_as_its_headers_say(shared: Standing, how: str, framing: str) -> None:
    for _ in range(2):  # the second time its headers are known
        answer = await shared.http.get(f"/test/raw/{how}")
        assert (answer.status_code, answer.text, framing in answer.headers) == (200, "ok", True)
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("how", ["split", "name", "short"])
async def test_an_answer_with_a_wrong_head_is_not_sent(shared: Standing, how: str) -> None:
    for _ in range(2):
        with pytest.raises(httpx.RemoteProtocolError):
            await shared.http.get(f"/test/raw/{how}")

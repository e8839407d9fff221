"""SECURITY 4 to 8: every route has a scope, and nobody passes the gate without what it asks for."""

import asyncio
import contextlib
import re
import time
from pathlib import Path

import httpx
import pytest
import websockets

from portico.features.people.people import add_person, drop_person
from portico.server import identity
from portico.server.gate import Gate
from portico.server.home import Home
from portico.server.identity import Tokens, new_login, new_token, remove_person, revoke_token
from portico.server.route import SCOPES, Route, Socket
from tests.doors import gate_standing
from tests.doors.gate_standing import connect, length
from tests.doors.standing import Standing, problem, standing

anyio_backend, shared = gate_standing.anyio_backend, gate_standing.shared


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
        ("/pages/{page}/{file:path}", ("GET",)),  # like the files of our own pages; data needs a login
        ("/healthz", ("GET",)),
        ("/readyz", ("GET",)),
        ("/entry.schema.json", ("GET",)),
        ("/hooks/{name}", ("POST",)),  # its deliveries are signed
        ("/pair", ("GET",)),
        ("/pair", ("POST",)),  # it needs a code for one use, of five minutes, and is rate limited
        ("/pair/authority.crt", ("GET",)),
    }
    assert not [route for route in shared.server.gate.table if isinstance(route, Socket) and route.scope == "open"]


def test_something_without_a_scope_cannot_be_added(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make()
    gate = Gate(Tokens(home), hosts=frozenset({"localhost"}))
    with pytest.raises(TypeError, match="no scope"):
        gate.add([("/open", length)])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        Route("/open", length)  # type: ignore[call-arg]


async def test_every_route_refuses_a_stranger(shared: Standing) -> None:
    for route in shared.server.gate.table:
        if not isinstance(route, Route) or route.scope == "open":
            continue
        answer = await shared.stranger.request(route.methods[0], re.sub(r"\{[^}]*\}", "x", route.path))
        assert answer.status_code == 401, route


async def test_a_request_is_no_socket_and_a_socket_no_request(shared: Standing) -> None:
    assert (await shared.http.get("/test/echo")).status_code == 404
    with pytest.raises(websockets.InvalidStatus) as refused:
        await connect(shared, "/test/length", Authorization=f"Bearer {shared.home.token()}")
    assert refused.value.response.status_code == 404


async def test_every_socket_refuses_a_stranger(shared: Standing, caplog: pytest.LogCaptureFixture) -> None:
    for route in shared.server.gate.table:
        if isinstance(route, Socket):
            with pytest.raises(websockets.InvalidStatus) as refused:
                await connect(shared, re.sub(r"\{[^}]*\}", "x", route.path))
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
        await connect(shared, "/test/echo", Host="evil.example")
    assert refused.value.response.status_code == 421
    assert (await shared.stranger.get("/healthz", headers={"Host": "evil.example"})).status_code == 421


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
async def test_loopback_names_are_ours(shared: Standing, name: str) -> None:
    port = shared.server.port
    assert (await shared.http.get("/v1", headers={"Host": f"{name}:{port}"})).status_code == 200


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
        async with await connect(shared, path, **headers) as socket:
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
        await connect(shared, "/test/echo", **headers)
    key = shared.server.tokens.page_key(cookie)
    assert (await shared.stranger.get("/v1", headers={**headers, "X-Portico-Key": key})).json()["you"] == "owner"
    assert (await shared.stranger.get(f"/v1?key={key}", headers=headers)).json()["you"] == "owner"
    problem(await shared.stranger.get(f"/v1?key={key}"), 401, "unauthenticated")


async def test_a_token_in_the_query_opens_no_http_route(shared: Standing) -> None:
    problem(await shared.stranger.get(f"/v1?tkn={shared.home.token()}"), 401, "unauthenticated")


async def test_a_wrong_token_in_the_query_is_refused(shared: Standing) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        await connect(shared, "/test/echo?tkn=wrong")
    assert refused.value.response.status_code == 403


async def test_a_token_in_an_address_is_never_logged(shared: Standing, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    token = shared.home.token()
    async with await connect(shared, f"/test/echo?tkn={token}"):
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
        async with await connect(shared, f"/test/echo?tkn={token}") as socket:
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
        async with feed as stream, await connect(here, "/v1/board/socket", **headers) as socket:
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

"""SECURITY 2 and 6: what pages of other sites, and editors, may ask for."""

from pathlib import Path

import pytest
import websockets

from tests.doors import gate_standing
from tests.doors.gate_standing import connect, upgrade
from tests.doors.standing import Standing, options, problem, standing

anyio_backend, shared = gate_standing.anyio_backend, gate_standing.shared


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
        await connect(shared, f"/test/echo?tkn={shared.home.token()}", Origin=origin)
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
    assert await upgrade(shared, path + query, Origin=origin, **headers) == status


async def test_an_editors_origin_opens_no_http_route(shared: Standing) -> None:
    for method, path in [("GET", "/v1"), ("POST", "/v1/sessions"), ("GET", "/v1/events")]:
        problem(await shared.http.request(method, path, headers={"Origin": EDITOR}), 403, "forbidden")


async def test_without_token_an_editors_origin_is_refused_like_any_other(tmp_path: Path) -> None:
    async with standing(tmp_path, with_token=False) as here:
        assert await upgrade(here, "/ahp", Origin=EDITOR) == 403
        assert await upgrade(here, "/ahp") == 101


async def test_an_origin_of_any_scheme_can_be_allowed(tmp_path: Path) -> None:
    origin = "tauri://localhost"
    async with standing(tmp_path, flags={"security.allow_origins": [origin]}) as here:
        path = f"/ahp?tkn={here.home.token()}"
        assert await upgrade(here, path, Origin=origin) == 101
        assert await upgrade(here, path, Origin="tauri://localhost.evil") == 403
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


async def test_without_token_leaves_host_and_origin_checks_on(tmp_path: Path) -> None:
    async with standing(tmp_path, with_token=False) as here:
        assert (await here.stranger.get("/v1")).status_code == 200
        problem(await here.stranger.get("/v1", headers={"Host": "evil.example"}), 421, "misdirected")
        for headers in FOREIGN:
            problem(await here.stranger.get("/v1", headers=headers), 403, "forbidden")
        assert options(tmp_path, with_token=False).with_token is False

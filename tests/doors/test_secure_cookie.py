"""The cookie of a login is `Secure` wherever the browser uses TLS, also if a proxy ends it before the host.

Bug: behind such a proxy (`server.public_url` is https, the proxy is not in `server.trusted_proxies`) the cookie had
neither `Secure` nor a protected name, so a browser would send it over plain HTTP to the same name.
"""

from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp

from portico.features.pairing.commands import PairDevice
from portico.kernel.commands import SCOPES, Caller
from portico.server.origin import origin_of
from portico.server.proxy import BehindProxy, Proxies
from tests.doors import sharing
from tests.doors.openid import provider as openid_provider
from tests.doors.standing import Standing, standing
from tests.doors.test_oidc import settings

anyio_backend = sharing.anyio_backend

PUBLIC = "https://box.example"
OWNER = Caller("owner", "owner", frozenset(SCOPES))
WAYS = ["link", "code", "form", "pair"]


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Standing]:
    async with standing(tmp_path_factory.mktemp("secure"), flags={"server.public_url": PUBLIC}) as here:
        yield here


# public_url, scheme of the connection, Host, what the proxy names as scheme (+: a trusted one): name and flag
CASES = [
    ("", "http", "127.0.0.1", "", ("", False)),
    ("", "http", "127.0.0.1", "https", ("", False)),  # anyone can send it
    ("", "http", "127.0.0.1", "+https", ("__Host-", True)),
    ("", "https", "127.0.0.1", "", ("__Host-", True)),
    (PUBLIC, "http", "box.example", "", ("__Host-", True)),
    (PUBLIC, "http", "BOX.example", "", ("__Host-", True)),
    (PUBLIC, "http", "box.example", "http", ("__Host-", True)),  # anyone can send it
    (PUBLIC, "http", "box.example", "+https", ("__Host-", True)),
    (PUBLIC, "http", "box.example", "+http", ("", False)),  # the proxy knows it
    (PUBLIC, "http", "box.example:8080", "", ("", False)),  # another port of that machine
    (PUBLIC, "http", "127.0.0.1", "", ("", False)),  # the owner, on the machine itself
    (PUBLIC, "https", "127.0.0.1", "", ("__Host-", True)),
    (f"{PUBLIC}:8443/base", "http", "box.example:8443", "", ("__Host-", True)),
    (f"{PUBLIC}:8443/base", "http", "box.example", "", ("", False)),
    ("http://box.example", "http", "box.example", "", ("", False)),
    ("http://box.example", "https", "box.example", "", ("__Host-", True)),
]


async def log_in(here: Standing, client: httpx.AsyncClient, way: str, headers: dict[str, str]) -> httpx.Response:
    match way:
        case "link":
            return await client.get(f"/login?tkn={here.home.token()}", headers=headers)
        case "code":
            code = here.server.tokens.code(here.server.tokens.owner())
            return await client.get(f"/login?code={code}", headers=headers)
        case "form":
            return await client.post("/login", data={"tkn": here.home.token()}, headers=headers)
    made = await here.server.host.do(PairDevice(), OWNER)
    return await client.post("/pair", data={"code": made.code, "device": "Phone"}, headers=headers)


@pytest.mark.parametrize(("public", "scheme", "host", "named", "expected"), CASES)
@pytest.mark.parametrize("way", WAYS)
async def test_the_cookie_of_a_login(
    shared: Standing,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    public: str,
    scheme: str,
    host: str,
    named: str,
    expected: tuple[str, bool],
) -> None:
    gate = shared.server.gate
    monkeypatch.setattr(gate, "public_origin", origin_of(public))
    app: ASGIApp = BehindProxy(gate, Proxies(["127.0.0.1"]), "") if named.startswith("+") else gate
    headers = {"Host": host, **({"X-Forwarded-Proto": named.removeprefix("+")} if named else {})}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"{scheme}://127.0.0.1") as client:
        answer = await log_in(shared, client, way, headers)
        assert answer.status_code == 303, answer.text
        [(name, cookie)] = SimpleCookie(answer.headers["set-cookie"]).items()
        prefix, secure = expected
        assert (name, bool(cookie["secure"])) == (f"{prefix}{gate.cookie}", secure)
        # The cookie identifies the login in the next request that comes the same way.
        sent = {**headers, "Cookie": f"{name}={cookie.value}", "X-Portico-Key": answer.headers["location"][-64:]}
        assert (await client.get("/v1", headers=sent)).status_code == 200
        out = await client.post("/logout", headers=sent)
        assert [(name, bool(each["secure"])) for name, each in SimpleCookie(out.headers["set-cookie"]).items()] == [
            (name, secure)
        ]


@pytest.mark.parametrize("way", ["form", "pair"])
@pytest.mark.parametrize(("origin", "secure"), [(PUBLIC, True), ("http://127.0.0.1", False)])
async def test_a_proxy_that_replaces_the_host_header(shared: Standing, way: str, origin: str, secure: bool) -> None:
    """The Origin header of a form shows the address that the browser uses. Links have none."""
    gate = shared.server.gate
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gate), base_url="http://127.0.0.1") as client:
        answer = await log_in(shared, client, way, {"Host": "127.0.0.1", "Origin": origin})
    [(name, cookie)] = SimpleCookie(answer.headers["set-cookie"]).items()
    assert (name, bool(cookie["secure"])) == (gate.cookie, secure)


async def test_a_page_over_plain_http_may_not_use_the_public_name(shared: Standing) -> None:
    """An attacker in the network who serves http://box.example can make a browser send forms from it."""
    gate = shared.server.gate
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gate), base_url="http://127.0.0.1") as client:
        answer = await log_in(shared, client, "form", {"Host": "box.example", "Origin": "http://box.example"})
    assert answer.status_code == 403


@pytest.mark.parametrize(("host", "prefix", "secure"), [("box.example", "__Host-", True), ("127.0.0.1", "", False)])
async def test_the_cookie_of_a_login_with_a_provider(tmp_path: Path, host: str, prefix: str, secure: bool) -> None:
    async with (
        openid_provider() as provider,
        standing(tmp_path, flags={**settings(provider.issuer), "server.public_url": PUBLIC}) as here,
    ):
        answer = await here.stranger.get("/login/oidc", headers={"Host": host})
        [(name, cookie)] = SimpleCookie(answer.headers["set-cookie"]).items()
        assert (name, bool(cookie["secure"])) == (f"{prefix}{here.server.gate.cookie}-oidc", secure)

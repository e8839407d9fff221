"""Logging in with an OpenID provider, honest and hostile. What a hostile one, or a page of somebody else, tries never
ends in a login."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from joserfc import jwt
from starlette.responses import JSONResponse, Response

from portico.agents.certificates import certificates
from portico.cli.doctor import _login
from portico.cli.serve import say_hello
from portico.features.people.people import add_person, read_people
from portico.kernel.errors import BadRequest, Unreachable
from portico.server.home import Home
from portico.server.identity import read_tokens
from portico.server.oidc import OidcProvider, check_address, check_claims
from portico.server.settings import OidcSettings
from portico.server.settings_edit import add_table
from tests.doors import openid
from tests.doors.openid import CLIENT, KEY, OTHER_KEY, SECRET, Provider
from tests.doors.standing import Standing, standing
from tests.doors.test_listening import certificate

Json = dict[str, Any]


class Login:
    """A host that takes people of example.org, their provider, and a browser."""

    def __init__(self, here: Standing, provider: Provider) -> None:
        self.here = here
        self.provider = provider
        self.browser = here.client()

    async def begin(self, next_page: str = "") -> str:
        """The address that the browser is sent to."""
        answer = await self.browser.get("/login/oidc", params={"next": next_page} if next_page else None)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def come_back(self, answer: Json, browser: httpx.AsyncClient | None = None) -> httpx.Response:
        return await (browser or self.browser).get(f"/login/oidc/callback?{urlencode(answer)}")

    async def log_in(self, next_page: str = "") -> httpx.Response:
        return await self.come_back(self.provider.authorize(await self.begin(next_page)))

    @property
    def logged_in(self) -> bool:
        return any(name.startswith("portico-") and not name.endswith("-oidc") for name in self.browser.cookies)


def settings(issuer: str, **more: Any) -> Json:
    given = {"issuer": issuer, "client_id": CLIENT, "client_secret": SECRET, "domains": ["example.org"], **more}
    return {f"login.oidc.{key}": value for key, value in given.items()}


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with openid.provider() as provider:
        yield provider


@pytest.fixture
async def login(provider: Provider, tmp_path: Path) -> AsyncIterator[Login]:
    async with standing(tmp_path, flags=settings(provider.issuer)) as here:
        login = Login(here, provider)
        yield login
        await login.browser.aclose()


async def test_a_person_logs_in(login: Login) -> None:
    answer = await login.log_in("/app/s/session-1")
    assert answer.status_code == 200, answer.text
    assert "/app/s/session-1#key=" in answer.text, "a page of ours goes on by itself"
    assert login.logged_in
    assert answer.headers["cache-control"] == "no-store"
    key = answer.text.partition("#key=")[2].partition('"')[0]
    me = (await login.browser.get("/v1/people/me", headers={"x-portico-key": key})).json()
    assert (me["person"], me["admin"]) == ("ann@example.org", False)
    assert [(each.name, each.issuer, each.subject) for each in read_people(login.here.home)] == [
        ("ann@example.org", login.provider.issuer, "sub-1")
    ]
    [token] = read_tokens(login.here.home)
    assert (token.person, token.login, token.expires > token.created) == ("ann@example.org", True, True)


async def test_the_login_page_names_the_provider(login: Login) -> None:
    assert (await login.here.stranger.get("/login/ways")).json() == {"oidc": "127.0.0.1"}


# -- a hostile provider ----------------------------------------------------------------------------------------


def claiming(**more: Any) -> Callable[[Provider], None]:
    def trick(provider: Provider) -> None:
        gone = [name for name, value in more.items() if value is None]
        provider.claims = lambda claims: {k: v for k, v in (claims | more).items() if k not in gone}

    return trick


def with_(**attributes: Any) -> Callable[[Provider], None]:
    def trick(provider: Provider) -> None:
        for name, value in attributes.items():
            setattr(provider, name, value)

    return trick


TRICKS: dict[str, Callable[[Provider], None]] = {
    "another nonce": claiming(nonce="n"),
    "no nonce": claiming(nonce=None),
    "another issuer": claiming(iss="https://evil.example"),
    "no issuer": claiming(iss=None),
    "the issuer with a slash": lambda p: claiming(iss=p.issuer + "/")(p),
    "another client": claiming(aud="other"),
    "no audience": claiming(aud=None),
    "an audience of another type": claiming(aud={"portico": True}),
    "several clients, nobody's": claiming(aud=[CLIENT, "other"]),
    "several clients, made for another": claiming(aud=[CLIENT, "other"], azp="other"),
    "ours, made for another": claiming(azp="other"),
    "another's, made for us": claiming(aud="other", azp=CLIENT),
    "expired": claiming(exp=1_700_000_000),
    "never expires": claiming(exp=None),
    "expires in words": claiming(exp="tomorrow"),
    "from the future": claiming(iat=4_000_000_000),
    "issued nobody knows when": claiming(iat=None),
    "not valid yet": claiming(nbf=4_000_000_000),
    "about nobody": claiming(sub=None),
    "about an empty name": claiming(sub=""),
    "about a number": claiming(sub=7),
    "not signed": with_(sign=openid.unsigned),
    "signed with our secret": with_(sign=openid.signed_with_secret(SECRET.encode())),
    "signed with the public key as a secret": with_(
        sign=openid.signed_with_secret(KEY.as_pem(private=False)),
    ),
    "signed with a swapped key": with_(key=OTHER_KEY),
    "signed with a key of another name": with_(sign=lambda c: jwt.encode({"alg": "RS256", "kid": "k2"}, c, OTHER_KEY)),
    "with its own key inside": with_(
        sign=lambda c: jwt.encode({"alg": "RS256", "jwk": OTHER_KEY.as_dict(private=False)}, c, OTHER_KEY)
    ),
    "no id token": with_(token=lambda answer: JSONResponse({"access_token": "at"})),
    "an id token that is none": with_(sign=lambda claims: "a.b.c"),
    "no JSON": with_(token=lambda answer: Response("hello")),
    "a redirect elsewhere": with_(token=openid.redirect_elsewhere),
    "an answer without end": with_(token=lambda answer: Response(b" " * 2_000_000)),
    "an error": with_(token=lambda answer: JSONResponse({"error": "invalid_grant"}, 400)),
    "userinfo of another person": with_(userinfo=lambda found: {**found, "sub": "sub-2"}),
    "userinfo of nobody": with_(userinfo=lambda found: {"email": "ann@example.org", "email_verified": True}),
    "an address that nobody has verified": with_(user={"email": "ann@example.org", "email_verified": False}),
    "an address verified in words": with_(user={"email": "ann@example.org", "email_verified": "yes"}),
    "an address elsewhere": with_(user={"email": "ann@evil.example", "email_verified": True}),
    "an address below": with_(user={"email": "ann@sub.example.org", "email_verified": True}),
    "two addresses": with_(user={"email": "ann@evil.example@example.org", "email_verified": True}),
    "the owner's name": with_(user={"email": "owner", "email_verified": True}),
    "no name": with_(user={}),
    "another description": lambda p: p.metadata.update(issuer="https://evil.example"),
    "a token endpoint in the clear": lambda p: p.metadata.update(token_endpoint="http://evil.example/token"),
    "keys in a file": lambda p: p.metadata.update(jwks_uri="file:///etc/passwd"),
}


@pytest.mark.parametrize("trick", TRICKS)
async def test_a_hostile_provider(login: Login, trick: str) -> None:
    TRICKS[trick](login.provider)
    answer = await login.browser.get("/login/oidc")
    if answer.status_code == 303:  # else its own description was refused
        answer = await login.come_back(login.provider.authorize(answer.headers["location"]))
        assert answer.status_code == 403, answer.text
        assert "Not logged in" in answer.text
        assert "Traceback" not in answer.text
    assert answer.status_code in (400, 403, 503)
    assert not login.logged_in
    assert (read_people(login.here.home), read_tokens(login.here.home)) == ([], [])


# -- a hostile page --------------------------------------------------------------------------------------------


async def refused(login: Login, answer: httpx.Response) -> None:
    assert answer.status_code == 403, answer.text
    assert not login.logged_in
    assert read_tokens(login.here.home) == []


async def test_an_answer_that_nobody_asked_for(login: Login) -> None:
    await refused(login, await login.come_back({"code": "c", "state": "s"}))
    await refused(login, await login.come_back({}))
    assert "token" not in login.provider.called


async def test_an_answer_in_another_browser(login: Login) -> None:
    """A page of somebody else logs our user in as them: the state is theirs, the browser is not."""
    answer = login.provider.authorize(await login.begin())
    async with login.here.client() as victim:
        await refused(login, await login.come_back(answer, victim))
        assert not victim.cookies
    assert "token" not in login.provider.called
    await refused(login, await login.come_back(answer))  # and a state is good for one try


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state[:-1] + ("0" if state[-1] != "0" else "1"),
        lambda state: "e30" + state[3:],
        lambda state: state.partition(".")[0],
        lambda state: state + ".x",
        lambda state: "." + state,
        lambda state: "é" + state,
    ],
)
async def test_a_state_that_was_changed(login: Login, change: Callable[[str], str]) -> None:
    """It says which browser began and where to go: who could change it could finish a login of theirs in ours."""
    answer = login.provider.authorize(await login.begin())
    await refused(login, await login.come_back({**answer, "state": change(answer["state"])}))
    assert "token" not in login.provider.called


async def test_a_state_is_too_old_after_a_while(login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = login.provider.authorize(await login.begin())
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 601)
    await refused(login, await login.come_back(answer))
    assert "token" not in login.provider.called


async def test_an_answer_twice(login: Login) -> None:
    answer = login.provider.authorize(await login.begin())
    assert (await login.come_back(answer)).status_code == 200
    assert (await login.come_back(answer)).status_code == 403


@pytest.mark.parametrize("issuer", ["https://evil.example", "", None])
async def test_an_answer_of_another_provider(login: Login, issuer: str | None) -> None:
    """Mixed up: the code of one provider is sent to another (RFC 9207)."""
    answer = login.provider.authorize(await login.begin())
    answer["iss"] = issuer
    await refused(login, await login.come_back({key: value for key, value in answer.items() if value is not None}))
    assert "token" not in login.provider.called


async def test_the_code_of_another_login(login: Login) -> None:
    """The attacker's code in the victim's answer: it was asked for with another verifier."""
    theirs = login.provider.authorize(await login.begin())
    mine = login.provider.authorize(await login.begin())
    await refused(login, await login.come_back({**mine, "code": theirs["code"]}))


async def test_the_provider_says_no(login: Login) -> None:
    answer = login.provider.authorize(await login.begin())
    found = await login.come_back({"state": answer["state"], "error": "access_denied<script>"})
    await refused(login, found)
    assert "<script>" not in found.text


@pytest.mark.parametrize("page", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x", "/v1"])
async def test_nobody_is_sent_elsewhere_afterwards(login: Login, page: str) -> None:
    answer = await login.log_in(page)
    assert answer.status_code == 200
    assert "evil" not in answer.text
    assert "url=/app#key=" in answer.text


async def test_what_a_refusal_leaves_behind(login: Login) -> None:
    login.provider.key = OTHER_KEY
    await login.log_in()
    audit = (await login.here.http.get("/v1/audit")).json()["audit"]
    assert "login.refused" in [each["action"] for each in audit]
    assert SECRET not in (await login.here.http.get("/v1/settings")).text


# -- who may come in -------------------------------------------------------------------------------------------


async def test_a_name_belongs_to_its_account(login: Login) -> None:
    """An address was given to a new colleague: they do not get the old one's sessions."""
    await login.log_in()
    login.provider.sub = "sub-2"
    answer = await login.log_in()
    assert (answer.status_code, "belongs to another account" in answer.text) == (403, True)


async def test_somebody_added_by_hand_comes_in_with_their_scopes(login: Login) -> None:
    add_person(login.here.home, "guest@elsewhere.example", ["read"])
    login.provider.user = {"email": "Guest@Elsewhere.example", "email_verified": True}
    assert (await login.log_in()).status_code == 200
    [guest] = read_people(login.here.home)
    assert (guest.scopes, guest.subject) == (["read"], "sub-1")
    login.here.server.loaded.settings.people.admins = [guest.name]
    assert (await login.log_in()).status_code == 200
    [guest] = read_people(login.here.home)
    assert guest.scopes == ["read", "admin"], "the settings make them an admin besides"


async def test_groups_and_admins(provider: Provider, tmp_path: Path) -> None:
    given = settings(provider.issuer, domains=[], groups={"dev": ["read", "drive"], "ops": ["admin", "read"]})
    flags = {**given, "people.admins": ["ann@example.org"]}
    expected: dict[str, tuple[list[str], list[str] | None]] = {
        "ann@example.org": ([], ["read", "drive", "approve", "files", "terminal", "jobs", "admin"]),
        "ben@example.org": (["dev", "other"], ["read", "drive"]),
        "cid@example.org": (["dev", "ops"], ["read", "drive", "admin"]),
        "dee@example.org": (["other"], None),
    }
    async with standing(tmp_path, flags=flags) as here:
        for number, (email, (groups, scopes)) in enumerate(expected.items()):
            provider.sub = f"sub-{number}"
            provider.user = {"email": email, "email_verified": True, "groups": groups}
            login = Login(here, provider)
            assert (await login.log_in()).status_code == (200 if scopes else 403)
            await login.browser.aclose()
        found = {each.name: each.scopes for each in read_people(here.home)}
        assert found == {name: scopes for name, (_, scopes) in expected.items() if scopes}


async def test_an_issuer_without_a_word_on_who_may_come_in(tmp_path: Path) -> None:
    flags = {"login.oidc.issuer": "https://id.example", "login.oidc.client_id": "x"}
    with pytest.raises(BadRequest, match="who may come in"):
        async with standing(tmp_path, flags=flags):
            pass


@pytest.mark.parametrize("address", ["http://id.example", "ftp://id.example", "http://127.0.0.1.evil.example"])
def test_a_provider_is_reached_over_tls(address: str) -> None:
    with pytest.raises(BadRequest, match="https"):
        check_address(address, address)


def test_claims_that_are_right() -> None:
    import time

    now = time.time()
    base = {"iss": "i", "sub": "s", "nonce": "n", "exp": now + 9, "iat": now}
    for audience in ({"aud": "c"}, {"aud": ["c"]}, {"aud": ["c", "d"], "azp": "c"}):
        assert check_claims({**base, **audience}, "i", "c", "n")["sub"] == "s"


async def test_a_provider_with_a_private_certificate_authority_is_trusted_by_ssl_cert_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection ignored SSL_CERT_FILE: a company's own provider did not answer, as the login page put it."""
    cert, key = certificate(tmp_path, "localhost")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    address = f"https://localhost:{server.sockets[0].getsockname()[1]}"
    provider = OidcProvider(OidcSettings(issuer=address, client_id="x"), "secret")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    certificates.cache_clear()
    try:
        with pytest.raises(Unreachable):
            await provider._call("GET", address, {})
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        certificates.cache_clear()
        assert await provider._call("GET", address, {}) == b"{}"
    finally:
        certificates.cache_clear()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    ("issuer", "installed", "problem"),
    [("", False, False), ("https://id.example.org", True, False), ("https://id.example.org", False, True)],
)
async def test_a_missing_package_is_reported_at_start_by_doctor_and_on_the_login_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, issuer: str, installed: bool, problem: bool
) -> None:
    """Only the first person who tried to log in read that the host lacks a package."""
    monkeypatch.setattr("portico.server.oidc.find_spec", lambda name: object() if installed else None)
    names = {"issuer": issuer, "client_id": "x", "client_secret": "y", "domains": ["*"]}
    flags = {f"login.oidc.{name}": value for name, value in names.items()} if issuer else {}
    async with standing(tmp_path, flags=flags) as here:
        ways = (await here.stranger.get("/login/ways")).json()
        assert ("portico[oidc]" in ways.get("problem", "")) is problem
        said: list[str] = []
        say_hello(here.server, False, said.append)
        assert any("portico[oidc]" in line for line in said) is problem
    home = Home(tmp_path / "other")
    home.make()
    if issuer:
        add_table(home.settings_path, ("login", "oidc"), names)
    assert any(not each.ok for each in _login(home)) is problem

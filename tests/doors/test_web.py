"""SECURITY 8 and 16: the login, and pages in which nothing foreign runs."""

import asyncio
import gzip
import re
import time
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest

from portico.doors import web
from portico.doors.web import Pages
from portico.features.people.people import add_person
from portico.kernel.errors import NotFound
from portico.server import identity
from portico.server.home import Home
from portico.server.identity import Tokens, new_login, new_token, remove_person, revoke_token
from tests.doors import sharing
from tests.doors.standing import Standing, problem, standing

anyio_backend = sharing.anyio_backend


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of our own, so that these tests need no build."""
    folder = tmp_path_factory.mktemp("web") / "pages"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>Portico</title>")
    (folder / "app.html").write_text("<title>Workbench</title>")
    (folder / "login.html").write_text("<title>Log in</title>")
    (folder / "index.js").write_text("export {}")
    (folder / "index.js.gz").write_bytes(gzip.compress(b"export {}"))
    (folder / "assets" / "look-abc123.css").write_text("body {}")
    (folder / "data.strange").write_text("<script>alert(1)</script>")
    (folder.parent / "secret.txt").write_text("secret")
    (folder / "link.html").symlink_to(folder.parent / "secret.txt")
    return folder


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Standing]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(web, "pages_folder", lambda: folder)
        async with standing(tmp_path_factory.mktemp("web")) as here:
            yield here


def keyed(login: httpx.Response) -> dict[str, str]:
    """What a page sends after that login, besides its cookie."""
    where, _, key = login.headers["location"].partition("#key=")
    assert (where, len(key)) == ("/app", 64)
    return {"X-Portico-Key": key}


async def test_a_stranger_is_sent_to_the_login(shared: Standing) -> None:
    answer = await shared.stranger.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert "Log in" in (await shared.stranger.get("/login")).text


async def test_the_printed_link_logs_in_once_and_the_token_leaves_the_address(shared: Standing) -> None:
    async with shared.client() as browser:
        answer = await browser.get(shared.server.login_url)
        where = answer.headers["location"].partition("#")[0]
        assert (answer.status_code, where, answer.headers["cache-control"]) == (303, "/app", "no-store")
        cookie = SimpleCookie(answer.headers["set-cookie"])[shared.server.gate.cookie]
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/")
        assert not cookie["secure"]  # plain HTTP on loopback
        assert shared.home.token() not in answer.headers["set-cookie"]
        assert "Portico" in (await browser.get("/")).text
        assert (await browser.get("/v1", headers=keyed(answer))).json()["you"] == "owner"
        assert (await browser.get("/v1")).status_code == 401


async def test_under_tls_the_cookie_is_secure(shared: Standing) -> None:
    link = f"/login?tkn={shared.home.token()}"
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(shared.server.gate), base_url="https://localhost"
    ) as tls:
        assert "secure" in (await tls.get(link)).headers["set-cookie"].lower()
    faked = await shared.stranger.get(link, headers={"X-Forwarded-Proto": "https"})
    assert "secure" not in faked.headers["set-cookie"].lower(), "what a client says about its way here is ignored"


@pytest.mark.parametrize("way", ["tkn", "code", "wrong"])
@pytest.mark.parametrize(
    ("site", "logs_in"),
    [(None, True), ("none", True), ("same-origin", True), ("cross-site", False), ("same-site", False)],
)
async def test_a_link_on_another_site_does_not_log_in(
    shared: Standing, way: str, site: str | None, logs_in: bool
) -> None:
    """Bug: a foreign page that opened `/login?tkn=` with a token of its own replaced the login of the person."""
    tokens = shared.server.tokens
    code = tokens.code(tokens.owner())
    query = {"tkn": {"tkn": shared.home.token()}, "code": {"code": code}, "wrong": {"tkn": "wrong"}}[way]
    answer = await shared.stranger.get("/login", params=query, headers={"Sec-Fetch-Site": site} if site else {})
    assert answer.status_code == (303 if logs_in else 200)
    assert ("set-cookie" in answer.headers) == (logs_in and way != "wrong")
    if not logs_in:
        assert "Log in" in answer.text
        assert tokens.by_code(code) is not None, "the code still works"


async def test_the_form_logs_in_and_a_wrong_token_does_not(shared: Standing) -> None:
    async with shared.client() as browser:
        wrong = await browser.post("/login", data={"tkn": "wrong"})
        assert (wrong.status_code, wrong.headers["location"]) == (303, "/login?error=1")
        assert "set-cookie" not in wrong.headers
        assert (await browser.post("/login", content=b"\xff")).status_code == 400
        right = await browser.post("/login", data={"tkn": f" {shared.home.token()} "})
        assert right.headers["location"].partition("#")[0] == "/app"
        assert (await browser.get("/v1", headers=keyed(right))).status_code == 200


@pytest.mark.parametrize(
    ("wanted", "lands"),
    [
        ("/app/s/session-1", "/app/s/session-1"),
        ("/jobs.html?wb=%2Ftmp", "/jobs.html?wb=%2Ftmp"),
        ("/", "/"),
        ("//evil.example/", "/app"),
        ("/\\evil.example", "/app"),
        ("https://evil.example/", "/app"),
        ("/api/stop", "/app"),
        ("/app\r\nX: y", "/app"),
    ],
)
async def test_a_login_leads_to_a_page_of_ours_only(shared: Standing, wanted: str, lands: str) -> None:
    async with shared.client() as browser:
        answer = await browser.post("/login", data={"tkn": shared.home.token(), "next": wanted})
        assert answer.headers["location"].partition("#")[0] == lands


async def test_old_addresses_lead_into_the_workbench(shared: Standing) -> None:
    moved = {"/sessions.html": "/app", "/session.html": "/app", "/session.html?id=session-7": "/app/s/session-7"}
    for address, lands in moved.items():
        assert (await shared.http.get(address)).headers["location"] == lands


async def test_every_address_below_app_is_the_workbench(shared: Standing) -> None:
    for path in ("/app", "/app/", "/app/s/session-1", "/app/inbox"):
        answer = await shared.http.get(path)
        assert (answer.status_code, answer.text) == (200, "<title>Workbench</title>")
        async with shared.client() as stranger:
            assert (await stranger.get(path)).headers["location"].startswith("/login?next=%2Fapp")


async def test_another_site_can_neither_log_us_in_nor_out(shared: Standing) -> None:
    for path in ("/login", "/logout"):
        answer = await shared.stranger.post(path, headers={"Origin": "https://evil.example"})
        problem(answer, 403, "forbidden")


async def test_logging_out_and_revoking_end_the_login(shared: Standing) -> None:
    token = new_token(shared.home, "tablet", ["read"])
    async with shared.client() as browser:
        key = keyed(await browser.get(f"/login?tkn={token}"))
        assert (await browser.get("/v1", headers=key)).json()["you"] == "tablet"
        await browser.post("/logout")
        assert (await browser.get("/v1", headers=key)).status_code == 401
        key = keyed(await browser.get(f"/login?tkn={token}"))
        assert (await browser.get("/v1", headers=key)).status_code == 200
        revoke_token(shared.home, "tablet")
        assert (await browser.get("/v1", headers=key)).status_code == 401


@pytest.mark.parametrize("kind", ["owner", "named", "login"])
async def test_a_logout_ends_the_cookie_the_key_and_what_they_hold_open(shared: Standing, kind: str) -> None:
    """Bug: the logout only deleted the cookie in the browser. A copy of it stayed valid for 30 days, and streams and
    sockets stayed open."""
    tokens = shared.server.tokens
    if kind == "login":
        add_person(shared.home, f"ada-{kind}", ["read"])
        person = tokens.people.get(f"ada-{kind}")
        assert person is not None
        caller = tokens.by_id(new_login(shared.home, person, 12))
    else:
        caller = tokens.owner() if kind == "owner" else tokens.by_token(new_token(shared.home, "phone", ["read"]))
    assert caller is not None
    cookies = [tokens.cookie(caller) for _ in range(2)]
    name = shared.server.gate.cookie

    def headers(cookie: str) -> dict[str, str]:
        return {"Cookie": f"{name}={cookie}", "X-Portico-Key": tokens.page_key(cookie)}

    async with (
        shared.client() as http,
        http.stream("GET", "/v1/events", headers={**headers(cookies[0]), "Accept": "text/event-stream"}) as stream,
    ):
        lines = stream.aiter_lines()
        assert await anext(lines) == "retry: 1000"
        assert (await http.get("/v1", headers=headers(cookies[0]))).status_code == 200
        await http.post("/logout", headers=headers(cookies[0]))
        assert (await http.get("/v1", headers=headers(cookies[0]))).status_code == 401
        async with asyncio.timeout(5):
            async for _ in lines:
                pass
        other = (await http.get("/v1", headers=headers(cookies[1]))).status_code
    assert other == (401 if kind == "login" else 200), "another login with the same token goes on"
    assert Tokens(shared.home).by_cookie(cookies[0]) is None, "also after a restart"
    if kind == "named":
        revoke_token(shared.home, "phone")
    if kind == "login":
        remove_person(shared.home, f"ada-{kind}")


async def test_cookies_of_an_older_version_are_valid_and_can_be_logged_out(shared: Standing) -> None:
    tokens = shared.server.tokens
    owner, expires = tokens.owner(), str(int(time.time()) + 100)
    old = f"{owner.id}.{expires}.{tokens._mac(owner.id, expires)}"
    assert tokens.by_cookie(old) == owner
    tokens.log_out(old)
    assert tokens.by_cookie(old) is None


async def test_a_damaged_list_of_logouts_lets_no_cookie_in(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.make()
    tokens = Tokens(home)
    cookie = tokens.cookie(tokens.owner())
    assert tokens.by_cookie(cookie) is not None
    home.logouts_path.write_text("{")
    assert tokens.by_cookie(cookie) is None
    assert tokens.by_token(home.token()) is not None


async def test_pages_run_nothing_inline_and_nothing_foreign(shared: Standing) -> None:
    answer = await shared.http.get("/index.html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"  # who opened us has no hold on us


async def test_files_come_with_their_type_packed_and_cached_by_name(shared: Standing) -> None:
    packed = await shared.stranger.get("/index.js", headers={"Accept-Encoding": "gzip"})
    assert (packed.text, packed.headers["content-encoding"]) == ("export {}", "gzip")
    assert packed.headers["content-type"].startswith("text/javascript")
    assert packed.headers["cache-control"] == "no-cache"
    plain = await shared.stranger.get("/index.js", headers={"Accept-Encoding": "identity"})
    assert (plain.text, "content-encoding" in plain.headers) == ("export {}", False)
    hashed = await shared.stranger.get("/assets/look-abc123.css")
    assert "immutable" in hashed.headers["cache-control"]
    strange = await shared.stranger.get("/data.strange")
    assert strange.headers["content-type"] == "application/octet-stream"


async def test_a_page_that_the_browser_has_is_not_sent_again(shared: Standing) -> None:
    for accepted in ("identity", "gzip"):
        headers = {"Accept-Encoding": accepted}
        first = await shared.stranger.get("/index.js", headers=headers)
        again = await shared.stranger.get("/index.js", headers={**headers, "If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
        other = await shared.stranger.get("/index.js", headers={**headers, "If-None-Match": '"other"'})
        assert (other.status_code, other.text) == (200, first.text)
    assert (await shared.http.get("/app/s/1")).headers["etag"]


def test_a_page_that_was_built_anew_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_LOOK_SECONDS", -1.0)
    page = tmp_path / "page.js"
    page.write_text("old")
    pages = Pages(tmp_path)
    old = pages.answer("page.js", "")
    assert pages.answer("page.js", "", old.headers["etag"]).status_code == 304
    (tmp_path / "new").write_text("new")
    (tmp_path / "new").rename(page)
    assert pages.answer("page.js", "", old.headers["etag"]).body == b"new"
    page.unlink()
    with pytest.raises(NotFound):
        pages.answer("page.js", "")


@pytest.mark.parametrize(
    "path",
    ["/../secret.txt", "/%2e%2e/secret.txt", "/assets/..%2f..%2fsecret.txt", "/link.html", "/%00", "/assets", "/x"],
)
async def test_nothing_outside_the_folder_is_a_page(shared: Standing, path: str) -> None:
    answer = await shared.http.get(path)
    assert (answer.status_code, "secret" in answer.text) == (404, False)


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/passwd", "link.html", "a\0b", "assets"])
def test_pages_find_only_files_below(folder: Path, name: str) -> None:
    with pytest.raises(NotFound):
        Pages(folder).find(name)


async def test_a_host_without_pages_says_so_and_does_all_the_rest(tmp_path: Path) -> None:
    """A wheel that was built without Node had no pages: every page was a bare "Not Found"."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(web, "pages_folder", lambda: tmp_path / "none")
        assert web.pages_missing()
        async with standing(tmp_path) as here, here.client() as browser:
            assert (await browser.get("/login")).status_code == 503
            entered = await browser.get(here.server.login_url)
            assert entered.status_code == 303
            for path in ("/", "/app"):
                answer = await browser.get(path)
                assert (answer.status_code, answer.text) == (503, web.NO_PAGES + "\n")
            assert (await browser.get("/v1", headers=keyed(entered))).status_code == 200


async def test_a_name_that_no_disk_takes_is_no_page(shared: Standing) -> None:
    for length in (255, 256, 5000):
        assert (await shared.http.get(f"/{'x' * length}")).status_code == 404


async def test_the_link_for_a_browser_works_once_and_holds_no_token(shared: Standing) -> None:
    """The address of a page that `--open` opens stands in the list of processes."""
    link = shared.server.opening_url
    assert shared.home.token() not in link
    async with shared.client() as browser:
        assert (await browser.get("/v1", headers=keyed(await browser.get(link)))).json()["you"] == "owner"
    again = await shared.stranger.get(link)
    assert (again.headers["location"], "set-cookie" in again.headers) == ("/login?error=1", False)


def test_the_code_of_a_link_ends_by_itself(shared: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = shared.server.tokens
    code = tokens.code(tokens.owner())
    later = time.monotonic() + identity.CODE_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert tokens.by_code(code) is None


async def test_a_page_that_is_not_there_leads_on(shared: Standing) -> None:
    person = await shared.http.get("/nowhere", headers={"Accept": "text/html,*/*"})
    assert (person.status_code, person.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no page &#x27;/nowhere&#x27; on this host." in person.text
    assert '<a href="/app">The workbench</a>' in person.text
    styles = re.findall(r'<link rel="stylesheet" href="([^"]+)">', person.text)
    assert styles == ["/theme.css", "/login.css"], "it looked like no page of Portico"
    odd = await shared.http.get("/%3Cb%3E%22", headers={"Accept": "text/html"})
    assert (odd.status_code, "<b>" in odd.text) == (404, False)
    assert (await shared.http.get("/nowhere")).text == "Not Found"

"""People and their tokens: over HTTP, on the command line, and by the header of a trusted proxy."""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from portico.features.people.people import Account, People, add_person, admit, read_people
from portico.kernel.commands import SCOPES
from portico.kernel.errors import AlreadyExists, BadRequest, Forbidden, NotFound
from portico.server import server
from portico.server.home import Home
from portico.server.identity import NamedToken, Tokens, new_login, new_token, read_tokens, remove_person
from portico.server.settings import Settings
from tests.doors.standing import Standing, problem, standing


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.make()
    return found


def test_a_token_may_do_what_its_person_may(home: Home) -> None:
    add_person(home, "ann", ["read", "drive"])
    token = new_token(home, "laptop", ["read", "approve"], person="ann")
    caller = Tokens(home).by_token(token)
    assert caller is not None
    assert (caller.person, caller.scopes, caller.by) == ("ann", frozenset({"read"}), "person:ann")


def test_a_token_ends_with_its_person(home: Home) -> None:
    add_person(home, "ann", ["read"])
    tokens, token = Tokens(home), new_token(home, "laptop", ["read"], person="ann")
    caller = tokens.by_token(token)
    assert caller is not None
    remove_person(home, "ann")
    assert (tokens.by_token(token), tokens.by_id(caller.id)) == (None, None)
    add_person(home, "ann", ["read"])  # somebody else, who has that name now
    assert (tokens.by_token(token), tokens.by_id(caller.id)) == (None, None)


def test_tokens_and_logins_expire(home: Home) -> None:
    person = add_person(home, "ann", ["read"])
    tokens = Tokens(home)
    token, login = new_token(home, "short", ["read"], "ann", days=1), new_login(home, person, hours=1)
    assert tokens.by_token(token) is not None
    cookie = tokens.cookie(tokens.by_id(login) or pytest.fail("no login"))
    assert tokens.by_cookie(cookie) is not None
    past = [msgspec.structs.replace(each, expires=int(time.time() * 1000) - 1) for each in read_tokens(home)]
    home.tokens_path.write_bytes(msgspec.json.encode(past))
    assert (tokens.by_token(token), tokens.by_cookie(cookie), tokens.by_id(login)) == (None, None, None)
    new_token(home, "next", ["read"])
    assert [each.name for each in read_tokens(home)] == ["next"], "what has expired goes with the next change"


def test_names_of_tokens_are_a_persons_own(home: Home) -> None:
    for name in ("ann", "ben"):
        add_person(home, name, ["read"])
        new_token(home, "laptop", ["read"], person=name)
    with pytest.raises(AlreadyExists):
        new_token(home, "laptop", ["read"], person="ann")
    with pytest.raises(NotFound):
        new_token(home, "laptop", ["read"], person="nobody")


async def test_a_person_has_a_bounded_number_of_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: one person created 400 tokens in 11 seconds. Logins and expired tokens do not count, and neither do those of
    other people."""
    monkeypatch.setattr("portico.limits.TOKENS", 3)
    async with standing(tmp_path) as here:
        for name in ("ann", "ben"):
            add_person(here.home, name, ["read"])
        new_token(here.home, "old", ["read"], "ann", days=1e-9)
        new_login(here.home, read_people(here.home)[0], 1)
        async with here.client(new_token(here.home, "laptop", ["read"], "ann")) as ann:

            async def make(number: int) -> httpx.Response:
                return await ann.post("/v1/people/me/tokens", json={"name": f"t{number}"})

            answers = await asyncio.gather(*map(make, range(5)))
            assert sorted(each.status_code for each in answers) == [201, 201, 409, 409, 409]
            refused = next(each for each in answers if each.status_code == 409)
            assert "revoke some first" in problem(refused, 409, "conflict", "name")
            assert (await ann.delete("/v1/people/me/tokens/laptop")).status_code == 204
        new_token(here.home, "again", ["read"], "ann")
        new_token(here.home, "his", ["read"], "ben")


def test_a_person_has_so_many_logins(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico.limits.LOGINS", 3)
    person = add_person(home, "ann", ["read"])
    made = [new_login(home, person, 1) for _ in range(5)]
    assert [each.id for each in read_tokens(home)] == made[2:]


def test_old_files_are_read(home: Home) -> None:
    home.tokens_path.write_bytes(b'[{"id":"a","name":"ci","hash":"h","scopes":["read"],"created":1}]')
    assert read_tokens(home) == [NamedToken("a", "ci", "h", ["read"], 1)]


@pytest.mark.parametrize("name", ["", "owner", "a b", "a/b", "*", "-a", "x" * 65, "Ünn"])
def test_names_that_nobody_has(home: Home, name: str) -> None:
    with pytest.raises(BadRequest):
        add_person(home, name, ["read"])


def test_when_a_token_was_last_seen(home: Home) -> None:
    token, tokens = new_token(home, "ci", ["read"]), Tokens(home)
    before = int(time.time() * 1000)
    caller = tokens.by_token(token)
    assert caller is not None
    tokens.used[caller.id] = int(time.time() * 1000)  # as the gate does
    tokens.save_uses()
    assert Tokens(home).used[caller.id] >= before


def test_a_damaged_file_of_people_lets_none_of_them_in(home: Home) -> None:
    add_person(home, "ann", ["read"])
    token, tokens = new_token(home, "laptop", ["read"], "ann"), Tokens(home)
    (home.path / "people.json").write_bytes(b"{")
    assert tokens.by_token(token) is None
    with pytest.raises(BadRequest, match=r"people\.json"):
        read_people(home)


def test_whoever_is_let_in_no_more(home: Home) -> None:
    settings, people = Settings(), People(home)
    settings.login.oidc.domains = ["example.org"]
    account = Account("ann", "https://id", "s", "ann@example.org")
    assert admit(people, home, settings, account).scopes == settings.people.scopes
    settings.login.oidc.domains = ["example.com"]
    with pytest.raises(Forbidden, match="may not come in"):
        admit(people, home, settings, account)


@pytest.mark.parametrize(
    ("by_hand", "named", "unnamed"),
    [
        (["read"], ["read", "admin"], ["read"]),
        (["read", "admin"], ["read", "admin"], ["read", "admin"]),
        (None, ["read", "drive", "admin"], ["read", "drive"]),
    ],
    ids=["added by hand", "an admin by hand", "let in by a login"],
)
def test_whom_the_settings_name_is_an_admin_as_long_as_they_do(
    home: Home, by_hand: list[str] | None, named: list[str], unnamed: list[str]
) -> None:
    """Whoever was taken out of `people.admins` stayed an admin until the next login; if added by hand, for ever."""
    settings, people = Settings(), People(home)
    settings.login.oidc.domains, settings.people.scopes = ["example.org"], ["read", "drive"]
    account = Account("ann", "https://id", "s", "ann@example.org")
    if by_hand is None:
        admit(people, home, settings, account)
    else:
        add_person(home, "ann", by_hand)
    add_person(home, "ben", ["read"])
    token = new_token(home, "laptop", list(SCOPES), "ann")
    for admins, expected in ((["ann"], named), ([], unnamed), (["ann"], named)):
        people.appoint(admins)
        caller = Tokens(home).by_token(token)
        assert (caller and caller.scopes, people.all()["ben"].scopes) == (frozenset(expected), ["read"])
        settings.people.admins = admins
        assert admit(people, home, settings, account).scopes == expected, "a login says the same"


def test_an_admin_comes_in_where_people_have_no_scopes(home: Home) -> None:
    settings, people = Settings(), People(home)
    settings.people.scopes, settings.people.admins = [], ["ann"]
    assert admit(people, home, settings, Account("ann", "https://id", "s")).scopes == ["admin"]


def test_nobody_is_appointed_in_a_damaged_file(home: Home) -> None:
    damaged = home.path / "people.json"
    damaged.write_bytes(b"{")
    People(home).appoint(["ann"])
    assert damaged.read_bytes() == b"{"


# -- over HTTP -------------------------------------------------------------------------------------------------


async def test_one_makes_tokens_for_oneself(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        add_person(here.home, "ann", ["read", "drive"])
        async with here.client(new_token(here.home, "first", ["read", "drive"], "ann")) as ann:
            assert (await ann.post("/v1/people/me/tokens", json={"name": "x", "scopes": ["admin"]})).status_code == 403
            made = await ann.post("/v1/people/me/tokens", json={"name": "phone", "scopes": ["read"], "days": 7})
            assert made.status_code == 201
            async with here.client(made.json()["token"]) as phone:
                me = (await phone.get("/v1/people/me")).json()
                assert (me["person"], me["scopes"]) == ("ann", ["read"])
                assert {each["name"]: each.get("used", 0) > 0 for each in me["tokens"]} == {
                    "first": True,
                    "phone": True,
                }
            assert (await ann.delete("/v1/people/me/tokens/phone")).status_code == 204
            assert (await ann.get("/v1/people")).status_code == 403
        problem(await here.http.post("/v1/people/me/tokens", json={"name": "x"}), 400, "bad_request")
        assert (await here.http.get("/v1/people/me")).json()["person"] == ""


async def test_a_small_token_does_not_outgrow_itself(tmp_path: Path) -> None:
    """A stolen token that reads for a day made one that reads for ever, and ended those that do more."""
    own = "/v1/people/me/tokens"
    async with standing(tmp_path) as here:
        person = add_person(here.home, "ann", ["read", "drive"])
        new_token(here.home, "laptop", ["read", "drive"], "ann")
        async with here.client(new_token(here.home, "ci", ["read"], "ann", days=1)) as ci:
            for days in (None, 2, 1.1):
                body = {"name": "more", "scopes": ["read"], "days": days}
                assert "ends in 1.0 days" in problem(await ci.post(own, json=body), 403, "forbidden", "days")
            assert (await ci.post(own, json={"name": "less", "scopes": ["read"], "days": 0.5})).status_code == 201
            assert "may do more" in problem(await ci.delete(f"{own}/laptop"), 403, "forbidden")
            assert (await ci.delete(f"{own}/ci")).status_code == 204
        login = here.server.tokens.by_id(new_login(here.home, person, hours=1))
        assert login is not None
        cookie = here.server.tokens.cookie(login)
        key = here.server.tokens.page_key(cookie)
        headers = {"Cookie": f"{here.server.gate.cookie}={cookie}", "X-Portico-Key": key}
        async with here.client(None, **headers) as browser:
            made = await browser.post(own, json={"name": "phone", "scopes": ["read"]})
            assert made.status_code == 201, made.text


async def test_admins_add_and_remove_people(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        made = await here.http.post("/v1/people", json={"name": "Ann@Example.org"})
        assert made.json()["name"] == "ann@example.org"
        assert "admin" not in made.json()["scopes"]
        assert [each["name"] for each in (await here.http.get("/v1/people")).json()["people"]] == ["ann@example.org"]
        assert (await here.http.delete("/v1/people/ann@example.org")).status_code == 204
        problem(await here.http.delete("/v1/people/ann@example.org"), 404, "not_found")
        audit = (await here.http.get("/v1/audit")).json()["audit"]
        assert {"person.added", "person.removed"} <= {each["action"] for each in audit}


async def test_leaving_the_admins_counts_without_a_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_WATCH_SECONDS", 0.02)
    async with standing(tmp_path) as here:
        names = [(await here.http.post("/v1/people", json={"name": name})).json()["name"] for name in ("ann", "Ben")]
        ann, ben = (new_token(here.home, "laptop", list(SCOPES), name) for name in names)
        async with here.client(ann) as first, here.client(ben) as second, asyncio.timeout(30):
            for admins, allowed in ((["ann"], [200, 403]), (["ben"], [403, 200]), ([], [403, 403])):
                here.home.settings_path.write_text(f"[people]\nadmins = {admins}\n")
                while [(await each.get("/v1/people")).status_code for each in (first, second)] != allowed:
                    pass


# -- by a proxy's header ---------------------------------------------------------------------------------------

HEADER, SECRET = "X-Remote-User", "between us"
START = "/api/copilot/session/start/gpt-5.2"
PROXIED = {
    "server.trusted_proxies": ["127.0.0.1"],
    "login.proxy.header": HEADER,
    "login.proxy.secret": SECRET,
    "people.admins": ["root@example.org"],
}


async def named(here: Standing, headers: list[tuple[str, str]]) -> httpx.Response:
    async with httpx.AsyncClient(base_url=here.url, trust_env=False) as client:
        return await client.get("/v1/people/me", headers=headers)


async def test_a_proxy_names_people(tmp_path: Path) -> None:
    async with standing(tmp_path, flags=PROXIED) as here:
        secret = ("X-Portico-Proxy-Secret", SECRET)
        for name, person, admin in (("Ann@Example.org", "ann@example.org", False), ("root@example.org", None, True)):
            me = (await named(here, [(HEADER, name), secret])).json()
            assert (me["person"], me["admin"]) == (person or name, admin)
        refused: list[list[tuple[str, str]]] = [
            [],
            [(HEADER, "ann")],
            [(HEADER, "ann"), ("X-Portico-Proxy-Secret", "guess")],
            [(HEADER, "ann"), secret, ("X-Portico-Proxy-Secret", "guess")],
            [(HEADER, "ann"), (HEADER, "ben"), secret],
            [(HEADER, ""), secret],
            [secret],
        ]
        for headers in refused:
            assert (await named(here, headers)).status_code == 401, headers
        assert (await named(here, [(HEADER, "owner"), secret])).status_code == 400
        async with here.client(None, **{HEADER: "ann", "X-Portico-Proxy-Secret": SECRET}) as ann:
            started = await ann.post("/v1/sessions", json={"agent": "scripted"})
            assert started.json()["owner"] == "ann"


async def test_nobody_but_the_proxy_names_people(tmp_path: Path) -> None:
    flags = {**PROXIED, "server.trusted_proxies": ["10.1.2.3"]}
    async with standing(tmp_path, flags=flags) as here:
        answer = await named(here, [(HEADER, "ann"), ("X-Portico-Proxy-Secret", SECRET)])
        assert answer.status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "headers", "passes"),
    [
        ("GET", START, {}, False),
        ("GET", START, {"Sec-Fetch-Site": "same-origin"}, True),
        ("GET", START, {"Sec-Fetch-Site": "none"}, True),  # typed by the person
        ("GET", START, {"Sec-Fetch-Site": "cross-site"}, False),
        ("GET", START, {"Origin": "https://evil.example"}, False),
        ("GET", "/api/copilot/models", {}, True),  # it only reads
        ("GET", "/v1/sessions", {}, True),
        ("POST", START, {}, True),  # browsers send Origin with every POST to another site
        ("POST", START, {"Origin": "https://evil.example"}, False),
    ],
)
async def test_a_get_that_changes_something_says_who_sent_it(
    tmp_path: Path, method: str, path: str, headers: dict[str, str], passes: bool
) -> None:
    """Bug: the proxy adds the login, and a browser without Sec-Fetch-Site sends a GET for another site without any
    header that tells so."""
    async with standing(tmp_path, flags=PROXIED) as here:
        login = {HEADER: "ann@example.org", "X-Portico-Proxy-Secret": SECRET}
        async with here.client(**login, **headers) as ann:
            answer = await ann.request(method, path)
            assert answer.status_code == (200 if passes else 403), answer.text
        token = {"Authorization": f"Bearer {here.home.token()}"}
        async with here.client(**login, **token) as program:
            assert (await program.request(method, path)).status_code == 200


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"login.proxy.secret": ""}, "every program on this machine"),
        ({"server.trusted_proxies": []}, "trusted_proxies"),
        ({"login.proxy.header": "a b"}, "not the name of a header"),
    ],
)
async def test_a_header_that_anybody_could_send_is_refused(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        async with standing(tmp_path, flags={**PROXIED, **changed}):
            pass


# -- quotas ----------------------------------------------------------------------------------------------------


async def test_quotas(tmp_path: Path) -> None:
    """Each bound refuses the next one with its name and what to close; the owner's token has none."""
    flags = {"quotas.sessions": 2, "quotas.turns": 1, "quotas.terminals": 1}
    async with standing(tmp_path, flags=flags) as here:
        add_person(here.home, "ann", SCOPES[:-1])
        async with here.client(new_token(here.home, "laptop", list(SCOPES), "ann")) as ann:

            async def start() -> httpx.Response:
                return await ann.post("/v1/sessions", json={"agent": "scripted"})

            first, second = (await start()).json()["id"], (await start()).json()["id"]
            words = problem(await start(), 429, "quota_exceeded", "quotas.sessions")
            assert first in words
            assert "archive or delete" in words
            problem(await ann.post(f"/v1/sessions/{first}/fork", json={}), 429, "quota_exceeded", "quotas.sessions")
            await ann.patch(f"/v1/sessions/{second}", json={"archived": True})
            assert (await start()).status_code == 201

            async def send(session: str) -> httpx.Response:
                return await ann.post(f"/v1/sessions/{session}/messages", json={"text": "[[hang]]"})

            assert (await send(first)).status_code == 202
            words = problem(await send(second), 429, "quota_exceeded", "quotas.turns")
            assert first in words
            assert (await send(first)).status_code == 202, "it waits in the queue of the one that runs"

            task = {"command": "task.start", "arguments": {"session": second, "name": "x"}}
            problem(await ann.post("/v1/commands", json=task), 429, "quota_exceeded", "quotas.turns")

            opened = await ann.post("/v1/terminals", json={})
            assert opened.status_code == 201
            words = problem(await ann.post("/v1/terminals", json={}), 429, "quota_exceeded", "quotas.terminals")
            assert opened.json()["id"] in words

            me = (await ann.get("/v1/people/me")).json()
            shown = {each["name"]: (each["used"], each["bound"]) for each in me["quotas"]}
            assert shown == {"sessions": (2, 2), "turns": (1, 1), "terminals": (1, 1), "disk_mb": (0, 0)}
        for _ in range(3):
            await here.start()


@pytest.mark.parametrize("way", ["change", "command"])
async def test_an_archived_session_comes_back_within_the_quota_only(tmp_path: Path, way: str) -> None:
    """Bug: the quota was bypassed: archive one, start another, unarchive the first."""
    async with standing(tmp_path, flags={"quotas.sessions": 1}) as here:
        add_person(here.home, "ann", SCOPES[:-1])
        async with here.client(new_token(here.home, "laptop", list(SCOPES), "ann")) as ann:

            async def unarchive(session: str) -> httpx.Response:
                if way == "change":
                    return await ann.patch(f"/v1/sessions/{session}", json={"archived": False})
                said = {"session": session, "archived": False}
                return await ann.post("/v1/commands", json={"command": "session.archive", "arguments": said})

            first = (await ann.post("/v1/sessions", json={"agent": "scripted"})).json()["id"]
            assert (await unarchive(first)).is_success, "it is not archived, and does not count twice"
            await ann.patch(f"/v1/sessions/{first}", json={"archived": True})
            second = (await ann.post("/v1/sessions", json={"agent": "scripted"})).json()["id"]
            words = problem(await unarchive(first), 429, "quota_exceeded", "quotas.sessions")
            assert second in words
            await ann.delete(f"/v1/sessions/{second}")
            assert (await unarchive(first)).is_success


QUOTA_OF = {"terminal": "terminals", "message": "turns"}
"""The quota that a kind of request counts toward; sessions for the others."""


@pytest.mark.parametrize("kind", ["start", "keyed", "fork", "import", "unarchive", "terminal", "message"])
async def test_concurrent_requests_do_not_exceed_a_quota(tmp_path: Path, kind: str) -> None:
    """Bug: 40 concurrent starts created 7 sessions with a quota of 5."""
    async with standing(tmp_path, flags={f"quotas.{QUOTA_OF.get(kind, 'sessions')}": 3}) as here:
        add_person(here.home, "ann", SCOPES if kind == "import" else SCOPES[:-1])
        async with here.client(new_token(here.home, "laptop", list(SCOPES), "ann")) as ann:

            async def start(**headers: str) -> httpx.Response:
                return await ann.post("/v1/sessions", json={"agent": "scripted"}, headers=headers)

            archived = []
            for _ in range(8 if kind in ("unarchive", "message") else 1):
                archived.append((await start()).json()["id"])
                if kind == "unarchive":
                    await ann.patch(f"/v1/sessions/{archived[-1]}", json={"archived": True})
            archive = (await ann.get(f"/v1/sessions/{archived[0]}/archive")).json()

            async def request(number: int) -> httpx.Response:
                match kind:
                    case "keyed":
                        return await start(**{"Idempotency-Key": str(number)})
                    case "fork":
                        return await ann.post(f"/v1/sessions/{archived[0]}/fork", json={})
                    case "import":
                        return await ann.post("/v1/sessions/import", json={"archive": archive})
                    case "unarchive":
                        return await ann.patch(f"/v1/sessions/{archived[number]}", json={"archived": False})
                    case "terminal":
                        return await ann.post("/v1/terminals", json={})
                    case "message":
                        return await ann.post(f"/v1/sessions/{archived[number]}/messages", json={"text": "[[hang]]"})
                return await start()

            answers = await asyncio.gather(*map(request, range(8)))
            before = 1 if QUOTA_OF.get(kind) is None and kind != "unarchive" else 0
            assert sorted(each.status_code for each in answers)[3 - before :] == [429] * (5 + before)
            assert sum(each.is_success for each in answers) == 3 - before
            if kind == "keyed":  # a repeated request gets its answer, although the quota is used up
                first = next(number for number, each in enumerate(answers) if each.is_success)
                assert (await request(first)).json() == answers[first].json()


async def test_the_portal_reports_a_quota_as_every_other_door(tmp_path: Path) -> None:
    """Bug: it was a 500."""
    async with standing(tmp_path, flags={"quotas.sessions": 1}) as here:
        add_person(here.home, "ann", SCOPES[:-1])
        async with here.client(new_token(here.home, "laptop", list(SCOPES), "ann")) as ann:
            [model, *_] = (await ann.get("/api/copilot/models")).json()["models"]
            assert "sessionId" in (await ann.post(f"/api/copilot/session/start/{model['id']}")).json()
            answer = await ann.post(f"/api/copilot/session/start/{model['id']}")
            problem(answer, 429, "quota_exceeded", "quotas.sessions")


async def test_the_quota_of_the_disk(tmp_path: Path) -> None:
    async with standing(tmp_path, flags={"quotas.disk_mb": 1}) as here:
        add_person(here.home, "ann", SCOPES[:-1])
        async with here.client(new_token(here.home, "laptop", list(SCOPES), "ann")) as ann:
            session = (await ann.post("/v1/sessions", json={"agent": "scripted"})).json()["id"]
            sent = await ann.post(f"/v1/sessions/{session}/messages", json={"text": "x" * 1_200_000})
            await (await here.server.host.get(session)).wait(sent.json()["turn"])
            await here.server.host.sweep()
            answer = await ann.post(f"/v1/sessions/{session}/messages", json={"text": "more"})
            problem(answer, 429, "quota_exceeded", "quotas.disk_mb")

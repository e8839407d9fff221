"""What the gate reads in the headers of a request: whose token it is, which cookie counts, whether a body comes."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portico.features.people.people import add_person
from portico.server.home import Home
from portico.server.identity import OWNER, Tokens, new_token, revoke_token
from portico.server.proxy import ROOT
from portico.server.request_head import PAGE_KEY, RawHeaders, RequestHead, RequestHeads


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.make()
    return home


@pytest.fixture
def tokens(home: Home) -> Tokens:
    home.token()
    return Tokens(home)


def head(*raw: tuple[bytes, bytes], cookie: str = "portico") -> RequestHead:
    return RequestHead(list(raw), cookie)


@pytest.mark.parametrize(
    ("value", "token"),
    [
        (b"Bearer secret", "secret"),
        (b"bearer secret", "secret"),
        (b"BEARER   secret  ", "secret"),
        (b"Bearer", None),
        (b"Bearer ", None),
        (b"Basic c2VjcmV0", None),
        (b"secret", None),
        (b"", None),
    ],
)
def test_a_token_stands_behind_bearer(value: bytes, token: str | None) -> None:
    assert head((b"authorization", value)).bearer == token


def test_of_two_tokens_the_first_counts() -> None:
    assert head((b"authorization", b"Bearer one"), (b"authorization", b"Bearer two")).bearer == "one"


@pytest.mark.parametrize(
    ("raw", "host"),
    [
        ([], None),
        ([(b"host", b"localhost:1")], "localhost:1"),
        ([(b"host", b"localhost:1"), (b"host", b"evil.example")], "localhost:1, evil.example"),
    ],
)
def test_all_hosts_are_seen(raw: RawHeaders, host: str | None) -> None:
    """Of two, a proxy on the way may have looked at the other: together they are no name of ours."""
    assert head(*raw).host == host


@pytest.mark.parametrize(
    ("raw", "length", "bodiless"),
    [
        ([], None, True),
        ([(b"content-length", b"0")], "0", False),
        ([(b"content-length", b"12")], "12", False),
        ([(b"transfer-encoding", b"chunked")], None, False),
    ],
)
def test_whether_a_body_comes(raw: RawHeaders, length: str | None, bodiless: bool) -> None:
    found = head(*raw)
    assert (found.length, found.bodiless) == (length, bodiless)


def test_headers_are_found_by_name_as_they_came() -> None:
    found = head((b"origin", "http://bücher".encode("latin-1")), (b"origin", b"second"))
    assert found.get(b"origin") == "http://bücher"
    assert b"origin" in found
    assert b"referer" not in found
    assert found.get(b"referer") is None


def test_the_owners_token_is_the_owner(tokens: Tokens, home: Home) -> None:
    found = head((b"authorization", f"Bearer {home.token()}".encode())).identify(tokens)
    assert found.token == tokens.owner()
    assert found.cookie is None
    assert found.until == float("inf")


@pytest.mark.parametrize("raw", [[], [(b"authorization", b"Bearer wrong")], [(b"cookie", b"portico=wrong.1.x")]])
def test_strangers_are_nobody(tokens: Tokens, raw: RawHeaders) -> None:
    found = head(*raw).identify(tokens)
    assert (found.token, found.cookie, found.keyed) == (None, None, False)


def test_a_token_is_another_one_after_it_was_revoked(tokens: Tokens, home: Home) -> None:
    made = new_token(home, "phone", ["read"])
    found = head((b"authorization", f"Bearer {made}".encode()))
    first = found.identify(tokens)
    assert first.token is not None
    assert first.token.scopes == {"read"}
    assert found.identify(tokens) is first, "the same headers are looked up once"
    revoke_token(home, "phone", "")
    assert found.identify(tokens).token is None


def _new_owner(home: Home) -> None:
    revoke_token(home, OWNER)


def _other_token(home: Home) -> None:
    new_token(home, "laptop", ["read"])


def _other_person(home: Home) -> None:
    add_person(home, "ada", ["read"])


CHANGES: list[tuple[Callable[[Home], None], bool, bool]] = [
    (_new_owner, True, True),
    (_other_token, False, True),
    (_other_person, False, True),
]
"""What happens to the files, and for whom it is looked up again: the owner, a named token."""


@pytest.mark.parametrize(("change", "owner", "named"), CHANGES)
def test_who_somebody_is_holds_until_a_file_changes_that_says_so(
    tokens: Tokens, home: Home, change: Callable[[Home], None], owner: bool, named: bool
) -> None:
    cookie = (b"cookie", f"portico={tokens.cookie(tokens.owner())}".encode())
    bearer = (b"authorization", f"Bearer {home.token()}".encode())
    phone = (b"authorization", f"Bearer {new_token(home, 'phone', ['read'])}".encode())
    known = [(found := head(raw), found.identify(tokens), again) for raw, again in
             ((cookie, owner), (bearer, owner), (phone, named))]  # fmt: skip
    change(home)
    assert [found.identify(tokens) is not first for found, first, _ in known] == [again for *_, again in known]
    now = [(found.identify(tokens).token or found.identify(tokens).cookie) is None for found, *_ in known]
    assert now == [owner, owner, False], "an owner of before is nobody"


def test_a_token_ends_with_its_time(tokens: Tokens, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    made = new_token(home, "phone", ["read"], days=1)
    found = head((b"authorization", f"Bearer {made}".encode()))
    until = found.identify(tokens).until
    assert time.time() + 86_000 < until < time.time() + 87_000
    monkeypatch.setattr(time, "time", lambda: until + 1)
    assert found.identify(tokens).token is None


COOKIES = [
    ("portico={}", True),
    ("a=b; portico={}; c=d", True),
    ('portico="{}"', True),
    ("other={}", False),
    ("portico=", False),
    ("portico={}x", False),
    ("portico=x{}", False),
    (";;;", False),
]


@pytest.mark.parametrize(("text", "known"), COOKIES, ids=[text for text, _ in COOKIES])
def test_a_cookie_is_its_login(tokens: Tokens, text: str, known: bool) -> None:
    cookie = tokens.cookie(tokens.owner())
    found = head((b"cookie", text.format(cookie).encode())).identify(tokens)
    assert (found.cookie is not None) is known
    assert found.token is None
    if known:
        assert found.cookie_text == cookie


def test_a_page_key_belongs_to_its_cookie(tokens: Tokens) -> None:
    """What a page of another site makes a browser send has the cookie and not the key."""
    one = tokens.cookie(tokens.owner())
    sent = (b"cookie", f"portico={one}".encode())
    for key, keyed in ((tokens.page_key(one), True), (tokens.page_key(one + "x"), False), ("", False)):
        assert head(sent, (PAGE_KEY, key.encode())).identify(tokens).keyed is keyed


def test_a_token_comes_before_a_cookie(tokens: Tokens) -> None:
    cookie = tokens.cookie(tokens.owner())
    raw = [(b"authorization", b"Bearer wrong"), (b"cookie", f"portico={cookie}".encode())]
    found = head(*raw).identify(tokens)
    assert (found.token, found.cookie) == (None, None), "a wrong token is not made good by a cookie"


SCHEMES: list[tuple[dict[str, Any], str]] = [
    ({"scheme": "http"}, "portico"),
    ({"scheme": "ws"}, "portico"),
    ({"scheme": "https"}, "__Host-portico"),
    ({"scheme": "wss"}, "__Host-portico"),
    ({"scheme": "https", ROOT: "/base"}, "__Secure-portico"),
    ({"scheme": "http", ROOT: "/base"}, "portico"),
]


@pytest.mark.parametrize(("scope", "name"), SCHEMES)
def test_over_tls_the_cookie_has_a_name_that_browsers_protect(scope: dict[str, Any], name: str) -> None:
    """`__Host-` demands the path `/`, which a server below a base path cannot have."""
    assert RequestHeads("portico").cookie_of(scope) == name


def test_the_same_headers_are_read_once_and_large_ones_each_time() -> None:
    heads = RequestHeads("portico")
    small = {"scheme": "http", "headers": [(b"host", b"a")]}
    assert heads.of(dict(small)) is heads.of(dict(small))
    assert heads.of({**small, "scheme": "https"}) is not heads.of(small)
    assert heads.of({**small, ROOT: "/base"}) is not heads.of(small)
    large = {"scheme": "http", "headers": [(b"x", b"y" * 5000)]}
    assert heads.of(dict(large)) is not heads.of(dict(large))

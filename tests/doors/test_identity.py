"""SECURITY 2, 3 and 8: tokens, and the cookies that stand for them."""

import hmac
import stat
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portico.kernel.errors import AlreadyExists, BadRequest, NotFound
from portico.server import identity
from portico.server.home import Home
from portico.server.identity import Tokens, new_token, read_tokens, revoke_token
from portico.server.route import SCOPES
from tests.doors import sharing
from tests.doors.standing import Standing, problem

anyio_backend, shared = sharing.anyio_backend, sharing.shared


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.make()
    return home


def test_the_owners_token_is_made_at_the_first_look_and_kept(home: Home) -> None:
    token = home.token()
    assert len(token) >= 43  # 256 bits in base64
    assert home.token() == token
    owner = Tokens(home).by_token(token)
    assert owner is not None
    assert (owner.name, owner.scopes) == ("owner", frozenset(SCOPES))


def test_secrets_are_readable_by_their_owner_only(home: Home) -> None:
    Tokens(home).by_token("x")
    new_token(home, "phone", ["read"])
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    for path in home.path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_only_a_hash_of_a_named_token_is_stored(home: Home) -> None:
    token = new_token(home, "phone", ["read", "approve"])
    assert token not in home.tokens_path.read_text()
    caller = Tokens(home).by_token(token)
    assert caller is not None
    assert (caller.name, caller.scopes, caller.by) == ("phone", frozenset({"read", "approve"}), "token:phone")


def test_tokens_are_compared_in_constant_time(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stored hash is compared by `compare_digest`, whether or not an earlier one matched."""
    for name in ("a", "b", "c"):
        new_token(home, name, ["read"])
    tokens = Tokens(home)
    compared = []
    right = hmac.compare_digest

    def spy(one: str, other: str) -> bool:
        compared.append(other)
        return right(one, other)

    monkeypatch.setattr(hmac, "compare_digest", spy)
    tokens.by_token(home.token())
    assert len(compared) == 4


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "../up", "owner\n"])
def test_a_strange_name_is_refused(home: Home, name: str) -> None:
    with pytest.raises(BadRequest) as error:
        new_token(home, name, ["read"])
    assert error.value.field == "name"


def test_an_unknown_scope_or_a_taken_name_is_refused(home: Home) -> None:
    with pytest.raises(BadRequest, match="choose from read, drive"):
        new_token(home, "phone", ["root"])
    new_token(home, "phone", ["read"])
    for name in ("phone", "owner"):
        with pytest.raises(AlreadyExists):
            new_token(home, name, ["read"])


def test_revoking_ends_the_token_and_its_cookies(home: Home) -> None:
    token = new_token(home, "phone", ["read"])
    tokens = Tokens(home)
    caller = tokens.by_token(token)
    assert caller is not None
    cookie = tokens.cookie(caller)
    assert tokens.by_cookie(cookie) == caller
    revoke_token(home, "phone")
    assert (tokens.by_token(token), tokens.by_cookie(cookie), tokens.by_id(caller.id)) == (None, None, None)
    assert read_tokens(home) == []
    with pytest.raises(NotFound):
        revoke_token(home, "phone")


def test_a_new_token_of_the_same_name_does_not_inherit_cookies(home: Home) -> None:
    tokens = Tokens(home)
    caller = tokens.by_token(new_token(home, "phone", ["read"]))
    assert caller is not None
    cookie = tokens.cookie(caller)
    revoke_token(home, "phone")
    new_token(home, "phone", ["read"])
    assert tokens.by_cookie(cookie) is None


def test_revoking_the_owners_token_makes_a_new_one_and_ends_the_old_logins(home: Home) -> None:
    tokens, old = Tokens(home), home.token()
    cookie = tokens.cookie(tokens.owner())
    revoke_token(home, "owner")
    assert (tokens.by_token(old), tokens.by_cookie(cookie)) == (None, None)
    assert tokens.by_token(home.token()) is not None
    assert home.token() != old


def test_a_login_survives_a_restart(home: Home) -> None:
    before = Tokens(home)
    cookie = before.cookie(before.owner())
    assert Tokens(home).by_cookie(cookie) == before.owner()


def test_a_token_and_its_logins_end_when_it_expires(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens(home)
    token, lasting = new_token(home, "phone", ["read"], days=1), new_token(home, "box", ["read"])
    caller = tokens.by_token(token)
    assert caller is not None
    cookie = tokens.cookie(caller)
    later = time.time() + 86_401
    monkeypatch.setattr(time, "time", lambda: later)
    assert (tokens.by_token(token), tokens.by_cookie(cookie), tokens.by_id(caller.id)) == (None, None, None)
    assert tokens.by_token(lasting) is not None


@pytest.mark.parametrize("days", [0, -1, 4000, float("nan")])
def test_a_token_lasts_some_days(home: Home, days: float) -> None:
    with pytest.raises(BadRequest) as refused:
        new_token(home, "phone", ["read"], days=days)
    assert refused.value.field == "days"


def test_a_login_ends_after_a_month(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens(home)
    cookie = tokens.cookie(tokens.owner())
    later = time.time() + identity.COOKIE_SECONDS + 2
    monkeypatch.setattr(time, "time", lambda: later)
    assert tokens.by_cookie(cookie) is None


def test_a_cookie_cannot_be_changed(home: Home) -> None:
    tokens = Tokens(home)
    ident, expires, nonce, mac = tokens.cookie(tokens.owner()).split(".")
    right = f"{ident}.{expires}.{nonce}.{mac}"
    assert tokens.by_cookie(right) == tokens.owner()
    for forged in (
        *(f"{ident}.{int(expires) + 1}.{nonce}.{mac}", f"x.{expires}.{nonce}.{mac}", right[:-1] + "0", ident),
        *(f"{ident}.{expires}.{mac}", f"{ident}.{expires}.x.{mac}", f"{ident}.{expires}.{nonce}.x.{mac}"),
    ):
        if forged != right:
            assert tokens.by_cookie(forged) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(text=st.text())
def test_no_text_is_taken_for_a_token_or_a_cookie(home: Home, text: str) -> None:
    """Non-ASCII digits and MACs used to raise instead of being refused."""
    tokens = Tokens(home)
    ident = tokens.owner().id
    for cookie in (text, f"{ident}.{text}", f"{ident}.9999999999.{text}", f"{ident}.²."):
        assert tokens.by_cookie(cookie) is None
    assert tokens.by_token(text) is None


@pytest.mark.parametrize("content", [b"{", b"\xff", b'[{"id": 1}]', b'["\xff"]'])
def test_a_damaged_token_file_lets_in_the_owner_only(home: Home, content: bytes) -> None:
    token = new_token(home, "phone", ["read"])
    home.tokens_path.write_bytes(content)
    tokens = Tokens(home)
    assert tokens.by_token(token) is None
    assert tokens.by_token(home.token()) is not None
    with pytest.raises(BadRequest, match=r"tokens\.json"):
        new_token(home, "other", ["read"])


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 50])
def test_a_damaged_token_of_the_owner_is_replaced(home: Home, content: bytes) -> None:
    home.token_path.write_bytes(content)
    assert len(home.token()) >= 43


async def test_strange_credentials_are_refused_not_an_error(shared: Standing) -> None:
    name = shared.server.gate.cookie
    owner = shared.server.tokens.owner().id
    for header, value in (
        ("Authorization", "Bearer"),
        ("Authorization", "Basic YTpi"),
        ("Authorization", "Bearer \xb2\xff"),
        ("Cookie", f"{name}={owner}.\xb2.x"),
        ("Cookie", f"{name}={owner}.9999999999.\xff"),
        ("Cookie", "=;=;;"),
    ):
        headers = {header.encode(): value.encode("latin-1")}
        problem(await shared.stranger.get("/v1", headers=headers), 401, "unauthenticated")

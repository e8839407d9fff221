"""What an id token must say before anybody comes in by it, and by which name they are known then."""

import time
from typing import Any

import pytest

from portico.features.people.people import Account
from portico.kernel.errors import Forbidden
from portico.server.login_redirect import _OWN_PAGE
from portico.server.oidc import LEEWAY, account_of, check_claims
from portico.server.settings import OidcSettings

ISSUER = "https://id.example"


class FromNow(float):
    """Seconds from the time of the test: the tables are made when the tests are collected, which is long before."""


def claims(**fields: Any) -> dict[str, Any]:
    now = time.time()
    right = {"iss": ISSUER, "aud": "portico", "exp": now + 300, "iat": now, "nonce": "n", "sub": "42"}
    given = {key: value for key, value in {**right, **fields}.items() if value is not None}
    return {key: now + value if isinstance(value, FromNow) else value for key, value in given.items()}


RIGHT: dict[str, dict[str, Any]] = {
    "plain": {},
    "a list of one": {"aud": ["portico"]},
    "several, and it says for whom": {"aud": ["portico", "other"], "azp": "portico"},
    "just expired": {"exp": FromNow(-LEEWAY + 30)},
    "a clock that is ahead": {"iat": FromNow(LEEWAY - 30)},
    "valid since a while": {"nbf": FromNow(-10)},
}


@pytest.mark.parametrize("fields", RIGHT.values(), ids=RIGHT)
def test_a_right_token(fields: dict[str, Any]) -> None:
    given = claims(**fields)
    assert check_claims(given, ISSUER, "portico", "n") == given


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": ({"iss": "https://evil.example"}, "issued by somebody else"),
    "the issuer with a slash": ({"iss": ISSUER + "/"}, "issued by somebody else"),
    "no issuer": ({"iss": None}, "issued by somebody else"),
    "for another client": ({"aud": "other"}, "for another client"),
    "for nobody": ({"aud": None}, "for another client"),
    "for a part of our name": ({"aud": "porticoes"}, "for another client"),
    "an audience that is none": ({"aud": {"portico": 1}}, "for another client"),
    "for several, without a word": ({"aud": ["portico", "other"]}, "does not say for which"),
    "made for another": ({"azp": "other"}, "made for another client"),
    "expired": ({"exp": FromNow(-LEEWAY - 10)}, "has expired"),
    "no end": ({"exp": None}, "has expired"),
    "an end that is a yes": ({"exp": True}, "has expired"),
    "an end that is a text": ({"exp": "9999999999"}, "has expired"),
    "from the future": ({"iat": FromNow(LEEWAY + 10)}, "issued in the future"),
    "from nobody knows when": ({"iat": None}, "nobody knows when"),
    "not valid yet": ({"nbf": FromNow(LEEWAY + 10)}, "not valid yet"),
    "of another login": ({"nonce": "m"}, "of another login"),
    "of no login": ({"nonce": None}, "of another login"),
    "a nonce that is a number": ({"nonce": 7}, "of another login"),
    "about nobody": ({"sub": None}, "does not say who"),
    "about an empty name": ({"sub": ""}, "does not say who"),
    "about a number": ({"sub": 42}, "does not say who"),
    "about somebody very long": ({"sub": "x" * 10_000}, "does not say who"),
}


@pytest.mark.parametrize(("fields", "why"), WRONG.values(), ids=WRONG)
def test_each_of_these_was_an_attack_somewhere(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(Forbidden, match=why):
        check_claims(claims(**fields), ISSUER, "portico", "n")


def settings(**fields: Any) -> OidcSettings:
    return OidcSettings(**{"issuer": ISSUER, **fields})


ADA = {"sub": "42", "email": "ada@example.org", "email_verified": True, "preferred_username": "ada"}
ACCOUNTS: dict[str, tuple[dict[str, Any], OidcSettings, Account]] = {
    "by a verified address": (
        ADA,
        settings(person_claim="email"),
        Account("ada@example.org", ISSUER, "42", "ada@example.org", ()),
    ),
    "by another claim": (
        ADA,
        settings(person_claim="preferred_username"),
        Account("ada", ISSUER, "42", "ada@example.org", ()),
    ),
    "with an address that nobody verified": (
        {**ADA, "email_verified": False},
        settings(person_claim="preferred_username"),
        Account("ada", ISSUER, "42", "", ()),
    ),
    "where that is allowed": (
        {**ADA, "email_verified": False},
        settings(person_claim="email", unverified_email=True),
        Account("ada@example.org", ISSUER, "42", "ada@example.org", ()),
    ),
    "with groups": (
        {**ADA, "groups": ["dev", 7, None, "ops"]},
        settings(person_claim="email", groups_claim="groups"),
        Account("ada@example.org", ISSUER, "42", "ada@example.org", ("dev", "ops")),
    ),
    "with groups that are none": (
        {**ADA, "groups": "dev"},
        settings(person_claim="email", groups_claim="groups"),
        Account("ada@example.org", ISSUER, "42", "ada@example.org", ()),
    ),
}


@pytest.mark.parametrize(("given", "of", "account"), ACCOUNTS.values(), ids=ACCOUNTS)
def test_by_which_name_somebody_is_known(given: dict[str, Any], of: OidcSettings, account: Account) -> None:
    assert account_of(given, of) == account


@pytest.mark.parametrize(
    ("fields", "claim", "hint"),
    [
        ({"email_verified": False}, "email", "a verified address"),
        ({"email_verified": "true"}, "email", "a verified address"),
        ({"email": None}, "email", "a verified address"),
        ({"email": "ada@evil@example.org"}, "email", "a verified address"),
        ({"email": ["ada@example.org"]}, "email", "a verified address"),
        ({"preferred_username": ""}, "preferred_username", "the claim 'preferred_username'"),
        ({"preferred_username": 7}, "preferred_username", "the claim 'preferred_username'"),
    ],
)
def test_nobody_comes_in_without_a_name(fields: dict[str, Any], claim: str, hint: str) -> None:
    with pytest.raises(Forbidden, match=hint):
        account_of({**ADA, **fields}, settings(person_claim=claim))


@pytest.mark.parametrize(
    ("page", "ours"),
    [
        ("/", True),
        ("/app", True),
        ("/app/s/session-1", True),
        ("/app/s/session-1?x=1&y=%20", True),
        ("/jobTracking.html?id=job-1", True),
        ("/v1/sessions", False),
        ("/api/stop", False),
        ("//evil.example", False),
        ("/app//evil.example/", True),
        ("https://evil.example", False),
        ("/\\evil.example", False),
        ("/app/../api/stop", False),
        ("/app/s/../../api/stop?x", False),
        ("/app/%2e%2E/api/stop", False),
        ("/app/.%2e/api/stop", False),
        ("/app/..", False),
        ("/app/./x", False),
        ("/app/s/a..b/changes/.env", True),
        ("javascript:alert(1)", False),
        ("/app#x", False),
        ("/app\n", False),
    ],
)
def test_where_a_login_may_lead(page: str, ours: bool) -> None:
    """Never to a stranger, and never to the API, where a GET can change something."""
    assert (_OWN_PAGE.fullmatch(page) is not None) is ours

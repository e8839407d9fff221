"""Pages of other origins: who is on the list is told so, who is not gets no header to build on."""

from typing import Any

import pytest
from starlette.datastructures import Headers

from portico.server.cors import answer_headers, is_preflight, preflight_headers

OURS = frozenset({"https://pages.example", "http://localhost:3000"})


def names(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in headers}


@pytest.mark.parametrize(
    ("origin", "origins", "allowed", "vary"),
    [
        ("https://pages.example", OURS, "https://pages.example", "Origin"),
        ("http://localhost:3000", OURS, "http://localhost:3000", "Origin"),
        ("http://localhost:3001", OURS, None, "Origin"),
        ("https://pages.example.evil", OURS, None, "Origin"),
        ("https://PAGES.example", OURS, None, "Origin"),
        ("null", OURS, None, "Origin"),
        (None, OURS, None, "Origin"),
        ("https://pages.example", frozenset(), None, None),
        (None, frozenset(), None, None),
    ],
)
def test_only_an_origin_on_the_list_may_read_an_answer(
    origin: str | None, origins: frozenset[str], allowed: str | None, vary: str | None
) -> None:
    found = names(answer_headers(origin, origins))
    assert found.get("access-control-allow-origin") == allowed
    assert found.get("access-control-allow-credentials") == ("true" if allowed else None)
    assert found.get("vary") == vary, "a cache must not give one origin's answer to another"


def test_a_page_may_read_what_it_needs_to_come_back() -> None:
    exposed = names(answer_headers("https://pages.example", OURS))["access-control-expose-headers"]
    assert {each.strip() for each in exposed.split(",")} == {"Content-Disposition", "ETag", "Retry-After"}


@pytest.mark.parametrize(
    ("kind", "method", "origin", "asks", "known"),
    [
        ("http", "OPTIONS", "https://pages.example", "POST", True),
        ("http", "POST", "https://pages.example", "POST", False),
        ("http", "OPTIONS", "https://evil.example", "POST", False),
        ("http", "OPTIONS", None, "POST", False),
        ("http", "OPTIONS", "https://pages.example", None, False),
        ("websocket", "OPTIONS", "https://pages.example", "POST", False),
    ],
)
def test_what_is_a_preflight(kind: str, method: str, origin: str | None, asks: str | None, known: bool) -> None:
    said: dict[str, str | None] = {"origin": origin, "access-control-request-method": asks}
    headers = Headers({name: value for name, value in said.items() if value is not None})
    scope: dict[str, Any] = {"type": kind, "method": method}
    assert is_preflight(scope, headers, OURS) is known


def test_a_preflight_lists_what_clients_send() -> None:
    found = names(preflight_headers())
    assert {"GET", "POST", "PATCH", "DELETE"} <= set(found["access-control-allow-methods"].split(", "))
    assert {"Authorization", "Content-Type", "Last-Event-ID"} <= set(found["access-control-allow-headers"].split(", "))
    assert found["access-control-max-age"] == "600"

"""Behind a proxy: whose headers count, and the base path."""

import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from portico.kernel.errors import BadRequest
from portico.server.proxy import ROOT, BehindProxy, Proxies, check_root_path

TRUSTED = ["127.0.0.1", "10.0.0.0/8", "fd00::/8"]


async def seen(
    scope: dict[str, Any], headers: dict[str, str], trusted: list[str], root: str = ""
) -> tuple[dict[str, Any], list[Message]]:
    """What the gate behind it gets, and what was answered before it."""
    got: dict[str, Any] = {}
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        got.update(scope)

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    whole = {
        "type": "http",
        "scheme": "http",
        "path": "/v1",
        "raw_path": scope.get("path", "/v1").encode(),
        "query_string": b"",
        "client": ("127.0.0.1", 5),
        "headers": [
            (b"host", b"box.example"),
            *((name.lower().encode(), value.encode()) for name, value in headers.items()),
        ],
        **scope,
    }
    await BehindProxy(app, Proxies(trusted), root)(whole, receive, send)
    return got, sent


@pytest.mark.parametrize(
    ("client", "forwarded", "address"),
    [
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "203.0.113.9, 10.1.2.3", "203.0.113.9"),
        ("127.0.0.1", "2001:db8::1", "2001:db8::1"),
        ("127.0.0.1", "[2001:db8::1]", "2001:db8::1"),
        ("fd00::7", "203.0.113.9", "203.0.113.9"),
        ("::ffff:127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "10.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "nonsense", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.9, nonsense", "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("203.0.113.50", "198.51.100.1", "203.0.113.50"),
    ],
)
async def test_the_address_is_the_last_one_that_is_not_a_proxy_of_ours(
    client: str, forwarded: str, address: str
) -> None:
    got, _ = await seen({"client": (client, 5)}, {"X-Forwarded-For": forwarded}, TRUSTED)
    assert got["client"][0] == address


async def test_a_stranger_chooses_nothing_and_his_headers_are_gone() -> None:
    """The attack: to look like somebody else, or as if it were TLS."""
    lies = {
        "X-Forwarded-For": "198.51.100.1",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Prefix": "/evil",
        "Forwarded": "for=1.2.3.4",
    }
    got, _ = await seen({"client": ("203.0.113.50", 5)}, lies, TRUSTED)
    assert (got["client"][0], got["scheme"], got[ROOT]) == ("203.0.113.50", "http", "")
    assert got["headers"] == [(b"host", b"box.example")]


@pytest.mark.parametrize(
    ("kind", "proto", "scheme"),
    [
        ("http", "https", "https"),
        ("http", "http", "http"),
        ("websocket", "https", "wss"),
        ("websocket", "http", "ws"),
        ("http", "http, https", "https"),
        ("http", "gopher", "http"),
    ],
)
async def test_scheme_and_host_of_a_trusted_proxy(kind: str, proto: str, scheme: str) -> None:
    headers = {"X-Forwarded-Proto": proto, "X-Forwarded-Host": "portal.example"}
    got, _ = await seen({"type": kind}, headers, TRUSTED)
    assert got["scheme"] == scheme
    assert got["headers"] == [(b"host", b"portal.example")]


async def test_a_unix_socket_is_trusted_only_if_it_is_said() -> None:
    headers = {"X-Forwarded-For": "203.0.113.9"}
    assert (await seen({"client": None}, headers, ["unix"]))[0]["client"] == ("203.0.113.9", 0)
    assert (await seen({"client": None}, headers, TRUSTED))[0]["client"] is None
    assert (await seen({}, headers, ["unix"]))[0]["client"] == ("127.0.0.1", 5)


@pytest.mark.parametrize(
    ("path", "reached"),
    [("/portico/v1", "/v1"), ("/v1", "/v1"), ("/portico/", "/"), ("/porticox/v1", "/porticox/v1")],
)
async def test_the_base_path_may_be_left_or_taken_away_by_the_proxy(path: str, reached: str) -> None:
    got, _ = await seen({"path": path}, {}, [], "/portico")
    assert (got["path"], got["raw_path"], got[ROOT]) == (reached, reached.encode(), "/portico")


async def test_the_base_path_without_its_slash_leads_to_the_one_with_it() -> None:
    """Relative addresses of the page would lead beside it."""
    got, sent = await seen({"path": "/portico", "query_string": b"a=1"}, {}, [], "/portico")
    assert (got, sent[0]["status"], sent[0]["headers"]) == ({}, 308, [(b"location", b"/portico/?a=1")])


@pytest.mark.parametrize(("prefix", "root"), [("/p", "/p"), ("/p/", "/p"), ("//evil", ""), ("/a/../b", ""), ("p", "")])
async def test_a_prefix_of_a_trusted_proxy(prefix: str, root: str) -> None:
    assert (await seen({}, {"X-Forwarded-Prefix": prefix}, TRUSTED))[0][ROOT] == root


@pytest.mark.parametrize(("given", "root"), [("", ""), ("/", ""), ("portico", "/portico"), ("/a/b/", "/a/b")])
def test_base_paths(given: str, root: str) -> None:
    assert check_root_path(given) == root


@pytest.mark.parametrize("wrong", ["/a b", "/../x", "/a//b", "https://x", '/"', "/a?b"])
def test_wrong_base_paths(wrong: str) -> None:
    with pytest.raises(BadRequest):
        check_root_path(wrong)


@pytest.mark.parametrize("wrong", ["localhost", "10.0.0.1/8", "*", json.dumps([])])
def test_wrong_proxies(wrong: str) -> None:
    with pytest.raises(BadRequest):
        Proxies([wrong])

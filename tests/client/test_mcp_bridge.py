"""What `portico mcp` passes on and writes, against a host that answers as the test wants."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from portico.client import Client
from portico.client.mcp import McpBridge
from portico.mcp import CAPABILITIES_KEY, STATELESS, VERSION_KEY

META = {"_meta": {VERSION_KEY: STATELESS, CAPABILITIES_KEY: {}}}


async def bridged(answer: Callable[[httpx.Request], Any], *lines: Any) -> list[Any]:
    """What the bridge writes for these lines."""
    written: list[Any] = []
    given = iter([*(each if isinstance(each, bytes) else json.dumps(each).encode() for each in lines), b""])

    async def read() -> bytes:
        return next(given)

    async with Client("http://host.test") as client:
        await client._http.aclose()
        client._http = httpx.AsyncClient(base_url=client.url, transport=httpx.MockTransport(answer))
        await McpBridge(client, lambda line: written.append(json.loads(line))).run(read)
    return written


def request(ident: Any, method: str = "tools/list", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


def reply(ident: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "result": more}


async def test_a_slow_request_does_not_hold_up_a_quick_one() -> None:
    quick = asyncio.Event()

    async def answer(got: httpx.Request) -> httpx.Response:
        ident = json.loads(got.content)["id"]
        if ident == 1:
            await quick.wait()
        quick.set()
        return httpx.Response(200, json=reply(ident))

    assert await bridged(answer, request(1), request(2)) == [reply(2), reply(1)]


async def test_the_session_of_the_handshake_is_sent_afterwards() -> None:
    seen: list[str | None] = []

    def answer(got: httpx.Request) -> httpx.Response:
        seen.append(got.headers.get("mcp-session-id"))
        body = json.loads(got.content)
        return httpx.Response(200, json=reply(body["id"]), headers={"Mcp-Session-Id": "abc"})

    await bridged(answer, request(1, "initialize"), request(2))
    assert seen == [None, "abc"]


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "list_agents"}, "list_agents"),
        ("resources/read", {"uri": "x://ö"}, "=?base64?eDovL8O2?="),
        ("tools/list", {}, None),
    ],
)
async def test_a_request_without_handshake_is_repeated_in_headers(method: str, params: Any, name: str | None) -> None:
    def answer(got: httpx.Request) -> httpx.Response:
        found = [got.headers.get(each) for each in ("mcp-protocol-version", "mcp-method", "mcp-name")]
        return httpx.Response(200, json=reply(1, found=found))

    [written] = await bridged(answer, request(1, method, **params, **META))
    assert written["result"]["found"] == [STATELESS, method, name]


async def test_progress_and_the_reply_of_a_stream_are_lines() -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    events = "".join(f"event: message\ndata: {json.dumps(each)}\n\n: quiet\n\n" for each in (note, reply(1)))

    def answer(got: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=events, headers={"Content-Type": "text/event-stream"})

    assert await bridged(answer, request(1)) == [note, reply(1)]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b'{"error": "This token is not valid", "code": "unauthenticated"}', "This token is not valid"),
        (502, b"<html>Bad gateway</html>", "Bad gateway"),
        (429, b'{"code": "rate_limited"}', "The host answered with status 429."),
        (
            400,
            b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32022, "message": "Not this one."}}',
            "Not this one.",
        ),
    ],
)
async def test_an_error_of_the_host_is_a_reply_with_the_id(status: int, body: bytes, words: str) -> None:
    [written] = await bridged(lambda got: httpx.Response(status, content=body), request("a"))
    assert written["id"] == "a"
    assert words in written["error"]["message"]


async def test_notifications_have_no_reply_even_without_a_host() -> None:
    def answer(got: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    [written] = await bridged(answer, note, b" ", request(7))
    assert (written["id"], "refused" in written["error"]["message"]) == (7, True)

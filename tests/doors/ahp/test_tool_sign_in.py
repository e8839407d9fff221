"""A server of tools that wants a token in the middle of a call: a client signs in, and the call goes on."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from portico.agents.mcp.client import ServerError
from portico.agents.mcp.http import HttpWire
from portico.agents.mcp.sign_in import Bearer, McpTokens, SignInNeeded, challenge
from tests.doors.ahp.conftest import Served
from tests.doors.ahp.mcp_host import serving, with_loop
from tests.doors.ahp.wire_client import Json, Refused, WireClient, opened

SESSION = "loop:/s1"


class Tickets:
    """An MCP server that lists its tools to everybody and runs them for whoever has its token."""

    def __init__(self) -> None:
        self.url = ""
        self.resource: Any = None
        self.good = "right"
        self.seen: list[str | None] = []

    async def serve(self, request: Request) -> Response:
        message: Json = json.loads(await request.body())
        if "id" not in message:
            return Response(status_code=202)
        result: Json = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "serverInfo": {"name": "t", "version": "1"},
        }
        if message["method"] == "tools/list":
            result = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
        elif message["method"] == "tools/call":
            self.seen.append(request.headers.get("authorization"))
            if self.seen[-1] != f"Bearer {self.good}":
                said = f'Bearer resource_metadata="{self.url}/meta", scope="tickets:write"'
                return Response(status_code=401, headers={"WWW-Authenticate": said})
            result = {"content": [{"type": "text", "text": "five"}]}
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def describe(self, request: Request) -> Response:
        return JSONResponse(
            {
                "resource": self.resource or f"{self.url}/mcp",
                "resource_name": "Tickets",
                "authorization_servers": ["https://login.example.org"],
            }
        )


@pytest.fixture
async def tickets() -> AsyncIterator[Tickets]:
    tickets = Tickets()
    async with serving(Route("/mcp", tickets.serve, methods=["POST"]), Route("/meta", tickets.describe)) as url:
        tickets.url = url
        yield tickets


@pytest.fixture
async def client(served: Served, tickets: Tickets) -> AsyncIterator[WireClient]:
    """A client in a session with the built-in agent, whose model wants to use the tool."""
    async with (
        with_loop(served, f"{tickets.url}/mcp", "add"),
        opened(WireClient(served.url, "editor", "0.9.0")) as client,
    ):
        await client.initialize(client.root)
        chat = await client.create_session(SESSION, provider="loop", config={"approvals": "allow"})
        await client.say(chat, "t1", "agent: add them")
        yield client
        assert client.wrong == []


def call_of(client: WireClient) -> Json:
    """The one call, wherever its turn is now."""
    [state] = [state for name, state in client.states.items() if client.kinds[name] == "chat"]
    turns = [*state["turns"], *([state["activeTurn"]] if "activeTurn" in state else [])]
    found = [part["toolCall"] for turn in turns for part in turn["responseParts"] if part["kind"] == "toolCall"]
    return found[-1] if found else {}


async def waiting(client: WireClient) -> Json:
    await client.wait(lambda: call_of(client).get("status") == "auth-required")
    return call_of(client)


async def test_a_call_waits_for_a_sign_in_and_goes_on(client: WireClient, tickets: Tickets) -> None:
    call = await waiting(client)
    assert call["contributor"] == {"kind": "mcp", "customizationId": "mcp:tickets"}
    assert (call["_meta"]["mcpServerName"], call["_meta"]["mcpToolName"]) == (
        "tickets",
        call["toolName"].rpartition("__")[2],
    )
    assert (call["auth"]["reason"], call["auth"]["requiredScopes"]) == ("required", ["tickets:write"])
    assert call["auth"]["resource"]["resource_name"] == "Tickets"
    [needed] = await client.wait(lambda: client.states[SESSION].get("inputNeeded"))
    assert (needed["kind"], needed["toolCall"]["status"]) == ("toolAuthentication", "auth-required")
    chat = needed["chat"]
    assert (await client.subscribe(chat))["snapshot"]["state"]["activeTurn"]["responseParts"]
    resource = call["auth"]["resource"]["resource"]
    with pytest.raises(Refused):
        await client.request("authenticate", resource="https://elsewhere.example", token="x")
    assert await client.request("authenticate", resource=resource, token="wrong") == {}
    await client.wait(lambda: call_of(client).get("auth", {}).get("reason") == "expired")
    assert await client.request("authenticate", resource=resource, token="right", expiresIn=60) == {}
    state = await client.idle(chat)
    assert state["turns"][-1]["state"] == "complete"
    done = call_of(client)
    assert (done["status"], done["success"], done["content"][0]["text"]) == ("completed", True, "five")
    assert tickets.seen == [None, "Bearer wrong", "Bearer right"]
    await client.wait(lambda: not client.states[SESSION].get("inputNeeded"))
    assert (await client.subscribe(chat))["snapshot"]["state"]["turns"] == state["turns"]


async def test_who_does_not_sign_in_lets_the_call_fail(client: WireClient) -> None:
    call = await waiting(client)
    chat = next(name for name in client.states if client.kinds[name] == "chat")
    which = {"turnId": "t1", "toolCallId": call["toolCallId"]}
    early = {"success": True, "pastTenseMessage": "Did it"}
    assert "rejectionReason" in await client.act(chat, "chat/toolCallComplete", **which, result=early)
    no = {"success": False, "pastTenseMessage": "Cancelled", "error": {"message": "no"}}
    echo = await client.act(chat, "chat/toolCallComplete", **which, result=no)
    assert "wants a sign-in" in echo["action"]["result"]["error"]["message"], "the host's words, as everybody has them"
    state = await client.idle(chat)
    assert (state["turns"][-1]["state"], call_of(client)["success"]) == ("complete", False)


async def test_a_cancelled_turn_waits_for_nobody(client: WireClient) -> None:
    await waiting(client)
    chat = next(name for name in client.states if client.kinds[name] == "chat")
    await client.act(chat, "chat/turnCancelled", turnId="t1")
    assert (await client.idle(chat))["turns"][-1]["state"] == "cancelled"


async def test_a_server_gets_no_token_of_somebody_else(tickets: Tickets) -> None:
    tickets.resource = "https://api.github.com"
    tokens = McpTokens()
    tokens.give("https://api.github.com", "secret", None, "c")
    wire = HttpWire("tickets", f"{tickets.url}/mcp", {}, False, Bearer(tokens, "c"))
    message: Json = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}
    with pytest.raises(ServerError, match="which it is not"):
        await wire.request(message, None)  # type: ignore[arg-type]
    assert tickets.seen == [None]
    tickets.resource = None
    tokens.give(f"{tickets.url}/mcp", "right", None, "c")
    assert (await wire.request(message, None))["result"]["content"][0]["text"] == "five"  # type: ignore[arg-type]
    other = HttpWire("tickets", f"{tickets.url}/mcp", {}, False, Bearer(tokens, "other"))
    with pytest.raises(SignInNeeded):
        await other.request(message, None)  # type: ignore[arg-type]
    assert "Bearer secret" not in tickets.seen
    await wire.close()
    await other.close()


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ('Bearer resource_metadata="http://h/m", scope="a b"', ("http://h/m", ["a", "b"], "")),
        ('Bearer error="insufficient_scope"', ("", [], "insufficient_scope")),
        ("Basic", ("", [], "")),
    ],
)
def test_what_a_challenge_says(header: str, found: tuple[str, list[str], str]) -> None:
    assert challenge(header) == found

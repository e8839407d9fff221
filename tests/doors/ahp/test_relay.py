"""`mcp://`: a page that an editor shows for a tool talks to that tool's server, which only the host is a client of."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from portico import limits
from portico.features.client_servers.commands import AskServer
from portico.kernel import commands as c
from portico.kernel.events import HOST, Audited
from tests.doors.ahp.conftest import Served
from tests.doors.ahp.mcp_host import serving, with_loop
from tests.doors.ahp.wire_client import Json, Refused, WireClient, opened

SESSION = "loop:/s1"
VIEW = "ui://tickets/board"
TOOLS = [
    {"name": "board", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": VIEW}}},
    {"name": "refresh", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["app"]}}},
]
PAGE = {"uri": VIEW, "mimeType": "text/html;profile=mcp-app", "text": "<h1>Board</h1>"}


class Board:
    """An MCP server whose tool has a page."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.offered: list[str] = []
        self.over = asyncio.Event()

    async def serve(self, request: Request) -> Response:
        message: Json = json.loads(await request.body())
        if "id" not in message:
            return Response(status_code=202)
        self.asked.append(message)
        reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                reply["result"] = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "t"}}
            case "tools/list":
                reply["result"] = {"tools": TOOLS}
            case "tools/call" if message["params"]["name"] == "hang":
                await self.over.wait()
                reply["result"] = {}
            case "tools/call":
                data = {"open": [message["params"]["name"]]}
                reply["result"] = {"content": [{"type": "text", "text": "one"}], "structuredContent": data}
            case "resources/read" if message["params"]["uri"] == VIEW:
                reply["result"] = {"contents": [PAGE]}
            case method:
                reply["error"] = {"code": -32002, "message": f"no {method}", "data": {"of": "the server"}}
        return JSONResponse(reply)

    def called(self) -> list[str]:
        return [each["params"]["name"] for each in self.asked if each["method"] == "tools/call"]


@pytest.fixture
async def board() -> Board:
    return Board()


@pytest.fixture
async def editor(served: Served, board: Board) -> AsyncIterator[WireClient]:
    """A client that can show pages, in a session where the tool with a page was used."""
    async with (
        serving(Route("/mcp", board.serve, methods=["POST"])) as url,
        with_loop(served, f"{url}/mcp", "board") as model,
        opened(WireClient(served.url, "editor", "0.7.0")) as client,
    ):
        await client.initialize(client.root, capabilities={"mcpApps": {}})
        chat = await client.create_session(SESSION, provider="loop", config={"approvals": "allow"})
        await client.say(chat, "t1", "agent: show the board")
        await client.idle(chat)
        board.offered = [each["function"]["name"] for each in model.requests[0].body["tools"]]
        yield client
        board.over.set()
        assert client.wrong == []


def server_in(client: WireClient) -> Json:
    [found] = client.states[SESSION]["customizations"]
    return dict(found)


def call_in(client: WireClient) -> Json:
    [chat] = [state for name, state in client.states.items() if client.kinds[name] == "chat"]
    [call] = [each["toolCall"] for each in chat["turns"][0]["responseParts"] if each["kind"] == "toolCall"]
    return dict(call)


async def audits(served: Served) -> list[Audited]:
    events = [each.event for each in await served.host.log.read(HOST)]
    return [each for each in events if isinstance(each, Audited) and each.action.startswith("server.")]


async def test_a_page_is_read_and_asks_its_server(served: Served, editor: WireClient, board: Board) -> None:
    call, server = call_in(editor), server_in(editor)
    channel = server["channel"]
    assert server["mcpApp"] == {"capabilities": {"serverTools": {}, "serverResources": {}}}
    assert call["contributor"] == {"kind": "mcp", "customizationId": server["id"]}
    assert call["_meta"]["ui"] == {"resourceUri": VIEW, "channel": channel}
    assert (call["structuredContent"], call["content"][0]["text"]) == ({"open": ["board"]}, "one")
    started = next(each for each in editor.actions("chat/toolCallStart"))
    assert started["_meta"]["ui"] == call["_meta"]["ui"]

    async def ask(method: str, **params: Any) -> Json:
        return dict(await editor.request(method, channel=channel, **params))

    assert await ask("resources/read", uri=VIEW) == {"contents": [PAGE]}
    assert await ask("tools/list") == {"tools": TOOLS}
    assert (await ask("tools/call", name="refresh", arguments={"a": 1}))["structuredContent"] == {"open": ["refresh"]}
    assert "tickets__board" in board.offered
    assert "tickets__refresh" not in board.offered, "it is for the page alone"
    assert board.asked[-1]["params"] == {"name": "refresh", "arguments": {"a": 1}}, "without our channel"
    with pytest.raises(Refused) as refused:
        await ask("resources/read", uri="ui://tickets/none")
    assert (refused.value.code, refused.value.data) == (-32002, {"of": "the server"})
    assert [(each.action, each.detail["tool"]) for each in await audits(served)] == [
        ("server.asked", "refresh"),
        ("server.answered", "refresh"),
    ]
    assert board.asked[0]["params"]["capabilities"]["extensions"].keys() == {"io.modelcontextprotocol/ui"}


NOT_SERVED: list[tuple[str, Json, int]] = [
    ("tools/call", {"name": "board"}, -32602),
    ("tools/list", {"channel": "mcp://nobody/tickets"}, -32008),
    ("tools/list", {"channel": "mcp:/x"}, -32008),
    ("tools/list", {"channel": "mcp://{session}/other"}, -32008),
    ("initialize", {"channel": "{channel}"}, -32600),
    ("prompts/list", {"channel": "{channel}"}, -32601),
    ("sampling/createMessage", {"channel": "{channel}"}, -32601),
]


async def test_what_is_not_served(editor: WireClient) -> None:
    channel = server_in(editor)["channel"]
    session = channel.removeprefix("mcp://").partition("/")[0]
    for method, params, code in NOT_SERVED:
        given = {key: value.format(channel=channel, session=session) for key, value in params.items()}
        with pytest.raises(Refused) as refused:
            await editor.request(method, **given)
        assert refused.value.code == code, (method, params)


async def test_a_rule_that_says_no_counts_here_too(editor: WireClient, board: Board) -> None:
    await editor.act(SESSION, "session/configChanged", config={"approvals": "deny"})
    before = board.called()
    with pytest.raises(Refused, match="may not run here"):
        await editor.request("tools/call", channel=server_in(editor)["channel"], name="refresh")
    assert board.called() == before


async def test_a_server_that_does_not_answer_is_given_up(
    served: Served, editor: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SERVER_SECONDS", 0.05)
    with pytest.raises(Refused, match="did not answer"):
        await editor.request("tools/call", channel=server_in(editor)["channel"], name="hang")
    assert [each.detail.get("ok") for each in await audits(served)] == [None, False]


async def test_the_channel_comes_and_goes_with_the_server(editor: WireClient) -> None:
    channel, ident = server_in(editor)["channel"], server_in(editor)["id"]
    await editor.act(SESSION, "session/mcpServerStopRequested", id=ident)
    await editor.wait(lambda: server_in(editor)["state"] == {"kind": "stopped"})
    assert "channel" not in server_in(editor)
    with pytest.raises(Refused):
        await editor.request("tools/list", channel=channel)
    await editor.act(SESSION, "session/mcpServerStartRequested", id=ident)
    await editor.wait(lambda: server_in(editor).get("channel") == channel)
    assert "tools" in await editor.request("tools/list", channel=channel)
    await editor.drop()
    assert (await editor.reconnect())["type"] == "replay"
    assert server_in(editor)["channel"] == channel
    assert "tools" in await editor.request("tools/list", channel=channel), "what it can show is remembered"


async def test_who_shows_no_pages_or_may_not_approve_has_none(served: Served, editor: WireClient) -> None:
    channel = server_in(editor)["channel"]
    async with opened(WireClient(served.url, "plain", "0.7.0")) as plain:
        await plain.initialize(plain.root)
        await plain.subscribe(SESSION)
        assert not {"channel", "mcpApp"} & server_in(plain).keys()
        with pytest.raises(Refused) as refused:
            await plain.request("tools/list", channel=channel)
        assert refused.value.code == -32601
    session = next(each for each in served.host.list() if each.uri == SESSION).id
    caller = c.Caller("t", "t", frozenset({"read", "drive"}))
    with pytest.raises(Exception, match="no scope 'approve'"):
        await served.host.do(AskServer(session=session, server="tickets", operation="tools/list"), caller)

"""The Model Context Protocol without a process: what our server answers, and what our client makes of a server."""

import asyncio
import json
from typing import Any

import pytest

from portico import __version__, mcp
from portico.agents.mcp.client import TOOLS_MAX, Listener, McpClient, ServerError, SessionLost, result_of
from portico.agents.mcp.sign_in import McpTokens, challenge, same_origin
from portico.kernel.errors import NotFound
from portico.kernel.events import ErrorInfo, Json, ToolSpec
from portico.kernel.tool import ToolResult

# -- our server ------------------------------------------------------------------------------------------------


class Box:
    def specs(self) -> list[ToolSpec]:
        return [
            ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {}}}),
            ToolSpec("bare", "Does.", {}, title="Bare"),
        ]

    async def call(self, name: str, arguments: Json) -> ToolResult:
        if name == "bare":
            raise NotFound("thing", "x")
        if "fail" in arguments:
            return ToolResult(False, "", ErrorInfo("tool_failed", "no luck"))
        return ToolResult(True, json.dumps(arguments))


async def answered(message: object, meta: Json | None = None) -> Any:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    reply = await mcp.answer(body, Box(), meta=meta)
    return None if reply is None else json.loads(reply)


def request(method: str, ident: object = 1, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


@pytest.mark.parametrize("version", mcp.VERSIONS)
async def test_a_version_that_both_know_is_agreed(version: str) -> None:
    reply = await answered(request("initialize", protocolVersion=version))
    assert reply["result"]["protocolVersion"] == version
    assert reply["result"]["serverInfo"] == {"name": "portico", "title": "Portico", "version": __version__}


@pytest.mark.parametrize("version", ["1999-01-01", None, 7])
async def test_else_the_newest_is_offered(version: object) -> None:
    reply = await answered(request("initialize", protocolVersion=version))
    assert reply["result"]["protocolVersion"] == mcp.VERSIONS[0]


async def test_tools_are_described_with_an_object_as_their_input() -> None:
    tools = (await answered(request("tools/list")))["result"]["tools"]
    assert tools == [
        {"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "properties": {"a": {}}}},
        {"name": "bare", "description": "Does.", "inputSchema": {"type": "object"}, "title": "Bare"},
    ]
    marked = (await answered(request("tools/list"), {"k": 1}))["result"]["tools"]
    assert [each["_meta"] for each in marked] == [{"k": 1}, {"k": 1}]


@pytest.mark.parametrize(
    ("params", "text", "failed"),
    [
        ({"name": "add", "arguments": {"a": 1}}, '{"a": 1}', False),
        ({"name": "add"}, "{}", False),
        ({"name": "add", "arguments": None}, "{}", False),
        ({"name": "add", "arguments": {"fail": 1}}, "no luck", True),
        ({"name": "bare"}, "There is no thing 'x'.", True),
    ],
)
async def test_a_call_and_what_came_of_it(params: Json, text: str, failed: bool) -> None:
    reply = await answered(request("tools/call", **params))
    assert reply["result"] == {"content": [{"type": "text", "text": text}], "isError": failed}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"no", mcp.PARSE_ERROR),
        (b"", mcp.PARSE_ERROR),
        (b"[" * 100_000, mcp.PARSE_ERROR),
        (7, mcp.INVALID_REQUEST),
        ({}, mcp.INVALID_REQUEST),
        ({"id": 1, "method": 7}, mcp.INVALID_REQUEST),
        (request("tools/fly"), mcp.NO_METHOD),
        (request("tools/call", name="none"), mcp.INVALID_PARAMS),
        (request("tools/call"), mcp.INVALID_PARAMS),
        (request("tools/call", name="add", arguments=[1]), mcp.INVALID_PARAMS),
        ({"id": 1, "method": "tools/call", "params": [1]}, mcp.INVALID_PARAMS),
    ],
)
async def test_a_mistake_has_its_code(message: object, code: int) -> None:
    assert (await answered(message))["error"]["code"] == code


@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/initialized"},
        {"id": None, "method": "ping"},
        {"id": 1, "result": {}},
        {"id": 1, "error": {}},
        [{"method": "a"}, {"id": 1, "result": {}}],
        [],
    ],
)
async def test_what_needs_no_answer_gets_none(message: object) -> None:
    assert await answered(message) is None


async def test_a_batch_is_answered_as_one() -> None:
    replies = await answered([request("ping", "a"), {"method": "x"}, request("ping", 0), 7])
    assert [each["id"] for each in replies] == ["a", 0, None]


# -- our client ------------------------------------------------------------------------------------------------


class Wire:
    """A server that answers from a table; what it is asked is kept."""

    version = ""

    def __init__(self, **answers: Any) -> None:
        self.answers = {name.replace("_", "/"): answer for name, answer in answers.items()}
        self.asked: list[Json] = []
        self.told: list[Json] = []

    async def request(self, message: Json, listener: Listener) -> Json:
        self.asked.append(message)
        answer = self.answers[message["method"]]
        found = answer(message["params"]) if callable(answer) else answer
        if isinstance(found, Exception):
            raise found
        return found if "error" in found or "result" in found else {"result": found}

    async def notify(self, message: Json) -> None:
        self.told.append(message)

    async def close(self) -> None: ...


HELLO = {"protocolVersion": mcp.VERSIONS[0]}


async def test_the_handshake() -> None:
    wire = Wire(initialize=HELLO)
    await McpClient("s", wire, "/w").initialize()
    assert wire.version == mcp.VERSIONS[0]
    assert [each["method"] for each in wire.told] == ["notifications/initialized"]
    params = wire.asked[0]["params"]
    assert (params["protocolVersion"], params["clientInfo"]["name"]) == (mcp.VERSIONS[0], "portico")


@pytest.mark.parametrize("version", ["1999-01-01", None])
async def test_a_server_of_another_time_is_not_used(version: object) -> None:
    with pytest.raises(ServerError, match="speaks version"):
        await McpClient("s", Wire(initialize={"protocolVersion": version}), "/w").initialize()


@pytest.mark.parametrize(
    ("told", "name", "title", "view", "hidden"),
    [
        ({"name": "a"}, "a", "a", "", False),
        ({"name": "a", "title": "A"}, "a", "A", "", False),
        ({"name": "a", "annotations": {"title": "B"}}, "a", "B", "", False),
        ({"name": "a", "annotations": 7, "_meta": 7, "inputSchema": 7}, "a", "a", "", False),
        ({"name": "a", "_meta": {"ui": {"resourceUri": "ui://x"}}}, "a", "a", "ui://x", False),
        ({"name": "a", "_meta": {"ui/resourceUri": "ui://x"}}, "a", "a", "ui://x", False),
        ({"name": "a", "_meta": {"ui": {"resourceUri": "http://x"}}}, "a", "a", "", False),
        ({"name": "a", "_meta": {"ui": {"visibility": ["app"]}}}, "a", "a", "", True),
        ({"name": "a", "_meta": {"ui": {"visibility": ["app", "model"]}}}, "a", "a", "", False),
    ],
)
async def test_a_tool_of_a_server(told: Json, name: str, title: str, view: str, hidden: bool) -> None:
    [tool] = await McpClient("s", Wire(tools_list={"tools": [told, {}, 7, {"name": ""}, {"name": 7}]}), "/w").tools()
    assert (tool.name, tool.title, tool.view, tool.hidden) == (name, title, view, hidden)
    assert tool.schema["type"] == "object"


async def test_tools_come_in_pages_up_to_a_bound() -> None:
    pages = {None: ("a", "2"), "2": ("b", "3"), "3": ("c", None)}

    def page(params: Json) -> Json:
        name, following = pages[params.get("cursor")]
        return {"tools": [{"name": name}], "nextCursor": following}

    client = McpClient("s", Wire(tools_list=page), "/w")
    assert [each.name for each in await client.tools()] == ["a", "b", "c"]
    endless = McpClient("s", Wire(tools_list={"tools": [{"name": "x"}] * 300, "nextCursor": "again"}), "/w")
    assert len(await endless.tools()) == TOOLS_MAX
    empty = McpClient("s", Wire(tools_list={"tools": [], "nextCursor": "again"}), "/w")
    assert await empty.tools() == []


async def test_tools_are_asked_for_again_only_when_they_have_changed() -> None:
    wire = Wire(tools_list={"tools": [{"name": "a"}]})
    client = McpClient("s", wire, "/w")
    await client.tools()
    await client.tools()
    assert len(wire.asked) == 1
    client.hear({"method": "notifications/tools/list_changed"})
    client.hear({"method": "notifications/other", "params": 7})
    await client.tools()
    assert len(wire.asked) == 2


async def test_a_call_hears_its_own_progress() -> None:
    said: list[str] = []

    def calling(params: Json) -> Json:
        token = params["_meta"]["progressToken"]
        for progress in (
            {"progressToken": token, "message": "half"},
            {"progressToken": -1, "message": "no"},
            {"progressToken": token},
        ):
            client.hear({"method": "notifications/progress", "params": progress})
        return {"content": [{"type": "text", "text": "done"}]}

    client = McpClient("s", Wire(tools_call=calling), "/w")
    assert await client.call("add", {"a": 1}, said.append) == ToolResult(True, "done")
    assert said == ["half\n"]
    client.hear({"method": "notifications/progress", "params": {"progressToken": 1, "message": "late"}})
    assert said == ["half\n"]


async def test_a_server_that_has_forgotten_us_is_greeted_again_once() -> None:
    lost = [SessionLost("gone")]
    wire = Wire(initialize=HELLO, tools_call=lambda _: lost.pop() if lost else {"content": []})
    await McpClient("s", wire, "/w").call("add", {}, lambda _: None)
    assert [each["method"] for each in wire.asked] == ["tools/call", "initialize", "tools/call"]
    forgetful = Wire(initialize=HELLO, tools_call=SessionLost("gone"))
    with pytest.raises(SessionLost):
        await McpClient("s", forgetful, "/w").call("add", {}, lambda _: None)


@pytest.mark.parametrize(
    ("reply", "words"), [({"error": {"message": "no"}}, "MCP server 's': no"), ({"error": {"code": 7}}, "{'code': 7}")]
)
async def test_what_a_server_refuses_is_told_with_its_name(reply: Json, words: str) -> None:
    with pytest.raises(ServerError, match=words):
        await McpClient("s", Wire(tools_call=reply), "/w").call("add", {}, lambda _: None)


async def test_a_reply_is_passed_on_as_it_is() -> None:
    client = McpClient("s", Wire(a={"result": {"x": 1}}, b={"error": {"code": 1}}, c={"result": 7}), "/w")
    assert await client.ask("a", {}) == {"result": {"x": 1}}
    assert await client.ask("b", {}) == {"error": {"code": 1}}
    assert await client.ask("c", {}) == {"result": {}}


async def test_a_call_that_is_cancelled_is_told_to_the_server() -> None:
    wire = Wire()
    begun = asyncio.Event()

    async def hang(message: Json, listener: Listener) -> Json:
        begun.set()
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    wire.request = hang  # type: ignore[method-assign]
    calling = asyncio.ensure_future(McpClient("s", wire, "/w").call("add", {}, lambda _: None))
    await begun.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    [told] = wire.told
    assert (told["method"], told["params"]["requestId"]) == ("notifications/cancelled", 1)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("ping", {"result": {}}),
        ("roots/list", {"result": {"roots": [{"uri": "file:///w", "name": "project"}]}}),
        (
            "sampling/createMessage",
            {"error": {"code": mcp.NO_METHOD, "message": "There is no method 'sampling/createMessage'."}},
        ),
        (
            "elicitation/create",
            {"error": {"code": mcp.NO_METHOD, "message": "There is no method 'elicitation/create'."}},
        ),
    ],
)
async def test_what_a_server_may_ask(method: str, answer: Json) -> None:
    client = McpClient("s", Wire(), "/w")
    assert await client.serve({"id": 5, "method": method, "params": 7}) == {"jsonrpc": "2.0", "id": 5, **answer}


async def test_a_question_reaches_who_serves_at_that_moment() -> None:
    client = McpClient("s", Wire(), "/w")

    async def serving(method: str, params: Json) -> Json:
        return {"action": "accept", "content": params}

    client.serving = serving
    reply = await client.serve({"id": 5, "method": "elicitation/create", "params": {"a": 1}})
    assert reply["result"] == {"action": "accept", "content": {"a": 1}}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({}, ToolResult(True, "")),
        ({"content": 7}, ToolResult(True, "")),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, ToolResult(True, "a\nb")),
        ({"content": [{"type": "text"}, 7]}, ToolResult(True, "")),
        ({"content": [{"type": "image", "mimeType": "image/png"}]}, ToolResult(True, "(image, image/png)")),
        ({"content": [{"type": "video"}]}, ToolResult(True, "(video, unknown type)")),
        ({"content": [{"type": "resource", "resource": {"text": "in"}}]}, ToolResult(True, "in")),
        ({"content": [{"type": "resource_link", "uri": "u", "name": "n"}]}, ToolResult(True, "[n](u)")),
        (
            {"structuredContent": {"a": 1}},
            ToolResult(True, "{'a': 1}", content=[{"type": "structured", "value": {"a": 1}}]),
        ),
        (
            {"content": [{"type": "text", "text": "t"}], "structuredContent": {"a": 1}},
            ToolResult(True, "t", content=[{"type": "structured", "value": {"a": 1}}]),
        ),
        (
            {"isError": True, "content": [{"type": "text", "text": "no"}]},
            ToolResult(False, "no", ErrorInfo("tool_failed", "no")),
        ),
        ({"isError": True}, ToolResult(False, "", ErrorInfo("tool_failed", "The tool failed."))),
    ],
)
def test_a_result_in_words(result: Json, expected: ToolResult) -> None:
    assert result_of(result) == expected


# -- tokens ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (
            'Bearer resource_metadata="http://x", scope="a b", error="invalid_token"',
            ("http://x", ["a", "b"], "invalid_token"),
        ),
        ('Bearer scope=""', ("", [], "")),
        ("Bearer", ("", [], "")),
        ("", ("", [], "")),
    ],
)
def test_what_a_server_wants(header: str, expected: tuple[str, list[str], str]) -> None:
    assert tuple(challenge(header)) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a/x", "https://a/y?z", True),
        ("https://a", "http://a", False),
        ("https://a", "https://b", False),
        ("https://a:1", "https://a:2", False),
        ("https://a", "https://a.evil", False),
        ("https://a", "https://user@a", False),
    ],
)
def test_a_token_stays_on_its_origin(one: str, other: str, same: bool) -> None:
    assert same_origin(one, other) is same


async def test_a_token_is_for_one_resource_and_one_client_until_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("portico.agents.mcp.sign_in.time.monotonic", lambda: now)
    tokens = McpTokens()
    assert tokens.state("r", "c") == "required"
    tokens.give("r", "t", 10, "c")
    assert (tokens.get("r", "c"), tokens.state("r", "c")) == ("t", "given")
    assert (tokens.get("r", "d"), tokens.get("q", "c")) == (None, None)
    now = 110.0
    assert (tokens.get("r", "c"), tokens.state("r", "c")) == (None, "expired")
    tokens.give("r", "u", None, "c")
    now = 1e12
    assert tokens.get("r", "c") == "u"
    tokens.forget("c")
    assert tokens.state("r", "c") == "required"


def test_what_a_server_asks_for_is_described() -> None:
    tokens = McpTokens()
    tokens.learn(
        {"resource": "http://x", "resource_name": None, "authorization_servers": ["http://a"], "scopes_supported": None}
    )
    found = tokens.resources["http://x"]
    assert (found.name, found.servers, found.scopes, found.required) == ("", ["http://a"], [], False)

"""The server side of MCP without a network: what each message is answered with, in both generations."""

import msgspec
import pytest
from mcp_types import methods as wire

from portico.kernel.errors import BadRequest, NotFound
from portico.kernel.events import ErrorInfo, Json, ToolSpec
from portico.kernel.tool import ToolResult
from portico.mcp import (
    ALWAYS_LOAD,
    CAPABILITIES_KEY,
    STATELESS,
    VERSION_KEY,
    VERSIONS,
    CallCancelled,
    Served,
    ServedResult,
    ServedTool,
    answer,
    http_status,
    is_stateless,
)

META = {"_meta": {VERSION_KEY: STATELESS, CAPABILITIES_KEY: {}}}


class Box:
    """Tools with every kind of outcome."""

    def specs(self) -> list[ToolSpec]:
        return [
            ToolSpec("plain", "A plain tool.", {"properties": {"a": {"type": "string"}}}),
            ServedTool("rich", "All there is.", {"type": "object"}, "Rich", {"type": "object"}, {"readOnlyHint": True}),
            *(ToolSpec(name) for name in ("refused", "failed", "cancelled")),
        ]

    async def call(self, name: str, arguments: Json) -> ToolResult:
        match name:
            case "rich":
                return ServedResult(True, "{}", structured=arguments)
            case "refused":
                raise BadRequest("Not like this.")
            case "failed":
                return ToolResult(False, error=ErrorInfo("broken", "It broke."))
            case "cancelled":
                raise CallCancelled
        return ToolResult(True, f"{name} {arguments}")


class Shelf:
    instructions = "Read it."

    async def resources(self) -> list[Json]:
        return [{"uri": "x://one", "name": "one"}]

    def templates(self) -> list[Json]:
        return [{"uriTemplate": "x://{n}", "name": "all"}]

    async def read(self, uri: str) -> Json:
        if uri != "x://one":
            raise NotFound("resource", uri)
        return {"uri": uri, "text": "1"}

    def prompts(self) -> list[Json]:
        return [{"name": "greet"}]

    def prompt(self, name: str, arguments: Json) -> Json:
        if arguments:
            raise BadRequest("It takes none.")
        return {"messages": [{"role": "user", "content": {"type": "text", "text": name}}]}


def request(method: str, **params: object) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


SERVED = Served(Box(), Shelf())
METHODS: dict[str, Json] = {
    "tools/list": {},
    "tools/call": {"name": "rich", "arguments": {"a": 1}},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "x://one"},
    "prompts/list": {},
    "prompts/get": {"name": "greet"},
}
HANDSHAKE: dict[str, Json] = {"initialize": {"protocolVersion": VERSIONS[0]}, "ping": {}}


@pytest.mark.parametrize("method", [*METHODS, *HANDSHAKE])
async def test_a_result_is_valid_with_a_handshake(method: str) -> None:
    reply = await SERVED.reply(request(method, **{**METHODS, **HANDSHAKE}[method]))
    assert reply is not None
    wire.validate_server_result(method, VERSIONS[0], reply["result"])


@pytest.mark.parametrize("method", [*METHODS, "server/discover"])
async def test_a_result_is_valid_without_a_handshake(method: str) -> None:
    message = request(method, **METHODS.get(method, {}), **META)
    reply = await SERVED.reply(message)
    assert reply is not None
    assert is_stateless(message)
    wire.validate_server_result(method, STATELESS, reply["result"])
    assert (reply["result"]["resultType"], http_status(reply)) == ("complete", 200)


@pytest.mark.parametrize(
    ("method", "params", "code", "status"),
    [
        ("nope", {}, -32601, 404),
        ("tools/call", {"name": "nope"}, -32602, 400),
        ("tools/call", {"name": "plain", "arguments": [1]}, -32602, 400),
        ("tools/call", {}, -32602, 400),
        ("resources/read", {}, -32602, 400),
        ("resources/read", {"uri": 7}, -32602, 400),
        ("resources/read", {"uri": "x://two"}, -32002, 400),
        ("prompts/get", {"name": ""}, -32602, 400),
        ("prompts/get", {"name": "greet", "arguments": 1}, -32602, 400),
        ("prompts/get", {"name": "greet", "arguments": {"a": "1"}}, -32602, 400),
    ],
)
async def test_a_mistake_has_a_code_in_both_generations(method: str, params: Json, code: int, status: int) -> None:
    older = await SERVED.reply(request(method, **params))
    newer = await SERVED.reply(request(method, **params, **META))
    assert older is not None
    assert newer is not None
    assert older["error"]["code"] == code
    assert newer["error"]["code"] == (-32602 if code == -32002 else code), "-32002 is retired"
    assert http_status(newer) == status
    assert {older["id"], newer["id"]} == {1}


@pytest.mark.parametrize(
    ("tool", "text", "failed"),
    [("plain", "plain {'a': 1}", False), ("refused", "Not like this.", True), ("failed", "It broke.", True)],
)
async def test_how_a_call_ends(tool: str, text: str, failed: bool) -> None:
    reply = await SERVED.reply(request("tools/call", name=tool, arguments={"a": 1}))
    assert reply is not None
    assert reply["result"] == {"content": [{"type": "text", "text": text}], "isError": failed}


async def test_a_cancelled_call_has_no_reply_of_its_own() -> None:
    with pytest.raises(CallCancelled):
        await SERVED.reply(request("tools/call", name="cancelled"))


async def test_what_is_shown_of_a_tool() -> None:
    served = Served(Box(), meta=ALWAYS_LOAD)
    reply = await served.reply(request("tools/list"))
    assert reply is not None
    plain, rich = reply["result"]["tools"][:2]
    assert plain == {
        "name": "plain",
        "description": "A plain tool.",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
        "_meta": ALWAYS_LOAD,
    }
    assert (rich["title"], rich["outputSchema"], rich["annotations"]) == (
        "Rich",
        {"type": "object"},
        {"readOnlyHint": True},
    )


async def test_without_a_library_there_are_only_tools() -> None:
    served = Served(Box())
    reply = await served.reply(request("initialize"))
    assert reply is not None
    assert reply["result"]["capabilities"].keys() == {"tools"}
    assert "instructions" not in reply["result"]
    listed = await served.reply(request("resources/list"))
    assert listed is not None
    assert listed["error"]["code"] == -32601


@pytest.mark.parametrize("message", [7, None, "x", {}, {"id": 1}, {"id": 1, "method": 3}])
async def test_what_is_no_request(message: object) -> None:
    reply = await SERVED.reply(message)
    assert reply is not None
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
    ],
)
async def test_what_needs_no_reply(message: Json) -> None:
    assert await SERVED.reply(message) is None
    assert await answer(msgspec.json.encode(message), Box()) is None
    assert await answer(msgspec.json.encode([message, message]), Box()) is None


async def test_a_batch_and_bytes_that_are_no_json() -> None:
    replies = msgspec.json.decode(await answer(msgspec.json.encode([request("ping"), 7]), Box()) or b"")
    assert [each.get("result", each.get("error", {}).get("code")) for each in replies] == [{}, -32600]
    for body in (b"", b"{", b"\xff", b"[" * 100_000):
        reply = msgspec.json.decode(await answer(body, Box()) or b"")
        assert reply["error"]["code"] == -32700

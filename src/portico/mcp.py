"""The Model Context Protocol, the serving side: one JSON-RPC message in, one out. Pure but for the tools themselves.

Two rooms use it: the door `/mcp`, through which an agent drives agents, and the agents that take a session's tools
over MCP. Both speak streamable HTTP without a stream of the server's own: every answer is the reply to a request.
"""

from typing import Any, Protocol

import msgspec

from portico import __version__, surrogates
from portico.errors import PorticoError
from portico.events import Json, ToolSpec
from portico.host.tool import ToolResult

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first. The parts that differ between them (streams, batches, structured output) are not used here."""

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602


ALWAYS_LOAD: Json = {"anthropic/alwaysLoad": True}
"""Of a tool: agents that hide tools behind a search (Claude Code) show it to their model from the start."""


class Toolbox(Protocol):
    """Tools as an MCP server offers them."""

    def specs(self) -> list[ToolSpec]: ...

    async def call(self, name: str, arguments: Json) -> ToolResult: ...


class Mistake(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


async def answer(body: bytes, toolbox: Toolbox, name: str = "portico", meta: Json | None = None) -> bytes | None:
    """The reply to the body of a POST; None if it held only notifications (HTTP status 202). `meta` goes into the
    description of each tool."""
    try:
        message = surrogates.decode(body, msgspec.json.decode)
    except (ValueError, RecursionError) as error:
        return msgspec.json.encode(_failure(None, PARSE_ERROR, f"This is not JSON: {error}"))
    if isinstance(message, list):
        replies = [reply for each in message if (reply := await _one(each, toolbox, name, meta)) is not None]
        return msgspec.json.encode(replies) if replies else None
    reply = await _one(message, toolbox, name, meta)
    return None if reply is None else msgspec.json.encode(reply)


async def _one(message: Any, toolbox: Toolbox, name: str, meta: Json | None) -> Json | None:
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        is_reply = isinstance(message, dict) and ("result" in message or "error" in message)
        return None if is_reply else _failure(None, INVALID_REQUEST, "This is not a JSON-RPC request.")
    if message.get("id") is None:
        return None  # a notification: there is nothing that we would have to do
    params = message.get("params")
    try:
        result = await _result(message["method"], params if isinstance(params, dict) else {}, toolbox, name, meta)
    except Mistake as mistake:
        return _failure(message["id"], mistake.code, str(mistake))
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


async def _result(method: str, params: Json, toolbox: Toolbox, name: str, meta: Json | None) -> Json:
    match method:
        case "initialize":
            wanted = params.get("protocolVersion")
            return {
                "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": name, "version": __version__},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [_described(spec, meta) for spec in toolbox.specs()]}
        case "tools/call":
            return await _call(params, toolbox)
    raise Mistake(NO_METHOD, f"There is no method {method!r} here.")


def _described(spec: ToolSpec, meta: Json | None) -> Json:
    schema = spec.schema if spec.schema.get("type") == "object" else {"type": "object", **spec.schema}
    described: Json = {"name": spec.name, "description": spec.description, "inputSchema": schema}
    if meta:
        described["_meta"] = meta
    return {**described, "title": spec.title} if spec.title else described


async def _call(params: Json, toolbox: Toolbox) -> Json:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise Mistake(INVALID_PARAMS, "'arguments' is an object.")
    if name not in {spec.name for spec in toolbox.specs()}:
        raise Mistake(INVALID_PARAMS, f"There is no tool {name!r}.")
    try:
        result = await toolbox.call(str(name), arguments)
    except PorticoError as error:
        result = ToolResult(False, error.message)
    text = result.output or (result.error.message if result.error else "")
    return {"content": [{"type": "text", "text": text}], "isError": not result.ok}


def _failure(ident: Any, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}}

"""One connection to an MCP server: the handshake, the list of its tools, their calls, and what it asks back.

How messages travel is the wire's business (`stdio`, `http`). A server may ask while it is asked: a question to a
person (`elicitation/create`) or the folders (`roots/list`). All other requests are refused.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from portico import __version__
from portico.agents.attachment import text_of
from portico.kernel.errors import AgentError, NotFound, PorticoError
from portico.kernel.events import ErrorInfo, Json
from portico.kernel.tool import ToolResult
from portico.mcp import INVALID_PARAMS, NO_METHOD, VERSIONS

TOOLS_MAX = 1000
"""Tools of one server: more means that the server is broken, and no model reads them."""
START_SECONDS = 30.0
"""For the handshake and the list; a server that is fetched first (npx, uvx) has this long."""

UI, VIEWS = "io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=mcp-app"]}
"""The extension by which tools have views. Editors show them; what a tool answers to the model does not change."""

T = TypeVar("T")
Progress = Callable[[str], None]
Serve = Callable[[str, Json], Awaitable[Json]]
"""Answers what a server asks: its method and params."""


class ServerError(AgentError):
    """The server did not do as asked. The message goes to the model or to a person."""


class SessionLost(ServerError):
    """The server has forgotten us: a new handshake helps."""


class ServerTool(Struct, frozen=True):
    name: str
    description: str
    schema: Json
    title: str
    view: str = ""
    """The resource that shows its calls (MCP Apps)."""
    hidden: bool = False
    """It is for that view alone, not for the model."""


class Listener(Protocol):
    """What a wire hands over besides replies."""

    async def serve(self, message: Json) -> Json:
        """The reply to a request of the server."""

    def hear(self, message: Json) -> None:
        """A notification of the server."""


class Wire(Protocol):
    version: str
    """The protocol version, once it is agreed."""

    async def request(self, message: Json, listener: Listener) -> Json:
        """Sends a request and returns the reply message; raises ServerError when there will be none."""

    async def notify(self, message: Json) -> None: ...

    async def close(self) -> None: ...


class McpClient:
    def __init__(self, name: str, wire: Wire, folder: str) -> None:
        self.name = name
        self.wire = wire
        self.serving: Serve | None = None
        """Answers the server's requests during a turn; None between turns."""
        self.stale = True
        """The list of tools has changed since it was read."""
        self._folder = folder
        self._numbers = itertools.count(1)
        self._progress: dict[int, Progress] = {}
        self._tools: list[ServerTool] = []

    async def initialize(self) -> None:
        capabilities: Json = {"roots": {"listChanged": False}, "elicitation": {}, "extensions": {UI: VIEWS}}
        about = {"name": "portico", "title": "Portico", "version": __version__}
        params: Json = {"protocolVersion": VERSIONS[0], "capabilities": capabilities, "clientInfo": about}
        result = await self._request("initialize", params)
        version = result.get("protocolVersion")
        if version not in VERSIONS:
            raise ServerError(f"MCP server {self.name!r} speaks version {version!r}; Portico knows {VERSIONS}.")
        self.wire.version = str(version)
        await self.wire.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.stale = True

    async def tools(self) -> list[ServerTool]:
        """Return all tools; listed again only after the server reported a change."""
        if self.stale:
            self.stale = False
            self._tools = await self._again(self._list)
        return self._tools

    async def _list(self) -> list[ServerTool]:
        found: list[ServerTool] = []
        params: Json = {}
        while len(found) < TOOLS_MAX:
            result = await self._request("tools/list", params)
            listed = result.get("tools")
            found += [_tool(each) for each in listed if _named(each)] if isinstance(listed, list) else []
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str) or not listed:
                break
            params = {"cursor": cursor}
        return found[:TOOLS_MAX]

    async def call(self, tool: str, arguments: Json, progress: Progress) -> ToolResult:
        async def calling() -> Json:
            number = next(self._numbers)
            self._progress[number] = progress
            try:
                params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": number}}
                return await self._request("tools/call", params, number)
            finally:
                del self._progress[number]

        return result_of(await self._again(calling))

    async def ask(self, operation: str, params: Json) -> Json:
        """Return the server's reply unchanged, including errors."""
        reply = await self._again(lambda: self._reply(operation, params))
        return {"error": reply["error"]} if isinstance(reply.get("error"), dict) else {"result": _result(reply)}

    async def _again(self, work: Callable[[], Awaitable[T]]) -> T:
        """Retry once after a new handshake if the server has lost the session. It has not run the request then."""
        try:
            return await work()
        except SessionLost:
            await self.initialize()
            return await work()

    async def _request(self, method: str, params: Json, number: int | None = None) -> Json:
        reply = await self._reply(method, params, number)
        if isinstance(error := reply.get("error"), dict):
            raise ServerError(f"MCP server {self.name!r}: {error.get('message') or error}")
        return _result(reply)

    async def _reply(self, method: str, params: Json, number: int | None = None) -> Json:
        ident = next(self._numbers) if number is None else number
        message: Json = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        try:
            return await self.wire.request(message, self)
        except asyncio.CancelledError:
            if method != "initialize":
                await self._abandon(ident)
            raise

    async def _abandon(self, ident: int) -> None:
        params = {"requestId": ident, "reason": "cancelled"}
        try:
            async with asyncio.timeout(1.0):
                await self.wire.notify({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        except (TimeoutError, AgentError):
            pass  # the notification is a courtesy: the caller no longer waits for the answer

    # -- notifications and requests of the server ----------------------------------------------------------------

    def hear(self, message: Json) -> None:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        match message.get("method"):
            case "notifications/tools/list_changed":
                self.stale = True
            case "notifications/progress":
                report = self._progress.get(params.get("progressToken", 0))
                if report is not None and isinstance(said := params.get("message"), str):
                    report(f"{said}\n")

    async def serve(self, message: Json) -> Json:
        method, params = str(message.get("method")), message.get("params")
        reply: Json = {"jsonrpc": "2.0", "id": message.get("id")}
        try:
            return {**reply, "result": await self._answer(method, params if isinstance(params, dict) else {})}
        except PorticoError as error:
            code = NO_METHOD if error.code == "not_found" else INVALID_PARAMS
            return {**reply, "error": {"code": code, "message": error.message}}

    async def _answer(self, method: str, params: Json) -> Json:
        if method == "ping":
            return {}
        if method == "roots/list":
            return {"roots": [{"uri": f"file://{self._folder}", "name": "project"}]}
        if method == "elicitation/create" and self.serving is not None:
            return await self.serving(method, params)
        raise NotFound("method", method)


def _result(reply: Json) -> Json:
    result = reply.get("result")
    return result if isinstance(result, dict) else {}


def _named(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str) and bool(tool["name"])


def _tool(tool: Json) -> ServerTool:
    schema, annotations = tool.get("inputSchema"), tool.get("annotations")
    title = tool.get("title") or (annotations.get("title") if isinstance(annotations, dict) else None)
    return ServerTool(
        tool["name"],
        str(tool.get("description") or ""),
        schema if isinstance(schema, dict) else {"type": "object", "properties": {}},
        str(title or tool["name"]),
        *_view(tool),
    )


def _view(tool: Json) -> tuple[str, bool]:
    """The resource that shows the tool's calls, and whether the tool is only for it. Old drafts use the flat key."""
    meta = tool.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    ui = meta.get("ui")
    ui = ui if isinstance(ui, dict) else {}
    shown, visible = ui.get("resourceUri") or meta.get("ui/resourceUri"), ui.get("visibility")
    is_view = isinstance(shown, str) and shown.startswith("ui://")
    return str(shown) if is_view else "", isinstance(visible, list) and "model" not in visible


def result_of(result: Json) -> ToolResult:
    """Convert a call's result to text: texts unchanged, other content by name."""
    content = result.get("content")
    texts = [_words(block) for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    text = "\n".join(filter(None, texts))
    structured = result.get("structuredContent")
    if not text and structured is not None:
        text = str(structured)
    if result.get("isError"):
        return ToolResult(False, text, ErrorInfo("tool_failed", text or "The tool failed."))
    return ToolResult(True, text, content=[{"type": "structured", "value": structured}] if structured else [])


def _words(block: Json) -> str:
    kind = block.get("type")
    return text_of(block) or ("" if kind == "text" else f"({kind}, {block.get('mimeType') or 'unknown type'})")

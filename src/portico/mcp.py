"""The Model Context Protocol, server side: one JSON-RPC message in, one reply out. No I/O except in the tools.

It is used by the door `/mcp`, through which an agent drives agents, and by the tool server of agents that use the tools
of a session over MCP.

Two generations of the protocol are served. Up to 2025-11-25 a client begins with `initialize`. From 2026-07-28 there is
no handshake: every request names its version and the client's capabilities in `_meta`, and the first request may be
`server/discover`.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from portico import __version__, surrogates
from portico.kernel.errors import NotFound, PorticoError
from portico.kernel.events import Json, ToolSpec
from portico.kernel.tool import ToolResult

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions with a handshake, newest first."""
STATELESS = "2026-07-28"
"""The version without a handshake."""
SUPPORTED = (STATELESS, *VERSIONS)

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
CANCELLED = -32800
RESOURCE_NOT_FOUND, HEADER_MISMATCH, UNSUPPORTED_VERSION = -32002, -32020, -32022
_STATUS = {NO_METHOD: 404, **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS), 400)}
_STATUS |= dict.fromkeys((HEADER_MISMATCH, UNSUPPORTED_VERSION), 400)

_META = "io.modelcontextprotocol/"
VERSION_KEY, CAPABILITIES_KEY, SERVER_KEY = (
    f"{_META}protocolVersion",
    f"{_META}clientCapabilities",
    f"{_META}serverInfo",
)
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the header `Mcp-Name` repeats, by method."""
_LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_CACHED = frozenset({"server/discover", "resources/read", *_LISTS})
"""Methods whose results state how long a client may keep them. Ours depend on the token and change at any time."""

ALWAYS_LOAD: Json = {"anthropic/alwaysLoad": True}
"""Of a tool: agents that hide tools behind a search (Claude Code) show it to their model from the start."""


class ServedTool(ToolSpec, frozen=True, omit_defaults=True):
    """A tool with what only MCP shows."""

    output: Json = {}
    """JSON Schema of the structured content: always an object."""
    annotations: Json = {}


class ServedResult(ToolResult, frozen=True, omit_defaults=True):
    structured: Json | None = None
    """The output as an object, for clients that read the output schema."""


class Toolbox(Protocol):
    """Tools as an MCP server offers them."""

    def specs(self) -> Sequence[ToolSpec]: ...

    async def call(self, name: str, arguments: Json) -> ToolResult: ...


class Library(Protocol):
    """What a server offers besides tools. A name or address that does not exist raises `NotFound`."""

    instructions: str

    async def resources(self) -> list[Json]: ...

    def templates(self) -> list[Json]: ...

    async def read(self, uri: str) -> Json: ...

    def prompts(self) -> list[Json]: ...

    def prompt(self, name: str, arguments: Json) -> Json: ...


class Mistake(Exception):
    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class CallCancelled(Exception):
    """The client has cancelled the call and expects no result."""


class Served:
    """One MCP server for one caller: the tools, and a library if it has one."""

    def __init__(
        self, toolbox: Toolbox, library: Library | None = None, name: str = "portico", meta: Json | None = None
    ) -> None:
        """`meta` is added to the description of each tool."""
        self._toolbox = toolbox
        self._library = library
        self._info: Json = {"name": name, "title": "Portico", "version": __version__}
        self._meta = meta

    async def reply(self, message: Any, headers: Mapping[str, str] | None = None) -> Json | None:
        """The reply to one message; None for a notification. `headers`: of the HTTP request, which a message without
        handshake repeats."""
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            is_reply = isinstance(message, dict) and ("result" in message or "error" in message)
            return None if is_reply else failure(None, INVALID_REQUEST, "This is not a JSON-RPC request.")
        if message.get("id") is None:
            return None
        found = message.get("params")
        params = found if isinstance(found, dict) else {}
        stateless = is_stateless(message, headers)
        try:
            if stateless:
                check_envelope(message["method"], params, headers)
                result = self._complete(message["method"], await self._stateless(message["method"], params))
            else:
                result = await self._result(message["method"], params)
        except Mistake as mistake:
            retired = stateless and mistake.code == RESOURCE_NOT_FOUND
            return failure(message["id"], INVALID_PARAMS if retired else mistake.code, str(mistake), mistake.data)
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def _stateless(self, method: str, params: Json) -> Json:
        if method == "server/discover":
            return {"supportedVersions": list(SUPPORTED), **self._about()}
        if method in ("initialize", "ping"):
            raise Mistake(NO_METHOD, f"{STATELESS} has no method {method!r}.")
        return await self._result(method, params)

    def _complete(self, method: str, result: Json) -> Json:
        cached = {"ttlMs": 0, "cacheScope": "private"} if method in _CACHED else {}
        return {**result, "resultType": "complete", **cached, "_meta": {SERVER_KEY: self._info}}

    def _about(self) -> Json:
        capabilities: Json = {"tools": {"listChanged": False}}
        if self._library is None:
            return {"capabilities": capabilities}
        capabilities |= {"resources": {"subscribe": False, "listChanged": False}, "prompts": {"listChanged": False}}
        return {"capabilities": capabilities, "instructions": self._library.instructions}

    async def _result(self, method: str, params: Json) -> Json:
        match method:
            case "initialize":
                wanted = params.get("protocolVersion")
                version = wanted if wanted in VERSIONS else VERSIONS[0]
                return {"protocolVersion": version, "serverInfo": self._info, **self._about()}
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [self._described(spec) for spec in self._toolbox.specs()]}
            case "tools/call":
                return await self._call(params)
        if self._library is not None:
            return await _from_library(self._library, method, params)
        raise Mistake(NO_METHOD, f"There is no method {method!r} here.")

    def _described(self, spec: ToolSpec) -> Json:
        schema = spec.schema if spec.schema.get("type") == "object" else {"type": "object", **spec.schema}
        described: Json = {"name": spec.name, "description": spec.description, "inputSchema": schema}
        more = {"title": spec.title, "_meta": self._meta}
        if isinstance(spec, ServedTool):
            more |= {"outputSchema": spec.output, "annotations": spec.annotations}
        return described | {key: value for key, value in more.items() if value}

    async def _call(self, params: Json) -> Json:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise Mistake(INVALID_PARAMS, "'arguments' is an object.")
        if name not in {spec.name for spec in self._toolbox.specs()}:
            raise Mistake(INVALID_PARAMS, f"There is no tool {name!r}.")
        try:
            result = await self._toolbox.call(str(name), arguments)
        except PorticoError as error:
            result = ToolResult(False, error.message)
        text = result.output or (result.error.message if result.error else "")
        shown: Json = {"content": [{"type": "text", "text": text}], "isError": not result.ok}
        structured = result.structured if isinstance(result, ServedResult) else None
        return shown if structured is None else {**shown, "structuredContent": structured}


async def answer(body: bytes, toolbox: Toolbox, meta: Json | None = None) -> bytes | None:
    """The reply to the body of a POST; None if it held only notifications (HTTP status 202)."""
    served = Served(toolbox, meta=meta)
    try:
        message = decode(body)
    except Mistake as mistake:
        return msgspec.json.encode(failure(None, mistake.code, str(mistake)))
    if isinstance(message, list):
        replies = [reply for each in message if (reply := await served.reply(each)) is not None]
        return msgspec.json.encode(replies) if replies else None
    reply = await served.reply(message)
    return None if reply is None else msgspec.json.encode(reply)


def decode(body: bytes) -> Any:
    try:
        return surrogates.decode(body, msgspec.json.decode)
    except (ValueError, RecursionError) as error:
        raise Mistake(PARSE_ERROR, f"This is not JSON: {error}") from None


def failure(ident: Any, code: int, message: str, data: Json | None = None) -> Json:
    error: Json = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": ident, "error": error if data is None else {**error, "data": data}}


def http_status(reply: Json) -> int:
    """The HTTP status of a reply to a request without handshake. Older versions answer errors with 200."""
    return _STATUS.get(reply.get("error", {}).get("code", 0), 200)


# -- requests without a handshake ------------------------------------------------------------------------------


def is_stateless(message: Any, headers: Mapping[str, str] | None = None) -> bool:
    """Whether a message belongs to the version without handshake: by its `_meta` or by its header."""
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    named = isinstance(meta, dict) and VERSION_KEY in meta
    return named or (headers or {}).get("mcp-protocol-version") == STATELESS


def check_version(version: str | None) -> None:
    """Check the header `MCP-Protocol-Version`. Clients before 2025-06-18 do not send it."""
    if version is not None and version not in SUPPORTED:
        raise unsupported(version)


def unsupported(version: str) -> Mistake:
    words = f"The protocol version {version[:40]!r} is not supported. Use one of: {', '.join(SUPPORTED)}."
    return Mistake(UNSUPPORTED_VERSION, words, {"supported": list(SUPPORTED), "requested": version})


def check_envelope(method: str, params: Json, headers: Mapping[str, str] | None) -> None:
    """Check the fields that replace the handshake, and that the headers repeat them: a proxy routes by the headers."""
    meta = params.get("_meta")
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if not isinstance(meta, dict) or key not in meta]
    if missing or not isinstance(meta, dict):
        raise Mistake(INVALID_PARAMS, f"'params._meta' needs {' and '.join(map(repr, missing))}.")
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise Mistake(INVALID_PARAMS, f"'params._meta' has a {VERSION_KEY!r} that is not a text.")
    if headers is not None:
        key = NAMED_BY.get(method)
        wanted = {"MCP-Protocol-Version": version, "Mcp-Method": method}
        if key is not None and isinstance(params.get(key), str):
            wanted["Mcp-Name"] = params[key]
        for name, value in wanted.items():
            if header_value(headers.get(name.lower())) != value:
                raise Mistake(HEADER_MISMATCH, f"The header {name!r} does not repeat {value!r} of the body.")
    if version != STATELESS:
        raise unsupported(version)


_ENCODED = ("=?base64?", "?=")


def header_value(value: str | None) -> str | None:
    """The text of a header, which is in base64 where it is not plain ASCII."""
    value = value.strip(" \t") if value is not None else None
    if value is None or not (value.startswith(_ENCODED[0]) and value.endswith(_ENCODED[1])):
        return value
    try:
        return base64.b64decode(value[len(_ENCODED[0]) : -len(_ENCODED[1])], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def as_header(value: str) -> str:
    """The inverse of `header_value`."""
    plain = value.isascii() and value.isprintable() and value == value.strip() and not value.startswith(_ENCODED[0])
    return value if plain else base64.b64encode(value.encode()).decode().join(_ENCODED)


# -- resources and prompts ---------------------------------------------------------------------------------------


async def _from_library(library: Library, method: str, params: Json) -> Json:
    try:
        match method:
            case "resources/list":
                return {"resources": await library.resources()}
            case "resources/templates/list":
                return {"resourceTemplates": library.templates()}
            case "resources/read":
                return {"contents": [await library.read(_text(params, "uri"))]}
            case "prompts/list":
                return {"prompts": library.prompts()}
            case "prompts/get":
                arguments = params.get("arguments") or {}
                if not isinstance(arguments, dict):
                    raise Mistake(INVALID_PARAMS, "'arguments' is an object.")
                return library.prompt(_text(params, "name"), arguments)
    except NotFound as error:
        if method == "resources/read":
            raise Mistake(RESOURCE_NOT_FOUND, error.message, {"uri": params["uri"]}) from None
        raise Mistake(INVALID_PARAMS, error.message) from None
    except PorticoError as error:
        raise Mistake(INVALID_PARAMS, error.message) from None
    raise Mistake(NO_METHOD, f"There is no method {method!r} here.")


def _text(params: Json, key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str) or not value:
        raise Mistake(INVALID_PARAMS, f"'{key}' is missing.")
    return value

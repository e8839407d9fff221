"""The MCP door, `/mcp`: Portico as an MCP server over streamable HTTP, so that agents can control agents.

It only translates and contains no rules. The scopes of a token allow the same actions as in other doors.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol, runtime_checkable

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from portico import mcp as protocol
from portico.doors.mcp.library import HostLibrary
from portico.doors.mcp.tools import HostTools
from portico.kernel.events import Json
from portico.server.app import App
from portico.server.door import Door
from portico.server.route import Route, caller

_SESSION = "Mcp-Session-Id"
_STREAM = "text/event-stream"
_QUIET_SECONDS = 15.0
"""A stream without progress gets a comment this often, so that proxies keep it open."""

_CANCELLED = "mcp.cancelled"
"""Signals another host that a client cancels a call, which may run there."""
_IDENT_CHARS = 200
"""Longest id of a call that another host is asked for: ids are numbers and UUIDs."""

CallKey = tuple[str, str, str]
"""A call that runs: the caller, the session header of its client, and the id of its request."""


@runtime_checkable
class OtherHosts(Protocol):
    """The members of a log with several hosts, as far as this door needs them."""

    async def signal(self, topic: str, data: str) -> None: ...

    def on_signal(self, topic: str, listener: Callable[[str], object]) -> None: ...


class McpDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._running: dict[CallKey, HostTools] = {}
        members = app.host.members
        self._others = members if isinstance(members, OtherHosts) else None
        if self._others is not None:
            self._others.on_signal(_CANCELLED, lambda data: self._cancel_here(msgspec.json.decode(data, type=CallKey)))
        self.routes = [
            Route(
                "/mcp",
                self._answer,
                "read",
                ("POST",),
                "Model Context Protocol: tools that drive this host.",
                limited=True,
                doc={"body": Json, "answer": (Json, list[Json]), "others": {202: None}},
            )
        ]

    async def _answer(self, request: Request) -> Response:
        message: Any = None
        try:
            message = protocol.decode(await request.body())
            protocol.check_version(request.headers.get("mcp-protocol-version"))
        except protocol.Mistake as mistake:
            status = 400 if mistake.code == protocol.UNSUPPORTED_VERSION else 200
            ident = message.get("id") if isinstance(message, dict) else None
            return _json(protocol.failure(ident, mistake.code, str(mistake), mistake.data), status)
        if isinstance(message, list):
            replies = [reply for each in message if (reply := await self._one(request, each)) is not None]
            return _json(replies) if replies else Response(status_code=202)
        tools = HostTools(self.app, caller(request))
        if _is_long(request, message, tools):
            stream = self._stream(request, message, tools)
            return StreamingResponse(stream, media_type=_STREAM, headers={"X-Accel-Buffering": "no"})
        reply = await self._one(request, message, tools)
        if reply is None:
            return Response(status_code=202)
        stateless = protocol.is_stateless(message, request.headers)
        answer = _json(reply, protocol.http_status(reply) if stateless else 200)
        if "protocolVersion" in reply.get("result", {}):
            answer.headers[_SESSION] = secrets.token_hex(16)  # separates the calls of several clients with one token
        return answer

    async def _one(self, request: Request, message: Any, tools: HostTools | None = None) -> Json | None:
        """The reply to one message. While a call runs, another message can cancel it."""
        tools = tools or HostTools(self.app, caller(request))
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            await self._cancel(request, message.get("params"))
            return None
        key = _key(request, message.get("id") if isinstance(message, dict) else None)
        self._running[key] = tools
        try:
            library = HostLibrary(self.app, caller(request))
            return await protocol.Served(tools, library).reply(message, request.headers)
        except protocol.CallCancelled:
            return protocol.failure(message["id"], protocol.CANCELLED, "The call and what it started were cancelled.")
        finally:
            if self._running.get(key) is tools:
                del self._running[key]

    async def _cancel(self, request: Request, params: Any) -> None:
        """Cancel a call. Where several hosts share the log, it may run at another one."""
        ident = params.get("requestId") if isinstance(params, dict) else None
        key = _key(request, ident)
        if ident is None or self._cancel_here(key) or self._others is None:
            return
        if len(key[2]) <= _IDENT_CHARS:
            await self._others.signal(_CANCELLED, msgspec.json.encode(key).decode())

    def _cancel_here(self, key: CallKey) -> bool:
        running = self._running.get(key)
        if running is not None:
            running.cancelled.set()
        return running is not None

    async def _stream(self, request: Request, message: Json, tools: HostTools) -> AsyncIterator[bytes]:
        """Progress, then the reply. A client without handshake cancels its call by closing the stream."""
        events: asyncio.Queue[Json] = asyncio.Queue()
        meta = message["params"].get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is not None:
            tools.report = lambda seconds, activity: events.put_nowait(_progress(token, seconds, activity))
        work = self.app.host.own(self._one(request, message, tools), f"mcp call {message['id']!r}"[:100])
        work.add_done_callback(lambda _: events.put_nowait({}))
        try:
            while True:
                try:
                    event = await asyncio.wait_for(events.get(), _QUIET_SECONDS)
                except TimeoutError:
                    yield b": waiting\n\n"
                    continue
                if not event:
                    break
                yield _event(event)
            if (reply := work.result()) is not None:
                yield _event(reply)
        finally:
            if not work.done() and protocol.is_stateless(message, request.headers):
                tools.cancelled.set()


def _is_long(request: Request, message: Any, tools: HostTools) -> bool:
    """Whether the answer is a stream: the client accepts one, and the call waits for an agent."""
    if not isinstance(message, dict) or message.get("method") != "tools/call" or message.get("id") is None:
        return False
    params = message.get("params")
    return isinstance(params, dict) and tools.waits(params.get("name")) and _STREAM in request.headers.get("accept", "")


def _progress(token: Any, seconds: float, activity: str) -> Json:
    params: Json = {"progressToken": token, "progress": seconds, **({"message": activity} if activity else {})}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def _key(request: Request, ident: Any) -> CallKey:
    return caller(request).id, request.headers.get(_SESSION, ""), repr(ident)


def _json(content: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")


def _event(content: Json) -> bytes:
    return b"event: message\ndata: " + msgspec.json.encode(content) + b"\n\n"

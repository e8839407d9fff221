"""The session's tools for agents that take tools only over MCP: a small HTTP server on loopback, for our children.

The attack: another program or a web page of this machine calls the tools of a session. So there is nothing without the
key of one conversation (256 bits, in a header, never in a URL), the Host header must name loopback (a page that rebinds
its name fails), a request with an Origin is refused (no page has business here), and a key ends with its conversation.
"""

import asyncio
import secrets
import socket

import msgspec
from starlette.types import Receive, Scope, Send

from portico import limits, mcp
from portico.kernel.events import Json
from portico.server.embedded import EmbeddedServer

_HOSTS = ("127.0.0.1", "localhost")


class ToolServer:
    """Listens from the first conversation that needs it until `close`."""

    def __init__(self) -> None:
        self._toolboxes: dict[str, mcp.Toolbox] = {}
        self._server: EmbeddedServer | None = None
        self._starting = asyncio.Lock()
        self._port = 0

    async def listen(self) -> int:
        """Return the port, listening from now on: a sandbox forwards it before the agent starts."""
        await self._start()
        return self._port

    async def offer(self, toolbox: mcp.Toolbox) -> tuple[str, str]:
        """Return the address and the key under which one conversation reaches its tools."""
        await self._start()
        key = secrets.token_urlsafe(32)
        self._toolboxes[key] = toolbox
        return f"http://127.0.0.1:{self._port}/mcp", key

    def withdraw(self, key: str) -> None:
        self._toolboxes.pop(key, None)

    async def close(self) -> None:
        self._toolboxes.clear()
        if self._server is not None:
            await self._server.close()
            self._server = None

    async def _start(self) -> None:
        async with self._starting:
            if self._server is not None:
                return
            # It listens from here on: connections that arrive before the server runs wait in the kernel.
            listening = socket.create_server(("127.0.0.1", 0))
            self._port = listening.getsockname()[1]
            self._server = EmbeddedServer(self._app, [listening], "tool server", timeout_graceful_shutdown=1)

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        toolbox = self._admit(headers)
        if toolbox is None:
            await _reply(send, 401, {"error": "not for you"})
        elif scope["method"] != "POST":
            await _reply(send, 405, {"error": "POST only"})
        elif (body := await _body(receive)) is None:
            await _reply(send, 413, {"error": "too large"})
        else:
            answer = await mcp.answer(body, toolbox, meta=mcp.ALWAYS_LOAD)
            await (_send(send, 202, b"") if answer is None else _send(send, 200, answer))

    def _admit(self, headers: dict[str, str]) -> mcp.Toolbox | None:
        host = headers.get("host", "").rpartition(":")[0]
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if host not in _HOSTS or "origin" in headers or scheme.lower() != "bearer":
            return None
        found = None
        for key, toolbox in self._toolboxes.items():  # every key is compared: the timing reveals nothing
            if secrets.compare_digest(key.encode(), given.encode()):
                found = toolbox
        return found


async def _body(receive: Receive) -> bytes | None:
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limits.BODY_BYTES:
            return None
    return body


async def _reply(send: Send, status: int, content: Json) -> None:
    await _send(send, status, msgspec.json.encode(content))


async def _send(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

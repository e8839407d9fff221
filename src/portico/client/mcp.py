"""Portico as an MCP server on standard input and output: each message is passed to `/mcp` of the running host.

One message per line in both directions. Requests run concurrently, and replies and progress are written as they arrive.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import msgspec

from portico.client.client import Client
from portico.kernel.events import Json
from portico.mcp import NAMED_BY, VERSION_KEY, Mistake, as_header, decode, failure, is_stateless
from portico.tasks import end_tasks, settle

_FAILED = -32000
_END_SECONDS = 5.0
"""How long running requests may take after the client has closed its side."""
_TIMEOUT = httpx.Timeout(120, connect=5)
"""A call waits up to 50 seconds; while it waits, the host sends comments."""

Write = Callable[[bytes], None]


class McpBridge:
    def __init__(self, client: Client, write: Write) -> None:
        """`write` gets each line for the client, without its end."""
        self._client = client
        self._write = write
        self._headers: dict[str, str] = {}
        """Headers that follow from the handshake."""
        self._running: dict[str, tuple[asyncio.Task[None], bool]] = {}
        """Requests by their ids, and whether they are without handshake."""

    async def run(self, read: Callable[[], Awaitable[bytes]]) -> None:
        """Pass on lines until there are no more. `read` returns an empty line at the end."""
        try:
            while line := await read():
                if line.strip():
                    await self._accept(line)
            tasks = [task for task, _ in self._running.values()]
            if tasks:
                await asyncio.wait(tasks, timeout=_END_SECONDS)
        finally:
            await end_tasks(*(task for task, _ in self._running.values()))

    async def _accept(self, line: bytes) -> None:
        try:
            message = decode(line)
        except Mistake as mistake:
            self._write(msgspec.json.encode(failure(None, mistake.code, str(mistake))))
            return
        ident = message.get("id") if isinstance(message, dict) else None
        if ident is None:
            await self._notify(message, line)
            return
        key = repr(ident)
        task = asyncio.get_running_loop().create_task(self._ask(message, line), name=f"mcp {key}"[:100])
        self._running[key] = task, is_stateless(message)
        task.add_done_callback(lambda done: self._running.pop(key, None) if self._runs(key, done) else None)
        if message.get("method") == "initialize":
            await settle(task)  # what follows needs its headers

    def _runs(self, key: str, task: "asyncio.Task[None]") -> bool:
        return key in self._running and self._running[key][0] is task

    async def _notify(self, message: Any, line: bytes) -> None:
        params = message.get("params") if isinstance(message, dict) else None
        if isinstance(params, dict) and message.get("method") == "notifications/cancelled":
            found = self._running.get(repr(params.get("requestId")))
            if found is not None and found[1]:  # without handshake, a call is cancelled by closing its stream
                await end_tasks(found[0])
                return
        try:
            async for reply in self._send(message, line):
                self._write(msgspec.json.encode(reply))
        except httpx.TransportError:
            pass  # a notification has no reply; the next request reports that the host is unreachable

    async def _ask(self, message: Json, line: bytes) -> None:
        try:
            async for reply in self._send(message, line):
                self._write(msgspec.json.encode(reply))
        except httpx.TransportError as error:
            words = (
                f"The host at {self._client.url} does not answer: {str(error) or type(error).__name__}. Is it running?"
            )
            self._write(msgspec.json.encode(failure(message["id"], _FAILED, words)))

    async def _send(self, message: Any, line: bytes) -> AsyncIterator[Json]:
        async with self._client.post_stream("/mcp", line, {**self._headers, **_headers(message)}, _TIMEOUT) as answer:
            if answer.headers.get("content-type", "").startswith("text/event-stream"):
                async for data in answer.aiter_lines():
                    if data.startswith("data: "):
                        yield msgspec.json.decode(data[6:])
                return
            body = await answer.aread()
            if session := answer.headers.get("mcp-session-id"):
                self._headers["Mcp-Session-Id"] = session
        if body:
            yield _reply(body, answer.status_code, message)


def _headers(message: Any) -> dict[str, str]:
    """Headers of one message. A message without handshake is repeated in them."""
    found = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    if is_stateless(message):
        method, params = str(message.get("method")), message["params"]
        found |= {"MCP-Protocol-Version": str(params["_meta"][VERSION_KEY]), "Mcp-Method": as_header(method)}
        if isinstance(name := params.get(NAMED_BY.get(method, "")), str):
            found["Mcp-Name"] = as_header(name)
    return found


def _reply(body: bytes, status: int, message: Any) -> Any:
    """The host's reply. An error of the host that is not MCP's becomes one."""
    try:
        reply = msgspec.json.decode(body)
    except msgspec.DecodeError:
        reply = {"error": body[:200].decode(errors="replace")}
    ident = message.get("id") if isinstance(message, dict) else None
    if status >= 400 and isinstance(reply, dict) and not isinstance(reply.get("error"), dict):
        return failure(ident, _FAILED, str(reply.get("error", f"The host answered with status {status}.")))
    if isinstance(reply, dict) and "error" in reply:
        reply["id"] = ident
    return reply

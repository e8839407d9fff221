"""An MCP server as a child process: one JSON-RPC message a line. Its process is supervised as an agent's is."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import msgspec

from portico import surrogates
from portico.agents.mcp.client import Listener, McpClient, ServerError
from portico.agents.supervisor import LINE_BYTES, Connected, Process
from portico.kernel.errors import AgentDied
from portico.kernel.events import Json
from portico.tasks import end_tasks

_DEATH_SECONDS = 1.0
"""A dying process exits within this time after EOF on its output."""

logger = logging.getLogger("portico.agents.mcp")


class StdioWire:
    def __init__(self, process: Process) -> None:
        self.version = ""
        self._process = process
        self._listener: Listener | None = None
        self._replies: dict[Any, asyncio.Future[Json]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._own(self._read(), f"read {process.name}")

    async def request(self, message: Json, listener: Listener) -> Json:
        self._listener = listener
        reply: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._replies[message["id"]] = reply
        try:
            await self.notify(message)
            return await self._process.alive(reply)
        except AgentDied as error:
            raise ServerError(error.message) from error
        finally:
            self._replies.pop(message["id"], None)

    async def notify(self, message: Json) -> None:
        await self._process.write(msgspec.json.encode(message) + b"\n")

    async def close(self) -> None:
        await end_tasks(*self._tasks)

    def _own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self) -> None:
        reader = self._process.reader
        try:
            while line := await reader.readline():
                self._take(line)
        except ValueError:
            logger.error("%s sent a line of more than %d bytes", self._process.name, LINE_BYTES)
        # Usually the process has died, and its exit reason is more useful: waiting callers receive it immediately.
        await asyncio.wait({self._process.gone}, timeout=_DEATH_SECONDS)
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(ServerError(f"{self._process.name} closed its output{self._process.last_words}"))

    def _take(self, line: bytes) -> None:
        try:
            message = surrogates.decode(line, msgspec.json.decode)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            message = None
        if not isinstance(message, dict):
            logger.debug("%s printed: %r", self._process.name, line[:200])
        elif "method" not in message:
            reply = self._replies.get(message.get("id"))
            if reply is not None and not reply.done():
                reply.set_result(message)
        elif self._listener is not None and message.get("id") is None:
            self._listener.hear(message)
        elif self._listener is not None:
            self._own(self._serve(message, self._listener), f"serve {self._process.name}")

    async def _serve(self, message: Json, listener: Listener) -> None:
        reply = await listener.serve(message)
        try:
            await self.notify(reply)
        except AgentDied as error:
            logger.debug("%s is gone before its answer: %s", self._process.name, error.message)


class StdioConnection(Connected):
    """What the supervisor of a server's process hands out. What the server knew is gone with it, as with every agent
    that starts its servers itself."""

    def __init__(self, process: Process, client: McpClient) -> None:
        super().__init__(process)
        self.client = client

    async def close(self) -> None:
        await self.client.wire.close()

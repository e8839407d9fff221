"""The wire of one ACP process: one JSON object a line, many lines at a time.

Updates are the bulk of what comes, so they do not go through the SDK (a task for each would cost more than all the
rest): they are heard right here, in the order of the wire, and the pieces of one text that came together are one. What
is no JSON object is somebody's print. Reading does not wait for the log: an agent whose pipe is full may give up
(Copilot does after 4,096 events that nobody took).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from portico.agents.supervisor import LINE_BYTES, Process
from portico.events import Json

UPDATE = "session/update"
CHUNK_BYTES = 256 * 1024
"""Taken from the pipe's buffer at once: some hundred updates."""
_PIECES = ("agent_message_chunk", "agent_thought_chunk")

logger = logging.getLogger("portico.agents.acp")
_decode = msgspec.json.Decoder().decode


class Frames:
    """The SDK's transport over our process."""

    def __init__(self, process: Process, hear: Callable[[Json], Awaitable[None]]) -> None:
        """`hear` takes the params of an update."""
        self._process = process
        self._hear = hear
        self._rest: list[bytes] = []
        self._size = 0
        self._messages: deque[Json] = deque()
        self._handed = False
        self.ended = False

    async def send(self, message: dict[str, Any]) -> None:
        await self._process.write(msgspec.json.encode(message) + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """The next message that is no update."""
        if self._handed:
            self._handed = False
            await asyncio.sleep(0)  # a request is begun with before what the agent said after it is heard
        while True:
            while self._messages:
                message = self._messages.popleft()
                if message.get("method") != UPDATE:
                    self._handed = True
                    return message
                await self._hear(self._with_more(message))
            if self.ended:
                return None
            await self._read()

    async def close(self) -> None:
        pass  # the process is ended by its supervisor

    # -- reading -----------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        data = await self._process.reader.read(CHUNK_BYTES)
        if not data:
            self.ended = True  # half a line is nobody's message
            return
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest, self._size = [], 0
            self._messages += [message for line in lines if (message := self._object(line)) is not None]
        self._rest.append(rest)
        self._size += len(rest)
        if self._size > LINE_BYTES:
            logger.error("%s sent a line of more than %d bytes", self._process.name, LINE_BYTES)
            self.ended = True

    def _object(self, line: bytes) -> Json | None:
        try:
            message = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the last one: nested without end
            message = None
        if isinstance(message, dict):
            return message
        if line.strip():
            logger.debug("%s printed: %r", self._process.name, line[:200])
        return None

    def _with_more(self, message: Json) -> Json:
        """The params of an update, with the further pieces of its text that are already here."""
        params = message.get("params")
        piece = _piece(params)
        if piece is None:
            return params if isinstance(params, dict) else {}
        same, texts = piece[0], [piece[1]]
        while self._messages and self._messages[0].get("method") == UPDATE:
            more = _piece(self._messages[0].get("params"))
            if more is None or more[0] != same:
                break
            texts.append(more[1])
            self._messages.popleft()
        if len(texts) == 1:
            return params  # type: ignore[return-value]  # it has a piece
        update = {**params["update"], "content": {"type": "text", "text": "".join(texts)}}  # type: ignore[index]
        return {**params, "update": update}  # type: ignore[dict-item]


def _piece(params: Any) -> tuple[tuple[str, str, Any], str] | None:
    """Where a piece of text belongs, and the text; None for anything else, and for what says more than a text."""
    if not isinstance(params, dict) or not isinstance(update := params.get("update"), dict):
        return None
    kind, content = update.get("sessionUpdate"), update.get("content")
    if kind not in _PIECES or not isinstance(content, dict) or content.get("type") != "text":
        return None
    text = content.get("text")
    if not isinstance(text, str):
        return None
    return (str(params.get("sessionId")), str(kind), update.get("messageId")), text

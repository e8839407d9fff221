"""The wire of one ACP process: one JSON object a line, many lines at a time.

Updates are most of the traffic, so they bypass the SDK (one task per update would cost more than everything else).
They are handled here, in wire order, and text chunks that arrive together are merged. A line that is not a JSON object
is debug output and is skipped. Reading does not wait for the log: an agent whose pipe is full may give up (Copilot does
after 4,096 unread events).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from portico import surrogates
from portico.agents.acp.error_text import OPENINGS
from portico.agents.supervisor import LINE_BYTES, Process
from portico.kernel.events import Json

UPDATE = "session/update"
CHUNK_BYTES = 256 * 1024
"""Maximum size of one read from the pipe's buffer: some hundred updates."""
BREATH_SECONDS = 0.02
"""Pause between two reads during a stream of updates: the updates that arrive in this time become one event and one
commit, and readers see no difference. Each commit costs a millisecond of CPU, far more than reading a line."""
_FLOOD = 8
"""Consecutive reads that found more updates without waiting: then it is a flood, not the first words of an answer."""
_PIECES = ("agent_message_chunk", "agent_thought_chunk")
_KEYS = (b'"text":', b'"text": ')

logger = logging.getLogger("portico.agents.acp")
_decode = msgspec.json.Decoder().decode
_decode_text = msgspec.json.Decoder(str).decode

Place = tuple[str, str, Any]
"""Where a text chunk belongs: the session, the kind of update, the message."""


class TextUpdate:
    """An update that contains only text, merged with the following ones that arrived together with it."""

    def __init__(self, place: Place, params: Json, text: str) -> None:
        self.place = place
        self._params = params
        self.texts = [text]

    @property
    def params(self) -> Json:
        if len(self.texts) == 1 and self._params["update"]["content"]["text"] == self.texts[0]:
            return self._params
        content = {**self._params["update"]["content"], "text": "".join(self.texts)}
        return {**self._params, "update": {**self._params["update"], "content": content}}

    def like(self, text: str) -> "TextUpdate":
        return TextUpdate(self.place, self._params, text)


class Form:
    """The line of one text chunk, used as a template. The next chunks differ only in the text: a line with the same
    prefix and suffix around a JSON string is the same update with that text, and need not be parsed completely."""

    def __init__(self, piece: TextUpdate, head: bytes, tail: bytes) -> None:
        self.piece = piece
        self._head, self._tail = head, tail
        self._around = len(head) + len(tail)

    @classmethod
    def of(cls, line: bytes, piece: TextUpdate) -> "Form | None":
        """None if it is ambiguous which of its strings is the text, or if the encoding differs from ours."""
        text = msgspec.json.encode(piece.texts[0])
        for key in _KEYS:
            if line.count(key[:7]) == 1 and (at := line.find(key + text)) >= 0:
                start = at + len(key)
                return cls(piece, line[:start], line[start + len(text) :])
        return None

    def text(self, line: bytes) -> str | None:
        if len(line) < self._around or not line.startswith(self._head) or not line.endswith(self._tail):
            return None
        try:
            return _decode_text(line[len(self._head) : len(line) - len(self._tail)])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


class Frames:
    """The SDK's transport over our process."""

    def __init__(self, process: Process, hear: Callable[[Json], Awaitable[None]]) -> None:
        """`hear` receives the params of an update."""
        self._process = process
        self._hear = hear
        self._rest: list[bytes] = []
        self._size = 0
        self._messages: deque[Json | TextUpdate] = deque()
        self._form: Form | None = None
        self._handed = False
        self._read_at = 0.0
        self._quick = 0
        """Consecutive reads that returned only updates, without waiting."""
        self.ended = False

    async def send(self, message: dict[str, Any]) -> None:
        await self._process.write(msgspec.json.encode(message) + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message that is not an update."""
        if self._handed:
            self._handed = False
            await asyncio.sleep(0)  # the handler of a request starts before later updates are processed
        while True:
            while self._messages:
                message = self._messages.popleft()
                if isinstance(message, TextUpdate):
                    await self._hear(message.params)
                elif message.get("method") == UPDATE:
                    params = message.get("params")
                    await self._hear(params if isinstance(params, dict) else {})
                else:
                    self._handed = True
                    return message
            if self.ended:
                return None
            await self._breathe()

    async def close(self) -> None:
        pass  # the process is ended by its supervisor

    # -- reading -----------------------------------------------------------------------------------------------

    async def _breathe(self) -> None:
        """Read more. During a flood of updates, pause first so that more of them accumulate in the pipe."""
        now = asyncio.get_running_loop().time
        if self._quick >= _FLOOD and (rest := self._read_at + BREATH_SECONDS - now()) > 0:
            await self._process.let_wait(rest)
        began = now()
        await self._read()
        self._read_at = now()
        only_updates = all(isinstance(each, TextUpdate) or each.get("method") == UPDATE for each in self._messages)
        self._quick = self._quick + 1 if only_updates and self._read_at - began < BREATH_SECONDS else 0

    async def _read(self) -> None:
        data = await self._process.read(CHUNK_BYTES)
        if not data:
            self.ended = True  # an incomplete line is not a message
            return
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest, self._size = [], 0
            for line in lines:
                self._take(line)
        self._rest.append(rest)
        self._size += len(rest)
        if self._size > LINE_BYTES:
            logger.error("%s sent a line of more than %d bytes", self._process.name, LINE_BYTES)
            self.ended = True

    def _take(self, line: bytes) -> None:
        form = self._form
        if form is not None and (text := form.text(line)) is not None:
            self._grow(form.piece, text)
            return
        message = self._object(line)
        if message is None:
            return
        piece = _piece(message.get("params")) if message.get("method") == UPDATE else None
        if piece is None:
            self._messages.append(message)
            return
        self._form = Form.of(line, piece)
        self._grow(piece, piece.texts[0])

    def _grow(self, piece: TextUpdate, text: str) -> None:
        last = self._messages[-1] if self._messages else None
        apart = text.startswith(OPENINGS) or (isinstance(last, TextUpdate) and last.texts[0].startswith(OPENINGS))
        if isinstance(last, TextUpdate) and last.place == piece.place and not apart:
            last.texts.append(text)
        else:
            self._messages.append(piece.like(text))

    def _object(self, line: bytes) -> Json | None:
        try:
            message = surrogates.decode(line, _decode)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the last one: nested without end
            message = None
        if isinstance(message, dict):
            return message
        if line.strip():
            logger.debug("%s printed: %r", self._process.name, line[:200])
        return None


def _piece(params: Any) -> TextUpdate | None:
    """Return a non-empty text chunk; None for any other update."""
    if not isinstance(params, dict) or not isinstance(update := params.get("update"), dict):
        return None
    kind, content = update.get("sessionUpdate"), update.get("content")
    if kind not in _PIECES or not isinstance(content, dict) or content.get("type") != "text":
        return None
    text = content.get("text")
    if not isinstance(text, str) or not text:  # an empty one is about its remarks
        return None
    return TextUpdate((str(params.get("sessionId")), str(kind), update.get("messageId")), params, text)

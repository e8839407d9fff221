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

from portico import surrogates
from portico.agents.supervisor import LINE_BYTES, Process
from portico.events import Json

UPDATE = "session/update"
CHUNK_BYTES = 256 * 1024
"""Taken from the pipe's buffer at once: some hundred updates."""
BREATH_SECONDS = 0.02
"""Between two reads while one update follows the other: what comes meanwhile is one event, and one commit, for readers
who see no difference. Each costs a millisecond of the processor, which is far more than reading a line."""
_FLOOD = 8
"""Reads in a row that found more updates at once: then it is a flood, and not the first words of an answer."""
_PIECES = ("agent_message_chunk", "agent_thought_chunk")
_KEYS = (b'"text":', b'"text": ')

logger = logging.getLogger("portico.agents.acp")
_decode = msgspec.json.Decoder().decode
_decode_text = msgspec.json.Decoder(str).decode

Place = tuple[str, str, Any]
"""Where a piece of text belongs: the session, the kind of update, the message."""


class TextUpdate:
    """An update that is nothing but a text, with the further ones that came together with it."""

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
    """The line of one piece. The next ones differ in the text alone: whatever has the same beginning and the same end
    around a JSON text is the same update with that text, and need not be read as a whole."""

    def __init__(self, piece: TextUpdate, head: bytes, tail: bytes) -> None:
        self.piece = piece
        self._head, self._tail = head, tail
        self._around = len(head) + len(tail)

    @classmethod
    def of(cls, line: bytes, piece: TextUpdate) -> "Form | None":
        """None where it is not clear which of its texts is the one, or it is written in a way that we do not know."""
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
        """`hear` takes the params of an update."""
        self._process = process
        self._hear = hear
        self._rest: list[bytes] = []
        self._size = 0
        self._messages: deque[Json | TextUpdate] = deque()
        self._form: Form | None = None
        self._handed = False
        self._read_at = 0.0
        self._quick = 0
        """Reads in a row that brought nothing but updates, and without a wait."""
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
        """In a flood, lets more of it come. Its pipe is read on meanwhile; nobody waits for an answer."""
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
            self.ended = True  # half a line is nobody's message
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
        if isinstance(last, TextUpdate) and last.place == piece.place:
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
    """None for anything but a text that says something."""
    if not isinstance(params, dict) or not isinstance(update := params.get("update"), dict):
        return None
    kind, content = update.get("sessionUpdate"), update.get("content")
    if kind not in _PIECES or not isinstance(content, dict) or content.get("type") != "text":
        return None
    text = content.get("text")
    if not isinstance(text, str) or not text:  # an empty one is about its remarks
        return None
    return TextUpdate((str(params.get("sessionId")), str(kind), update.get("messageId")), params, text)

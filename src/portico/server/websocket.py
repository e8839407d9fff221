"""The WebSocket protocol of uvicorn, with a fast path for the most frequent input: whole text frames.

The library parses every frame in Python, and ASGI passes each one through a queue. A door that calls
`line(scope).listen` receives all frames of one read in a single call, and can write many messages in one batch.
Fragments, control frames and invalid frames still go through the library, so they are validated in one place.

Thousands of idle clients may be connected, so a connection uses little memory: no nested queues, and the handshake is
discarded when it is complete.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request
from websockets.protocol import State

from portico.server.protocol import LightEvent

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform without the compiled module
    from websockets.utils import apply_mask

_LINE = "portico.line"
_TEXT, _TEXT_START, _BYTES_START, _LAST_PART = 0x81, 0x01, 0x02, 0x80
_MASKED = 0x80
_LARGE = 16 * 1024
"""Messages of at least this size are written without a copy: all recipients share the same bytes."""
_SHORT = [bytes((_TEXT, size)) for size in range(126)]

Listener = Callable[[bytes, bool], None]
"""Called with each message and whether it is text (valid UTF-8 then)."""


class Mailbox:
    """The subset of `asyncio.Queue` that a server and a single reading task need, in a tenth of its size."""

    __slots__ = ("_messages", "_waiter")

    def __init__(self) -> None:
        self._messages: list[Any] = []
        self._waiter: asyncio.Future[None] | None = None

    def put_nowait(self, message: Any) -> None:
        self._messages.append(message)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self) -> Any:
        while not self._messages:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._messages.pop(0)

    def empty(self) -> bool:
        return not self._messages

    def take_all(self) -> list[Any]:
        messages, self._messages = self._messages, []
        return messages


class WsProtocol(WebSocketsSansIOProtocol):
    """One connection. `on_room` is called when the write buffer was full and accepts messages again."""

    __slots__ = ("_careful", "_fragments", "_listener", "_needed", "_rest", "on_room")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.queue = Mailbox()  # type: ignore[assignment]
        self.writable = LightEvent(True)  # type: ignore[assignment]
        self.on_room: Callable[[], None] | None = None
        self._listener: Listener | None = None
        self._rest: bytearray | None = None
        """The first part of a frame that is not complete yet."""
        self._needed = 0
        self._fragments = False
        self._careful = False
        """Permanently set when a client sent data too early, violated the protocol or started to close. The library
        parses everything from then on."""

    # -- what comes in -----------------------------------------------------------------------------------------

    def listen(self, listener: Listener) -> None:
        """Deliver all further messages to the listener. `over` returns when the connection is closed."""
        self._listener = listener
        messages = self.queue.take_all()  # type: ignore[attr-defined]
        for message in messages:
            if message["type"] != "websocket.receive":
                self.queue.put_nowait(message)
            elif (text := message.get("text")) is not None:
                listener(text.encode(), True)
            else:
                listener(message.get("bytes") or b"", False)
        self._forget_handshake()
        self.resume()

    def _forget_handshake(self) -> None:
        """Discard the headers (2 KB): the client is already authenticated."""
        del self.request, self.response
        self.scope["headers"].clear()  # type: ignore[attr-defined]

    async def over(self) -> None:
        """Return when the connection is closed."""
        while (await self.queue.get())["type"] != "websocket.disconnect":
            pass  # messages were delivered to the listener

    def pause(self) -> None:
        """Stop reading. Data that was already read is still delivered."""
        if not self.read_paused and not self.transport.is_closing():
            self.read_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.read_paused and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self._listener is None or self._careful:
            self._careful = self._careful or self.handshake_initiated
            super().data_received(data)
            return
        if self._rest is not None:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data, self._rest = bytes(self._rest), None
        self._take(data, self._listener)

    def _take(self, data: bytes, listener: Listener) -> None:
        """Process every whole frame in the data, in order."""
        at, end, largest = 0, len(data), self.config.ws_max_size
        while end - at >= 2:
            first, size, start = data[at], data[at + 1], at + 6
            if size >= _MASKED + 126:
                start += 2 if size == _MASKED + 126 else 8
                if start > end:
                    break
                size = _MASKED + int.from_bytes(data[at + 2 : start - 4])
            stop = start + size - _MASKED
            if size < _MASKED or size - _MASKED > largest or self.conn.state is not State.OPEN:
                self._careful = True
                super().data_received(data[at:])
                return
            if stop > end:
                self._keep(data[at:], stop - at)
                return
            if first != _TEXT or self._fragments:
                self._fragments = first in (_TEXT_START, _BYTES_START) or (self._fragments and first != _LAST_PART)
                super().data_received(data[at:stop])
            else:
                message = apply_mask(data[start:stop], data[start - 4 : start])
                if not _is_text(message):
                    super().data_received(data[at:stop])
                    return
                listener(message, True)
            at = stop
        if at < end:
            self._keep(data[at:], 0)

    def _keep(self, rest: bytes, needed: int) -> None:
        self._rest, self._needed = bytearray(rest), needed

    def send_receive_event_to_app(self) -> None:
        """Deliver a message that the library has assembled."""
        if self._listener is None or self.close_sent:
            super().send_receive_event_to_app()
            return
        data, self.frames = b"".join(self.frames), []
        is_text = self.curr_msg_data_type == "text"
        if is_text and not _is_text(data):
            self.conn.send_close(1007)
            self.handle_parser_exception()
        else:
            self._listener(data, is_text)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[_LINE] = self

    # -- what goes out -----------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Whether the client is too slow and the write buffer is full: wait for `on_room`."""
        return not self.writable.is_set()

    def write(self, messages: Iterable[bytes]) -> None:
        """Write text messages with as few writes as possible. Does nothing if the client has disconnected."""
        if self.conn.state is not State.OPEN or self.close_sent or self.transport.is_closing():
            return
        small: list[bytes] = []
        for each in messages:
            small += (_head(len(each)), each) if len(each) < _LARGE else (_head(len(each)),)
            if len(each) >= _LARGE:
                self.transport.write(b"".join(small))
                self.transport.write(each)
                small = []
        if small:
            self.transport.write(b"".join(small))

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True  # a response was sent; otherwise uvicorn logs an error for each refusal

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.on_room is not None:
            self.on_room()


def line(scope: Scope) -> WsProtocol:
    found = scope["extensions"][_LINE]
    assert isinstance(found, WsProtocol)
    return found


def _head(size: int) -> bytes:
    if size < 126:
        return _SHORT[size]
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2)
    return b"\x81\x7f" + size.to_bytes(8)


def _is_text(data: bytes) -> bool:
    try:
        return data.isascii() or data.decode() is not None
    except UnicodeDecodeError:
        return False

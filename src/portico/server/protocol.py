"""The HTTP protocol of uvicorn, with limits on incomplete requests.

The attacks: a head that never ends, which the parser would buffer without a limit, because the gate sees a request only
when its head is complete; requests that arrive one byte at a time, or never, so that a few thousand of them occupy all
connections; and a response that is never read. A request that arrives in one piece, the usual case, needs no timer.
"""

import asyncio
from typing import Any, Literal

import msgspec
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from portico import limits
from portico.kernel.cache import Cache

Stage = Literal["silent", "head", "body"]
"""What the connection is waiting for: the first byte, the rest of the head, or the rest of the body."""

_REFUSAL = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: application/json\r\n"

_LINES = Cache[tuple[bytes, bytes], bytes](1_000)
"""Encoded header lines. Most headers are the same as in the previous response and need no second check."""
_FRAMING = (b"transfer-encoding", b"connection")
_CHANGING = (b"content-length", b"x-request-id", b"etag")


class LightEvent:
    """The subset of `asyncio.Event` that a connection needs, without its queue of 760 bytes: most of the thousands of
    connections never wait, or in a single task."""

    __slots__ = ("_set", "_waiters")

    def __init__(self, is_set: bool = False) -> None:
        self._set = is_set
        self._waiters: list[asyncio.Future[None]] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        self._set = False

    async def wait(self) -> None:
        while not self._set:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                self._waiters.remove(waiter)


class QuickCycle(RequestResponseCycle):
    """Writes the head and body of a response of known length in one piece. uvicorn writes all others."""

    _held: bytes = b""
    """A head held back until its body is sent: two writes would be two packets and two system calls."""

    async def send(self, message: Any) -> None:
        if not self.response_started and not self.flow.write_paused and not self.disconnected:
            self._held = self._head(message) or b""
            if self._held:
                return
        elif self.chunked_encoding and type(body := message.get("body")) is memoryview:
            await self._send_piece(body)
            return
        held, self._held = self._held, b""
        body = message.get("body", b"")
        whole = len(body) == self.expected_content_length > 0 and self.scope["method"] != "HEAD"
        if held and whole and not message.get("more_body"):
            self.transport.writelines((held, message["body"]))  # no copy: many may share the body
            self._complete()
            return
        if held:
            self.transport.write(held)
        await super().send(message)

    async def _send_piece(self, body: memoryview) -> None:
        """Write a piece of a stream by reference, with more to follow. uvicorn would copy it for each reader."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if not self.disconnected:
            self.transport.writelines((b"%x\r\n" % len(body), body, b"\r\n"))

    def _complete(self) -> None:
        """Finish the response, like uvicorn after the last piece."""
        self.expected_content_length, self.response_complete = 0, True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def _head(self, message: Any) -> bytes | None:
        if message["type"] != "http.response.start" or self.access_log:
            return None
        status, length = message["status"], None
        lines = [STATUS_LINE[status]]
        for pair in (*self.default_headers, *message.get("headers", ())):
            line = (_LINES.get(pair) or _line(pair)) if type(pair) is tuple else None
            if line is None:
                return None
            lines.append(line)
            if pair[0] == b"content-length":
                length = int(pair[1])
        if length is None and status not in (204, 304):
            return None
        if length is not None:
            self.expected_content_length, self.chunked_encoding = length, False
        self.response_started, self.waiting_for_100_continue = True, False
        lines.append(b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n")
        return b"".join(lines)


def _line(pair: tuple[bytes, bytes]) -> bytes | None:
    """Return the encoded header line; None if uvicorn must handle the header, to frame or refuse the response."""
    name, value = pair
    if name in _FRAMING or name != name.lower() or HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
        return None
    line = b"%b: %b\r\n" % pair
    if name not in _CHANGING:
        _LINES[pair] = line
    return line


class _Pipeline(list[Any]):
    """Pipelined requests. There are hardly ever any, so a list replaces the deque of 760 bytes."""

    __slots__ = ()

    def appendleft(self, each: Any) -> None:
        self.insert(0, each)


class BoundedHttp(HttpToolsProtocol):
    # With more than 30 attributes in its dictionary an instance takes 1.6 KB instead of 0.3.
    __slots__ = ("_deadline", "_head", "_stage", "_stalled", "_timed")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head: int | None = None
        """Bytes of the head that is being received; None between heads."""
        self._stage: Stage | None = None
        """None between requests: then uvicorn's limit for idle connections applies."""
        self._timed: Stage | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self.flow._is_writable_event = LightEvent(True)  # type: ignore[assignment]
        self.pipeline = _Pipeline()  # type: ignore[assignment]
        # Buffer at most one piece that the system does not accept. With TLS, 0 would block all further writes.
        secure = transport.get_extra_info("sslcontext") is not None
        transport.set_write_buffer_limits(high=limits.PIECE_BYTES if secure else 0)
        self._stage = "silent"
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stage = None
        self._watch()
        self._await_progress(False)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head += len(data)
            if (
                self._head > 2 * limits.HEADER_BYTES
            ):  # the gate enforces the limit itself; this is for heads that never end
                self.send_400_response("The headers are too large.")
                return
        super().data_received(data)
        if self._stage is not self._timed:
            self._watch()

    def on_message_begin(self) -> None:
        self._head = 0
        self._stage = "head"
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        self._stage = "body"
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stage = None
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.__class__ = QuickCycle  # uvicorn cannot be configured with another class or event
        cycle.message_event = LightEvent(cycle.message_event.is_set())  # type: ignore[assignment]
        super()._start_asgi_task(cycle, app)

    # -- slow requests -----------------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._timed = self._stage
        if self._stage is not None:
            seconds = limits.REQUEST_BODY_SECONDS if self._stage == "body" else limits.REQUEST_HEAD_SECONDS
            self._deadline = self.loop.call_later(seconds, self._cut_off, self._stage, seconds)

    def _cut_off(self, stage: Stage, seconds: float) -> None:
        """Close the connection. Sends the reason first, unless no request was started or the response has started."""
        self._deadline = None
        if self.transport.is_closing():
            return
        answering = stage == "body" and self.cycle.response_started
        if stage != "silent" and not answering:
            words = f"The request's {stage} did not come within {seconds:g} seconds. Send it again, in one go."
            body = msgspec.json.encode({"error": words, "code": "bad_request", "field": stage})
            self.transport.write(_REFUSAL + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        self.transport.close()

    # -- stalled readers ---------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_progress(True)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._await_progress(False)

    def _await_progress(self, waits: bool) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
        left = self.transport.get_write_buffer_size() if waits else 0
        self._stalled = self.loop.call_later(limits.SEND_SECONDS, self._progress, left) if waits else None

    def _progress(self, before: int) -> None:
        """Abort a connection without progress. A normal close would wait for the client forever and keep its memory."""
        if self.transport.get_write_buffer_size() < before:
            self._await_progress(True)
        else:
            self.transport.abort()

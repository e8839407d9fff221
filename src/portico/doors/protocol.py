"""HTTP as uvicorn speaks it, with bounds on what comes before a request is one.

The attacks: a head that never ends, which the parser would collect without a limit, since the gate sees a request only
when its head is complete; and a request that comes a byte at a time, or not at all, so that a few thousand of them hold
all connections. A request that comes in one piece, as nearly all do, costs no timer.
"""

import asyncio
from typing import Literal

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from portico import limits

Stage = Literal["silent", "head", "body"]
"""What the connection waits for: the first byte, the rest of a head, the rest of a body."""

_REFUSAL = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: application/json\r\n"


class BoundedHttp(HttpToolsProtocol):
    _head: int | None = None
    """Bytes of the head that is being received; None between heads."""
    _stage: Stage | None = None
    """None between requests: then uvicorn's own limit for idle connections holds."""
    _timed: Stage | None = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=limits.PIECE_BYTES)
        self._stage = "silent"
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stage = None
        self._watch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head += len(data)
            if self._head > 2 * limits.HEADER_BYTES:  # the gate refuses from the limit on; this is for who never ends
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

    # -- who is too slow ---------------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._timed = self._stage
        if self._stage is not None:
            seconds = limits.REQUEST_BODY_SECONDS if self._stage == "body" else limits.REQUEST_HEAD_SECONDS
            self._deadline = self.loop.call_later(seconds, self._cut_off, self._stage, seconds)

    def _cut_off(self, stage: Stage, seconds: float) -> None:
        """Says why, unless nothing was asked or the answer has begun already."""
        self._deadline = None
        if self.transport.is_closing():
            return
        answering = stage == "body" and self.cycle.response_started
        if stage != "silent" and not answering:
            words = f"The request's {stage} did not come within {seconds:g} seconds. Send it again, in one go."
            body = msgspec.json.encode({"error": words, "code": "bad_request", "field": stage})
            self.transport.write(_REFUSAL + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        self.transport.close()

"""HTTP as uvicorn speaks it, with a bound on what comes before a request is one.

The attack: a head that never ends. The parser collects it without a limit, and the gate sees a request only when its
head is complete.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from portico import limits


class BoundedHttp(HttpToolsProtocol):
    _head: int | None = None
    """Bytes of the head that is being received; None between heads."""

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head += len(data)
            if self._head > 2 * limits.HEADER_BYTES:  # the gate refuses from the limit on; this is for who never ends
                self.send_400_response("The headers are too large.")
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        super().on_headers_complete()

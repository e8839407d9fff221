"""A WebSocket client that costs next to nothing, so that a flood measures the server.

Blocking, over a plain socket. Frames are made before the clock starts, all with the same mask; what comes back is only
counted, by the length in its header.
"""

import base64
import contextlib
import json
import os
import socket
import struct
import threading
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

_MASK = b"\x00\x00\x00\x00"
"""A mask of zeros is as valid as any other, and spares us the exclusive-or."""
_READ = 1 << 18
_PING, _PONG = 0x89, b"\x8a"
_PATIENCE = 120.0
"""Seconds without an answer, or for all that is sent at once: a row that never comes ends with an error, not never."""


class Flood:
    """One connection: `ask` for the set-up, `send` and `take` for the measured part."""

    def __init__(self, url: str, receives: int | None = None) -> None:
        """`receives`: the bytes that its end of the connection takes without being read."""
        parts = urlsplit(url)
        self._socket = socket.socket()
        if receives is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        self._socket.settimeout(_PATIENCE)
        self._socket.connect((parts.hostname, parts.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
        head += f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        self._socket.sendall(head.encode())
        self._buffer = bytearray()
        self._at = 0
        self._ident = 0
        while b"\r\n\r\n" not in self._buffer:
            self._fill()
        answer, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        assert b" 101 " in answer, answer
        self._buffer = bytearray(rest)

    def hello(self, name: str, *subscriptions: str) -> "Flood":
        version = {"channel": "ahp-root://", "protocolVersions": ["0.9.0"]}
        self.ask("initialize", clientId=name, initialSubscriptions=subscriptions, **version)
        return self

    def ask(self, method: str, **params: Any) -> Any:
        self._ident += 1
        message = {"jsonrpc": "2.0", "id": self._ident, "method": method, "params": params}
        self._socket.sendall(frame(json.dumps(message)))
        while True:
            answer = json.loads(self.take())
            if answer.get("id") == self._ident:
                assert "error" not in answer, answer
                return answer["result"]

    def send(self, frames: Iterable[bytes]) -> threading.Thread:
        """In a thread, while the caller takes what comes back."""
        data = b"".join(frames)
        thread = threading.Thread(target=self._socket.sendall, args=(data,))
        thread.start()
        return thread

    def take(self) -> bytes:
        """The next frame's payload."""
        size, start = self._next()
        payload = bytes(self._buffer[start : start + size])
        self._at = start + size
        return payload

    def skip(self, count: int) -> None:
        """Takes that many frames without looking at them."""
        for _ in range(count):
            size, start = self._next()
            self._at = start + size

    def until(self, words: bytes) -> None:
        """Takes frames until one has these words in it."""
        while words not in self.take():
            pass

    def tend(self) -> None:
        """Answers pings that have come meanwhile, or the server takes us for dead."""
        self._socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.take()
        self._socket.settimeout(_PATIENCE)

    def _next(self) -> tuple[int, int]:
        """Size and place of the next payload, which is in the buffer then."""
        while True:
            have = len(self._buffer) - self._at
            if have >= 2:
                size, start = self._buffer[self._at + 1], self._at + 2
                if size == 126 and have >= 4:
                    size, start = struct.unpack_from("!H", self._buffer, start)[0], start + 2
                elif size == 127 and have >= 10:
                    size, start = struct.unpack_from("!Q", self._buffer, start)[0], start + 8
                elif size > 125:
                    size = 1 << 62
                if len(self._buffer) - start >= size:
                    if self._buffer[self._at] != _PING:
                        return size, start
                    self._socket.sendall(_PONG + bytes((0x80 | size,)) + _MASK + self._buffer[start : start + size])
                    self._at = start + size
                    continue
            self._fill()

    def _fill(self) -> None:
        if self._at > _READ:
            del self._buffer[: self._at]
            self._at = 0
        data = self._socket.recv(_READ)
        if not data:
            raise ConnectionError("The server has closed the connection.")
        self._buffer += data

    def close(self) -> None:
        self._socket.close()


def frame(text: str) -> bytes:
    data = text.encode()
    if len(data) < 126:
        head = struct.pack("!BB", 0x81, 0x80 | len(data))
    elif len(data) < 1 << 16:
        head = struct.pack("!BBH", 0x81, 0x80 | 126, len(data))
    else:
        head = struct.pack("!BBQ", 0x81, 0x80 | 127, len(data))
    return head + _MASK + data

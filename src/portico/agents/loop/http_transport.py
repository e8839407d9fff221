"""HTTP/1.1 to model endpoints for `httpx`, with a parser in C.

A model streams its answer in thousands of small pieces, and many sessions do so at once. The usual transport of httpx
takes 70 us for each piece. Here, everything that has arrived since the last read is one piece. Where the environment
names a proxy for an address, the usual transport is used.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.request import getproxies, proxy_bypass

import httptools
import httpx

from portico.agents.certificates import certificates
from portico.sandbox.trace import NOT_CONNECTED, SENDS

IDLE_MAX = 8
"""Connections that are kept for later requests."""
IDLE_SECONDS = 60.0
BUFFER_MAX = 1024 * 1024
"""Bytes that wait to be read: above, the connection is paused."""


def needs_proxy(url: httpx.URL) -> bool:
    proxies = getproxies()
    return any(name in proxies for name in (url.scheme, "all")) and not proxy_bypass(url.host)


class Address(NamedTuple):
    scheme: str
    host: str
    port: int


class FastTransport(httpx.AsyncBaseTransport):
    def __init__(self, verify: ssl.SSLContext | None = None) -> None:
        """`verify`: checks the certificates of servers; by default those of the system count."""
        self._verify = verify
        self._idle: dict[Address, list[_Connection]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        address = Address(url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80))
        body = await request.aread()
        times = request.extensions.get("timeout", {})
        while True:
            known = self._reuse(address)
            try:
                connection = known or await self._connect(address, times.get("connect"))
            except httpx.TransportError as failed:
                await _trace(request, NOT_CONNECTED, exception=failed)
                raise
            try:
                await _trace(request, SENDS)
                await connection.send(_head(request, len(body)), body, times.get("read"))
                break
            except httpx.ReadError:
                if known is None:
                    raise
                # The server has closed a connection that was idle: it has not seen the request.
            except BaseException:  # also a cancel: an unfinished request must not be reused
                connection.close()
                raise
        return httpx.Response(
            connection.status,
            headers=connection.headers,
            stream=_Body(self, address, connection),
            extensions={"http_version": b"HTTP/1.1"},
        )

    def _reuse(self, address: Address) -> "_Connection | None":
        idle = self._idle.get(address, [])
        now = asyncio.get_running_loop().time()
        while idle:
            connection = idle.pop()
            if connection.is_open and now - connection.used_at < IDLE_SECONDS:
                return connection
            connection.close()
        return None

    def keep(self, address: Address, connection: "_Connection") -> None:
        idle = self._idle.setdefault(address, [])
        if connection.reusable and len(idle) < IDLE_MAX:
            connection.used_at = asyncio.get_running_loop().time()
            idle.append(connection)
        else:
            connection.close()

    async def _connect(self, address: Address, seconds: float | None) -> "_Connection":
        secure = (self._verify or certificates()) if address.scheme == "https" else None
        try:
            async with asyncio.timeout(seconds):
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection,
                    address.host,
                    address.port,
                    ssl=secure,
                    server_hostname=address.host if secure else None,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout("the connection took too long") from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        return connection

    async def aclose(self) -> None:
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()


async def _trace(request: httpx.Request, event: str, **info: object) -> None:
    if (trace := request.extensions.get("trace")) is not None:
        await trace(event, info)


def _head(request: httpx.Request, size: int) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [
        b"%s: %s" % (name, value)
        for name, value in request.headers.raw
        if name.lower() not in (b"content-length", b"transfer-encoding")
    ]
    if size or request.method not in ("GET", "HEAD"):
        lines.append(b"Content-Length: %d" % size)
    return b"\r\n".join([*lines, b"", b""])


class _Body(httpx.AsyncByteStream):
    def __init__(self, transport: FastTransport, address: Address, connection: "_Connection") -> None:
        self._transport = transport
        self._address = address
        self._connection = connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self._connection.read():
            yield data

    async def aclose(self) -> None:
        self._transport.keep(self._address, self._connection)


class _Connection(asyncio.Protocol):
    """One connection. It carries one request at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.is_open = False
        self.used_at = 0.0
        self._begin(None)

    def _begin(self, seconds: float | None) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._seconds = seconds
        self._heard_at = self._loop.time()
        self._pieces: list[bytes] = []
        self._size = 0
        self._paused = False
        self._has_head = False
        self._complete = False
        self._keeps = False
        """The server leaves the connection open."""
        self._problem: httpx.TransportError | None = None
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []

    @property
    def reusable(self) -> bool:
        return self.is_open and self._complete and self._problem is None and self._keeps

    async def send(self, head: bytes, body: bytes, seconds: float | None) -> None:
        """Returns when the head of the response is here."""
        self._begin(seconds)
        if not self.is_open:
            raise httpx.ReadError("the server closed the connection")
        self._transport.write(head + body)
        self._watch()
        while not self._has_head:
            await self._wait()

    async def read(self) -> bytes:
        """Everything that has arrived; empty at the end."""
        while not self._pieces:
            if self._complete:
                return b""
            await self._wait()
        data, self._pieces, self._size = b"".join(self._pieces), [], 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def _wait(self) -> None:
        if self._problem is not None:
            raise self._problem
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _watch(self) -> None:
        """One timer for a whole answer: it looks when the last byte came."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._seconds, self._check) if self._seconds is not None else None

    def _check(self) -> None:
        self._timer = None
        if self._complete or self._seconds is None:
            return
        left = self._heard_at + self._seconds - self._loop.time()
        if left > 0 or self._paused:
            self._timer = self._loop.call_later(max(left, 0.1), self._check)
        else:
            self._fail(httpx.ReadTimeout(f"no byte for {self._seconds:g} seconds"))

    def _fail(self, problem: httpx.TransportError) -> None:
        self._problem = self._problem or problem
        self.close()
        self._wake()

    def close(self) -> None:
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    # -- called by the event loop ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        if self._complete:  # nothing was asked for
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(httpx.RemoteProtocolError(f"this is not HTTP: {error}"))
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if not self._complete:
            if self._ends_with_connection() and error is None:
                self._complete = True
            elif self._has_head:
                self._problem = self._problem or httpx.RemoteProtocolError("the server closed the connection early")
            else:
                self._problem = self._problem or httpx.ReadError(str(error or "the server closed the connection"))
        self._wake()

    def _ends_with_connection(self) -> bool:
        names = {name.lower() for name, _ in self.headers}
        return self._has_head and not names & {b"content-length", b"transfer-encoding"}

    # -- called by the parser ----------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = self.status >= 200
        self._keeps = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > BUFFER_MAX and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        self._complete = self._has_head

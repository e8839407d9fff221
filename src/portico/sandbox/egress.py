"""The listener at the host: the only way out of a sandbox. One unix socket per sandbox, HTTP CONNECT and absolute-form
HTTP requests; TLS is not decrypted.

The attack: a program in a sandbox connects where the policy does not allow it, to a machine that only this host can
reach, or makes the host run out of memory. So a target is judged before its name is looked up (a lookup alone can carry
data out), every address of the name must be public, the connection uses the address that was judged, bytes are passed
on without being stored, and the number of connections is limited.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from portico.addresses import Lookup, NoAddress, PrivateAddress, is_public, resolve, system_lookup
from portico.kernel.errors import PorticoError
from portico.sandbox.network import Destination, EgressGate, Network, Verdict
from portico.sandbox.proxy_request import (
    HEAD_BYTES,
    Body,
    Malformed,
    ProxyRequest,
    close_response,
    is_interim,
    read_request,
    refusal,
)
from portico.tasks import end_tasks

CONNECTIONS = 512
"""Concurrent connections of one sandbox: a package manager opens 50; each has up to 128 KB of buffers."""
CONNECT_SECONDS = 30.0
"""To resolve a name and to connect."""
HEAD_SECONDS = 30.0
"""To receive the head of a request from the sandbox."""
_BUFFER = 64 * 1024
_RESOLVERS = 8
"""Separate threads: lookups that hang must not block those of the host."""

_threads: ThreadPoolExecutor | None = None


def _system() -> Lookup:
    """The resolver of the system, with threads that all sandboxes share."""
    global _threads
    if _threads is None:
        _threads = ThreadPoolExecutor(_RESOLVERS, "egress")
    return system_lookup(_threads)


class ConnectionDenied(Exception):
    def __init__(self, status: str, why: str, by: str = "policy") -> None:
        super().__init__(why)
        self.status = status
        self.by = by


class Approach:
    """An attempt to connect to a target that was judged. It is recorded once: as connected, or as failed."""

    def __init__(self, gate: EgressGate, target: Destination, by: str, addresses: Sequence[str] = ()) -> None:
        """`by`: who allowed it. `addresses`: those that were judged."""
        self.addresses = addresses
        self._gate = gate
        self._target = target
        self._by = by
        self._recorded = False

    def connected(self) -> bool:
        """Return whether this is the first outcome."""
        first, self._recorded = not self._recorded, True
        if first:
            self._gate.opened(self._target, self._by)
        return first

    def failed(self) -> None:
        if not self._recorded:
            self._recorded = True
            self._gate.refused(self._target, "network")


class Egress:
    def __init__(self, socket: Path, network: Network, gate: EgressGate, lookup: Lookup | None = None) -> None:
        """`lookup`: resolves names; by default the resolver of the system."""
        self.network = network
        """May be replaced while it runs: a grant adds a host."""
        self.gate = gate
        self._socket = socket
        self._lookup = lookup or _system()
        self._server: asyncio.Server | None = None
        self._clients: set[_Client] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking: dict[Destination, asyncio.Task[Verdict]] = {}

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Client(self), str(self._socket), backlog=CONNECTIONS)
        self._socket.chmod(0o600)

    async def close(self) -> None:
        """Stop listening and end all connections."""
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.abort()
        await end_tasks(*self._tasks, *self._asking.values())
        self._socket.unlink(missing_ok=True)

    @property
    def open_connections(self) -> int:
        return len(self._clients)

    # -- connections ---------------------------------------------------------------------------------------------

    def admit(self, client: "_Client") -> bool:
        self._clients.add(client)
        return len(self._clients) <= CONNECTIONS

    def leave(self, client: "_Client") -> None:
        self._clients.discard(client)

    def own(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"egress {self._socket.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def connect(self, target: Destination, server: "_Server") -> None:
        """Judge the target and connect to the address that was judged. Raises ConnectionDenied."""
        async with self.approached(target) as approach:
            await self._connect(target, approach, server)

    @asynccontextmanager
    async def approached(self, target: Destination) -> AsyncIterator[Approach]:
        """Judge the target. The body connects to one of the addresses and calls `connected`, or raises; both are
        recorded. Also for requests that the host makes for a session. Raises ConnectionDenied."""
        verdict = await self.judge(target)
        if not verdict.allowed:
            self.gate.refused(target, verdict.by)
            raise ConnectionDenied("403", verdict.why or why(target, verdict.by), verdict.by)
        approach: Approach | None = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                approach = Approach(self.gate, target, verdict.by, await self._addresses(target))
                yield approach
        except TimeoutError:
            (approach or Approach(self.gate, target, verdict.by)).failed()
            raise ConnectionDenied("504", f"{target} did not answer within {CONNECT_SECONDS:g} seconds.", "") from None

    async def _connect(self, target: Destination, approach: Approach, server: "_Server") -> None:
        error: OSError | None = None
        for address in approach.addresses:
            try:
                await asyncio.get_running_loop().create_connection(lambda: server, address, target.port)
                approach.connected()
                return
            except OSError as failed:
                error = failed
        approach.failed()
        raise ConnectionDenied("502", f"{target} cannot be reached: {error or 'it has no address'}.", "")

    async def _addresses(self, target: Destination) -> list[str]:
        if self.network.forwards(target) or target.is_address:
            return [target.host]
        try:
            return await resolve(target.host, target.port, self.network.private, self._lookup)
        except PrivateAddress as refused:
            self.gate.refused(target, "policy")
            raise ConnectionDenied("403", f"{refused} {_NAME_IT}") from None
        except NoAddress as failed:
            self.gate.refused(target, "network")
            raise ConnectionDenied("502", str(failed), "") from failed

    async def judge(self, target: Destination) -> Verdict:
        """Return whether the target may be reached. Waits for a person if the policy asks."""
        network = self.network
        if network.forwards(target):
            return Verdict(True, "policy")
        if target.is_address and not is_public(target.host) and target.host not in network.private:
            return Verdict(False, "policy", f"{target.host} is a private address of this machine. {_NAME_IT}")
        if network.covers(target):
            return Verdict(True, "policy")
        if not network.asks:
            return Verdict(False, "policy", f"{why(target, 'policy')} It is 'strict' and reaches only its model.")
        return await self._ask(target)

    async def _ask(self, target: Destination) -> Verdict:
        """Ask once for all connections to the same target."""
        asking = self._asking.get(target)
        if asking is None:
            asking = asyncio.get_running_loop().create_task(self._decide(target), name=f"ask about {target}")
            self._asking[target] = asking
            asking.add_done_callback(lambda _: self._asking.pop(target, None))
        return await asyncio.shield(asking)

    async def _decide(self, target: Destination) -> Verdict:
        try:
            return await self.gate.decide(target)
        except PorticoError as error:
            return Verdict(False, "host", f"{why(target, 'host')} Nobody could be asked: {error.message}")


_NAME_IT = "ConnectionDenied by Portico's sandbox. The user can name it in sandbox.allow_private."


def why(target: Destination, by: str) -> str:
    return f"Portico's sandbox refused the connection to {target} ({by})."


def _end_of_head(head: bytearray, data: bytes) -> int:
    """Add data to a head; return where the head ends, or -1. Only the new bytes are searched: a program that sends one
    byte at a time must not keep the host busy."""
    before = len(head)
    head += data
    return head.find(b"\r\n\r\n", max(0, before - 3))


class _End(asyncio.Protocol):
    """One end of a connection. It stops reading while the other end cannot write."""

    transport: asyncio.Transport
    other: "_End | None" = None
    ended = False
    """It sends no more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are no subclasses
        self.transport.set_write_buffer_limits(_BUFFER)

    @property
    def closed(self) -> bool:
        """Transports of uvloop raise where those of asyncio ignore a call after their end."""
        return self.transport.is_closing()

    def send(self, data: bytes) -> None:
        if not self.closed:
            self.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and not self.other.closed:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and not self.other.closed:
            self.other.transport.resume_reading()

    def eof_received(self) -> bool:
        """Pass the end on and keep the other direction open; False closes this end, and with it the other."""
        self.ended = True
        if self.other is None or self.other.closed or self.other.ended:
            return False
        with suppress(OSError):
            self.other.transport.write_eof()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None and not self.other.closed:
            self.other.transport.close()  # after what waits there is written

    def abort(self) -> None:
        self.transport.abort()


class _Client(_End):
    """A program in the sandbox, through the relay. Reads one request, then passes its body or the tunnel on."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._head = bytearray()
        self._request: ProxyRequest | None = None
        self._early = b""
        """Bytes after the head that arrived before the server was connected."""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._egress.admit(self):
            self._refuse("503", f"The sandbox has {CONNECTIONS} open connections; close some.")
        self._timer = asyncio.get_running_loop().call_later(HEAD_SECONDS, self.abort)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._egress.leave(self)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self.closed:
            return
        if self.other is not None:
            self._forward(data)
        elif self._request is not None:
            self._early += data  # at most one read: reading is paused
        else:
            self._read_head(data)

    def _read_head(self, data: bytes) -> None:
        at = _end_of_head(self._head, data)
        if (at if at >= 0 else len(self._head)) > HEAD_BYTES:
            self._refuse("431", "The head of the request is too long.")
        elif at >= 0:
            head, rest = bytes(self._head[:at]), bytes(self._head[at + 4 :])
            try:
                self._request = read_request(head)
            except Malformed as error:
                self._refuse("400", str(error))
                return
            self._head, self._early = bytearray(), rest
            self.transport.pause_reading()
            if self._timer is not None:
                self._timer.cancel()
            self._egress.own(self._connect(self._request))

    async def _connect(self, request: ProxyRequest) -> None:
        server = _Server(self, request)
        try:
            await self._egress.connect(request.target, server)
            self.other = server
        except ConnectionDenied as refused:
            self._refuse(refused.status, str(refused), refused.by)
        finally:
            if self.other is None:
                self.transport.close()
        if self.other is not None:
            self._begin(request, server)

    def _begin(self, request: ProxyRequest, server: "_Server") -> None:
        if request.head is None:
            self.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            self._egress.gate.moved(request.target, len(request.head), 0)
            server.send(request.head)
        early, self._early = self._early, b""
        if early:
            self._forward(early)
        if self.closed or server.closed:  # one of them ended while the other was connected
            server.abort()
            self.transport.close()
            return
        server.transport.resume_reading()
        self.transport.resume_reading()

    def _forward(self, data: bytes) -> None:
        request, server = self._request, self.other
        assert request is not None
        assert server is not None
        if request.head is not None:
            data = self._of_body(request.body, data)
        if data:
            self._egress.gate.moved(request.target, len(data), 0)
            server.send(data)

    def _of_body(self, body: Body, data: bytes) -> bytes:
        """Return the part that belongs to the request. A second request on the same connection is dropped: the
        response to the first one says that the connection ends with it."""
        try:
            return body.feed(data)
        except Malformed:
            if self.other is not None:
                self.other.abort()
            self.abort()
            return b""

    def received(self, target: Destination, data: bytes) -> None:
        self._egress.gate.moved(target, 0, len(data))
        self.send(data)

    def _refuse(self, status: str, text: str, by: str = "") -> None:
        if not self.closed:
            self.transport.write(refusal(status, text, by))
            self.transport.close()


class _Server(_End):
    """The server that the program reaches. Only the head of an HTTP response is read and written again."""

    def __init__(self, client: _Client, request: ProxyRequest) -> None:
        self.other = client
        self._client = client
        self._target = request.target
        self._is_tunnel = request.head is None
        self._head: bytearray | None = None if self._is_tunnel else bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.pause_reading()  # until the program knows that it is connected

    def data_received(self, data: bytes) -> None:
        if self._head is None:
            self._client.received(self._target, data)
            return
        at = _end_of_head(self._head, data)
        head, rest = bytes(self._head[:at]), bytes(self._head[at + 4 :])
        if at >= 0 and is_interim(head):
            self._head = bytearray()
            self._client.received(self._target, head + b"\r\n\r\n")
            if rest:
                self.data_received(rest)
        elif at >= 0:
            self._head = None
            self._client.received(self._target, close_response(head) + rest)
        elif len(self._head) > HEAD_BYTES:
            self._client.abort()
            self.abort()

    def eof_received(self) -> bool:
        """A response of HTTP ends with its connection; a tunnel has two directions."""
        return self._is_tunnel and super().eof_received()

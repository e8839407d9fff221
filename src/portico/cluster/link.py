"""HTTP between hosts: a command is sent to the owner of its subject as the same bytes, and the answer is returned.

The attack: a client reaches the port and impersonates a host. So every request carries a key that only the database
contains, compared in constant time; the port belongs on a private network, or behind certificates (`tls.py`).
"""

import contextlib
import hmac
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from ipaddress import ip_address

import httpx
import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from portico import limits
from portico.cluster.tls import LinkTls
from portico.kernel import commands as c
from portico.kernel import errors
from portico.kernel.errors import BadRequest, PorticoError, Unreachable
from portico.kernel.members import Fetched
from portico.server.embedded import EmbeddedServer

logger = logging.getLogger("portico.cluster")

SECONDS = 60.0
"""Timeout of one command at another host: a cancel may take five seconds, the start of an agent more."""
CONNECT_SECONDS = 3.0
"""A machine that is down does not answer at all, and other hosts take over in that time."""
NOT_OWNER = "not_owner"


class Asked(Struct):
    command: msgspec.Raw
    caller: c.Caller
    channel: str
    sender: int = 0
    """The number of the host that sends it."""


class LinkRequest(Struct):
    """A read at another host: a path below its address, and the caller."""

    address: str
    caller: c.Caller


class Signal(Struct):
    """What one host lets all others know; see `Cluster.signal`."""

    topic: str
    data: str


class Told(Struct, omit_defaults=True):
    seq: int = 0
    """Position in the log of the answering host: a client that waits for it reads the result of the command."""
    kind: str = ""
    data: msgspec.Raw = msgspec.Raw(b"null")
    code: str = ""
    message: str = ""
    field: str | None = None
    retry_after: float | None = None


Answer = Callable[[Asked, c.Command], Awaitable[Told]]
Inside = Callable[[str, c.Caller], Awaitable[Fetched]]
REFUSED = 418
"""Status of an error that is encoded as `Told`; no route uses this status."""
_KEPT = ("content-type", "content-disposition")


def refusal(error: PorticoError) -> Told:
    return Told(code=error.code, message=error.message, field=error.field, retry_after=error.retry_after)


def raised(told: Told) -> PorticoError:
    """Return the error that was raised at the other host."""
    kinds = {each.code: each for each in _tree(PorticoError)}
    kind = kinds.get(told.code, PorticoError)
    error = kind.__new__(kind, told.message)
    error.__dict__.update(message=told.message, field=told.field, retry_after=told.retry_after)
    error.args = (told.message,)
    return error


def _tree(kind: type[PorticoError]) -> Iterator[type[PorticoError]]:
    yield kind
    for each in kind.__subclasses__():
        if each.__module__ == errors.__name__:
            yield from _tree(each)


def _silent(url: str, why: str) -> Unreachable:
    """The address is for the operator, not for the user."""
    logger.warning("the host at %s does not answer: %s", url, why)
    return Unreachable("The host that runs this does not answer; try again.", retry_after=1)


def is_private(url: str) -> bool:
    """Whether only the two hosts can read what is sent to this link: with TLS, or on one machine."""
    found = httpx.URL(url)
    with contextlib.suppress(ValueError):  # a name, which may mean another machine
        return found.scheme == "https" or ip_address(found.host).is_loopback
    return False


def _listening(address: str, port: int) -> socket.socket:
    try:
        return socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    except OSError as error:
        raise BadRequest(
            f"cluster.address {address!r}, cluster.port {port}: {error.strerror}. Give an address of this machine that "
            "the other hosts reach, and a free port; 0 picks one.",
            field="cluster.address",
        ) from None


class HostLink:
    def __init__(
        self,
        address: str,
        port: int,
        key: str,
        answer: Answer,
        tls: LinkTls | None = None,
        signalled: Callable[[str, str], None] = lambda topic, data: None,
    ) -> None:
        self._key = key
        self._answer = answer
        self._signalled = signalled
        self._socket = _listening(address, port)
        shown = f"[{address}]" if ":" in address else address
        self.url = f"{'https' if tls else 'http'}://{shown}:{self._socket.getsockname()[1]}"
        self.inside: Inside | None = None
        paths = {"/do": self._do, "/fetch": self._serve, "/signal": self._take_signal}
        routes = [Route(path, handler, methods=["POST"]) for path, handler in paths.items()]
        # Idle TLS connections do not answer the close: without the timeout of the embedded server it took 30 s.
        self._server = EmbeddedServer(
            Starlette(routes=routes), [self._socket], "cluster link", tls=tls.server if tls else None
        )
        self._tls = tls is not None
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(SECONDS, connect=CONNECT_SECONDS),
            trust_env=False,
            headers={"authorization": f"Bearer {key}"},
            verify=tls.client if tls else False,  # over plain HTTP
        )

    def _knows(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").encode("utf-8", "replace")
        return hmac.compare_digest(given, f"Bearer {self._key}".encode())

    async def _serve(self, request: Request) -> Response:
        if not self._knows(request):
            return Response(status_code=401)
        asked = msgspec.json.decode(await request.body(), type=LinkRequest)
        if self.inside is None:  # it does not listen yet
            return Response(status_code=503)
        try:
            status, headers, body = await self.inside(asked.address, asked.caller)
        except PorticoError as error:
            return Response(msgspec.json.encode(refusal(error)), REFUSED)
        return Response(body, status, headers)

    async def fetch(self, url: str, address: str, caller: c.Caller) -> Fetched:
        answer = await self._post(f"{url}/fetch", msgspec.json.encode(LinkRequest(address, caller)))
        if answer.status_code == REFUSED:
            raise raised(msgspec.json.decode(answer.content, type=Told))
        if answer.status_code in (401, 503):
            raise _silent(url, f"status {answer.status_code}")
        headers = {name: answer.headers[name] for name in _KEPT if name in answer.headers}
        return answer.status_code, headers, answer.content

    async def _take_signal(self, request: Request) -> Response:
        if not self._knows(request):
            return Response(status_code=401)
        signal = msgspec.json.decode(await request.body(), type=Signal)
        self._signalled(signal.topic, signal.data)
        return Response(status_code=204)

    async def signal(self, url: str, topic: str, data: str) -> None:
        await self._post(f"{url}/signal", msgspec.json.encode(Signal(topic, data)))

    async def _post(self, url: str, body: bytes) -> httpx.Response:
        if self._tls and not url.startswith("https:"):
            logger.warning("the host at %s has no certificate", url)
            raise Unreachable("The other host has no certificate (cluster.tls_cert), and this one asks for one.")
        try:
            return await self._client.post(url, content=body)
        except (httpx.HTTPError, RuntimeError) as error:  # RuntimeError: this host stops, and the client is closed
            raise _silent(url, type(error).__name__) from error

    async def _do(self, request: Request) -> Response:
        if not self._knows(request):
            return Response(status_code=401)
        body = await request.body()
        if len(body) > limits.BODY_BYTES * 2:
            return Response(status_code=413)
        try:
            asked = msgspec.json.decode(body, type=Asked)
            command = c.decode_command(asked.command)
        except (ValueError, RecursionError) as error:
            told = Told(
                code="conflict", message=f"That host does not know this command: {error}. Is it of another version?"
            )
        else:
            told = await self._answer(asked, command)
        return Response(msgspec.json.encode(told), media_type="application/json")

    async def ask(self, url: str, command: c.Command, caller: c.Caller, channel: str, sender: int = 0) -> Told:
        """Send a command. Raises `Unreachable` if there was no answer: it is unknown whether the command ran."""
        asked = Asked(msgspec.Raw(c.encode_command(command)), caller, channel, sender)
        answer = await self._post(f"{url}/do", msgspec.json.encode(asked))
        try:
            answer.raise_for_status()
            return msgspec.json.decode(answer.content, type=Told)
        except (httpx.HTTPError, msgspec.MsgspecError) as error:
            raise _silent(url, type(error).__name__) from error

    async def close(self) -> None:
        await self._server.close()
        self._socket.close()
        await self._client.aclose()

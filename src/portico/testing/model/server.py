"""The scripted model as a server on loopback: routes, the record of what was asked, start and stop."""

import signal
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, Self

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from portico.kernel.errors import BadRequest, NotFound
from portico.server.embedded import EmbeddedServer
from portico.testing.model import anthropic, gemini, openai_chat, openai_responses
from portico.testing.model.answer import Format, answer, choose_step
from portico.testing.model.playback import Outcome, Playback
from portico.testing.model.request import ModelRequest
from portico.testing.model.script import Error, Script

# An agent's largest context with images is some ten megabytes; more is a mistake that would only fill the memory.
MAX_BODY = 64 * 1024 * 1024
# Enough to look back over any test; a server that runs for days must not keep every conversation.
KEPT_REQUESTS = 200


class Received:
    """One request as it came in, and how it ended."""

    def __init__(self, number: int, request: ModelRequest, body: bytes, headers: Mapping[str, str]) -> None:
        self.number = number
        self.request = request
        self.headers = headers
        self.ended = anyio.Event()
        self.outcome: Outcome | None = None
        self._body = body

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self._body)


class ModelServer:
    """`async with ModelServer(script) as server:` answers on `server.url` until the block ends.

    `app` is the same as a plain ASGI application, for use in an existing server.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        keep: int = KEPT_REQUESTS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.script = script or Script()
        self.host = host
        self.port = port
        self.requests: deque[Received] = deque(maxlen=keep)
        self.counts: Counter[str] = Counter()  # how often each key of `first` was met
        self.total = 0
        self.app: ASGIApp = Starlette(routes=self._routes())
        self._clock = clock
        self._closing = anyio.Event()
        self._arrived = anyio.Condition()
        self._server: EmbeddedServer | None = None

    @property
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    async def received(self, number: int) -> Received:
        """Wait for the request with this number (from 1) and return it."""
        async with self._arrived:
            while self.total < number:
                await self._arrived.wait()
        for received in self.requests:
            if received.number == number:
                return received
        raise NotFound("recorded request", str(number), f"The last {self.requests.maxlen} are kept.")

    async def __aenter__(self) -> Self:
        listener = _listen(self.host, self.port)
        self.port = listener.getsockname()[1]
        self._server = EmbeddedServer(
            self.app, [listener], "model server", http="httptools", date_header=False, timeout_graceful_shutdown=None
        )
        return self

    async def __aexit__(self, *failure: Any) -> None:
        assert self._server is not None
        self._closing.set()
        await self._server.close()

    def _routes(self) -> list[Route]:
        return [
            Route("/", _alive, methods=["GET", "HEAD"]),
            Route("/v1/models", self._models),
            Route("/v1/models/{name:path}", self._model),
            Route("/v1/models/{target:path}", self._gemini, methods=["POST"]),  # Google's newer clients
            Route("/v1/chat/completions", self._answering(openai_chat), methods=["POST"]),
            Route("/v1/responses", self._answering(openai_responses), methods=["POST"]),
            Route("/v1/messages", self._answering(anthropic), methods=["POST"]),
            Route("/v1/messages/count_tokens", self._anthropic_tokens, methods=["POST"]),
            Route("/v1beta/models", self._models),
            Route("/v1beta/models/{target:path}", self._gemini, methods=["POST"]),
        ]

    def _answering(self, wire: Format) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> ASGIApp:
            return await self._answer(request, wire)

        return endpoint

    async def _answer(self, http: Request, wire: Format, target: str = "") -> ASGIApp:
        body = await _read(http)
        if isinstance(body, Error):
            return _refuse(wire, body)
        try:
            request = wire.parse(body, target)
        except (msgspec.DecodeError, ValueError) as error:
            return _refuse(wire, Error(status=400, message=str(error)))
        received = await self._record(request, body, http)
        step = choose_step(request, self.script, self.counts)
        reply = answer(request, step, received.number, self._clock)
        return _Recorded(Playback(reply, step, wire, self._closing), received)

    async def _record(self, request: ModelRequest, body: bytes, http: Request) -> Received:
        async with self._arrived:
            self.total += 1
            received = Received(self.total, request, body, dict(http.headers))
            self.requests.append(received)
            self._arrived.notify_all()
        return received

    async def _gemini(self, http: Request) -> ASGIApp:
        target = http.path_params["target"]
        verb = target.rpartition(":")[2]
        if verb == "countTokens":
            return await _count(http, gemini, gemini.count_tokens)
        if verb not in ("generateContent", "streamGenerateContent"):
            return _refuse(gemini, Error(status=404, message=f"There is no method {verb!r} of a model."))
        return await self._answer(http, gemini, f"{target}?{http.url.query}")

    async def _anthropic_tokens(self, http: Request) -> ASGIApp:
        return await _count(http, anthropic, lambda body: anthropic.count_tokens(anthropic.parse(body, "")))

    async def _models(self, http: Request) -> Response:
        """OpenAI's and Anthropic's list as `data`, Google's as `models`; each client reads its own."""
        names = self.script.models
        google = [{"name": f"models/{name}", "displayName": name} for name in names]
        return _json({"object": "list", "data": [_model(name) for name in names], "has_more": False, "models": google})

    async def _model(self, http: Request) -> Response:
        """Describe a model of any name: this server answers for every model."""
        return _json(_model(http.path_params["name"]))


class _Recorded:
    """Play the answer, then record how it ended: tests wait for that instead of sleeping."""

    def __init__(self, playback: Playback, received: Received) -> None:
        self._playback = playback
        self._received = received

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._playback(scope, receive, send)
        finally:
            self._received.outcome = self._playback.outcome
            self._received.ended.set()


def serve(
    script: Script | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    announce: Callable[[str], None] = print,
) -> None:
    """Runs a server until it is interrupted or terminated; `announce` gets its address."""

    async def run() -> None:
        async with ModelServer(script, host=host, port=port) as server:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                announce(server.url)
                async for _ in signals:
                    return

    anyio.run(run)


def _listen(host: str, port: int) -> socket.socket:
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        message = f"Cannot listen on {host!r} port {port}: {error}. Choose another port, or 0 for a free one."
        raise BadRequest(message, field="port") from error
    # Connections inherit it. asyncio sets it only where the protocol number is explicit, and without it every answer
    # waits 40 ms for the client's delayed acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


async def _read(http: Request) -> bytes | Error:
    body = bytearray()
    try:
        async for chunk in http.stream():
            body += chunk
            if len(body) > MAX_BODY:
                return Error(status=413, message=f"A request has at most {MAX_BODY} bytes.")
    except ClientDisconnect:
        return Error(status=400, message="The client left in the middle of its request.")
    return bytes(body)


async def _count(http: Request, wire: Format, count: Callable[[bytes], dict[str, Any]]) -> Response:
    body = await _read(http)
    if isinstance(body, Error):
        return _refuse(wire, body)
    try:
        return _json(count(body))
    except (msgspec.DecodeError, ValueError) as error:
        return _refuse(wire, Error(status=400, message=str(error)))


async def _alive(http: Request) -> Response:
    return _json({"service": "portico model-server"})


def _model(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "portico",
        "type": "model",
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
    }


def _refuse(wire: Format, error: Error) -> Response:
    return _json(wire.error(error), error.status)


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")

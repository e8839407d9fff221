"""Requests that the host makes for a confined session, in its record: to the model of the built-in agent, and to its
MCP servers over HTTP. The settings name these servers, so no person is asked.

The clients are shared between sessions. Each turn sets its session for the tasks that it starts (`recording`), and the
hooks of the clients read it.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpx

from portico.features.sandboxes.feature import gate_of
from portico.kernel.session import Session
from portico.sandbox.egress import Approach
from portico.sandbox.network import Destination, EgressGate, normal
from portico.sandbox.trace import ConnectionTrace

_gate: ContextVar[EgressGate | None] = ContextVar("portico.sandbox.gate", default=None)


@contextmanager
def recording(session: Session | None) -> Iterator[None]:
    """Record the requests of this task, and of those that it starts, if the session has a sandbox. None: what the host
    asks for all sessions, such as the models of a server, and stores."""
    before = _gate.set(gate_of(session) if session is not None else None)
    try:
        yield
    finally:
        _gate.reset(before)


async def _requested(request: httpx.Request) -> None:
    if (gate := _gate.get()) is not None:
        request.extensions["trace"] = traced(Approach(gate, _target(request.url), "policy"), gate, request)


def traced(approach: Approach, gate: EgressGate, request: httpx.Request) -> ConnectionTrace:
    """Record the request when it has connected, with the bytes of its body."""
    target, size = _target(request.url), int(request.headers.get("content-length", 0))

    def connected() -> None:
        if approach.connected():
            gate.moved(target, size, 0)

    return ConnectionTrace(connected, approach.failed)


async def _answered(response: httpx.Response) -> None:
    gate = _gate.get()
    if gate is not None and isinstance(response.stream, httpx.AsyncByteStream):
        response.stream = _Counted(response.stream, gate, _target(response.url))


HOOKS: Mapping[str, list[Callable[..., Any]]] = {"request": [_requested], "response": [_answered]}
"""For `httpx.AsyncClient(event_hooks=...)`."""


def _target(url: httpx.URL) -> Destination:
    return Destination(normal(url.host) or url.host, url.port or (443 if url.scheme == "https" else 80))


class _Counted(httpx.AsyncByteStream):
    """The body of an answer. Its bytes are counted at its end: a model streams thousands of pieces."""

    def __init__(self, stream: httpx.AsyncByteStream, gate: EgressGate, target: Destination) -> None:
        self._stream = stream
        self._gate = gate
        self._target = target
        self._received = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._received += len(piece)
            yield piece

    async def aclose(self) -> None:
        received, self._received = self._received, 0
        if received:
            self._gate.moved(self._target, 0, received)
        await self._stream.aclose()

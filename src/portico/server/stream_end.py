"""The last message to a client whose stream or socket the gate closes."""

import asyncio
import logging
from collections.abc import Awaitable

from starlette.types import Message, Scope, Send

from portico.kernel.errors import LogUnavailable, Unauthenticated
from portico.server.body import error_response

logger = logging.getLogger("portico.gate")

POLICY_VIOLATION, SERVICE_RESTART = 1008, 1012
"""WebSocket close codes: the token is no longer valid; the client should reconnect soon."""
_LAST_WORD_SECONDS = 1.0
"""How long a client that reads nothing can delay the end of its connection."""


class StreamEnd:
    """Tracks the state of a response, so that the gate can end the connection as the protocol requires."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._started = False
        self._complete = False

    def send(self, message: Message) -> Awaitable[None]:
        self._started = True
        kind = message["type"]
        self._complete = kind == "websocket.close" or (
            kind == "http.response.body" and not message.get("more_body", False)
        )
        return self._send(message)

    async def say(self, code: int) -> None:
        if self._complete:
            return
        try:
            async with asyncio.timeout(_LAST_WORD_SECONDS):
                await self._say(code)
        except TimeoutError:
            logger.info("%s was ended without a last word: its client takes nothing", self._scope["path"])

    async def _say(self, code: int) -> None:
        if self._scope["type"] == "websocket":
            reason = "the host stops" if code == SERVICE_RESTART else "the token was revoked"
            await self._send({"type": "websocket.close", "code": code, "reason": reason})
        elif self._started:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            error = LogUnavailable("The host is stopping.") if code == SERVICE_RESTART else Unauthenticated("Revoked.")
            await error_response(error)(self._scope, _nothing, self._send)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}

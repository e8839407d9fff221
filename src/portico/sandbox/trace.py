"""Whether a request of the host has connected: the extension `trace` of requests of httpx.

A hook before a request counts attempts, and a hook after a response misses servers that do not answer.
"""

import asyncio
from collections.abc import Callable
from typing import Any

SENDS, NOT_CONNECTED = ".send_request_headers.started", ".connect_tcp.failed"


class ConnectionTrace:
    def __init__(self, connected: Callable[[], object], failed: Callable[[], None] | None = None) -> None:
        """`connected` is called before the head of a request is sent, again if the connection was closed before."""
        self._connected = connected
        self._failed = failed or (lambda: None)

    async def __call__(self, event: str, info: dict[str, Any]) -> None:
        if event.endswith(SENDS):
            self._connected()
        elif event.endswith(NOT_CONNECTED) and not isinstance(info.get("exception"), asyncio.CancelledError):
            self._failed()

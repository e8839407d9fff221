"""Two shortcuts through the SDK, which spends most of a turn's processor time on reading events.

Each event's time is parsed by a library that guesses any format (130 µs an event, nearly all of what an event costs),
and each delta comes with a second event that only contains the byte count so far. The SDK has no option for
either. So its parser of times is replaced by the standard library's, which falls back to the old one, and the second
event is dropped before it is read. Where the SDK has changed, it is left alone: it is just slow then.
docs/decisions/0014 has the measurements and what was proposed to its authors.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from types import ModuleType
from typing import Any

from copilot import CopilotClient
from copilot.generated import session_events

UNHEARD = "assistant.streaming_delta"

logger = logging.getLogger("portico.agents.copilot")


def read_times_fast(module: ModuleType = session_events) -> bool:
    """Once for the process; whether it was possible."""
    slow = getattr(module, "from_datetime", None)
    if not callable(slow):
        logger.debug("the SDK's parser of times is not where it was")
        return False
    if not hasattr(slow, "__wrapped__"):
        module.from_datetime = _fast(slow)  # type: ignore[attr-defined]
    return True


def _fast(slow: Callable[[Any], datetime]) -> Callable[[Any], datetime]:
    def from_datetime(value: Any) -> datetime:
        try:
            return datetime.fromisoformat(value)
        except (TypeError, ValueError):
            return slow(value)

    from_datetime.__wrapped__ = slow  # type: ignore[attr-defined]
    return from_datetime


def drop_unheard(client: CopilotClient) -> bool:
    """Of a connected client; whether it was possible."""
    connection = getattr(client, "_client", None)
    heard = getattr(connection, "notification_handler", None)
    if connection is None or not callable(heard):
        logger.debug("the SDK's handler of notifications is not where it was")
        return False

    def handle(method: str, params: Any) -> None:
        if method == "session.event" and params.get("event", {}).get("type") == UNHEARD:
            return
        heard(method, params)

    connection.set_notification_handler(handle)
    return True

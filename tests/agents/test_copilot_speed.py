"""The shortcuts through the SDK: the same result, and none where the SDK has changed."""

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from copilot import CopilotClient, RuntimeConnection
from copilot.generated import session_events

from portico.agents.copilot.speed import UNHEARD, _fast, drop_unheard, read_times_fast

SLOW = getattr(session_events.from_datetime, "__wrapped__", session_events.from_datetime)


@pytest.mark.parametrize(
    "value",
    ["2026-11-16T10:00:00Z", "2026-11-16T10:00:00.123Z", "2026-11-16T10:00:00+02:00", "Mon, 16 Nov 2026 10:00:00 GMT"],
)
def test_times_are_read_as_before(value: str) -> None:
    fast, slow = _fast(SLOW)(value), SLOW(value)
    assert (fast, fast.utcoffset()) == (slow, slow.utcoffset())


def test_the_sdk_is_as_it_was() -> None:
    """When this fails, a new SDK wants another look at speed.py."""
    assert read_times_fast()
    assert read_times_fast()  # and once is enough
    assert session_events.from_datetime.__wrapped__ is SLOW  # type: ignore[attr-defined]
    client = CopilotClient(connection=RuntimeConnection.for_uri("127.0.0.1:1"))
    assert hasattr(client, "_client")


def test_where_the_sdk_has_changed_it_is_left_alone() -> None:
    assert not read_times_fast(ModuleType("other"))
    other: Any = SimpleNamespace(_client=SimpleNamespace())
    assert not drop_unheard(other)


def test_only_what_nobody_hears_is_dropped() -> None:
    heard: list[str] = []
    connection = SimpleNamespace(notification_handler=lambda method, params: heard.append(params["event"]["type"]))
    connection.set_notification_handler = lambda handler: setattr(connection, "notification_handler", handler)
    client: Any = SimpleNamespace(_client=connection)
    assert drop_unheard(client)
    for kind in (UNHEARD, "assistant.message_delta"):
        connection.notification_handler("session.event", {"event": {"type": kind}})
    assert heard == ["assistant.message_delta"]

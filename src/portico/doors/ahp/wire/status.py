"""The status bitset of sessions and chats: bits 0 to 4 are one activity, the others are flags.

Unknown bits are flags of other implementations and stay unchanged.
"""

from typing import Final

from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.versions import Dialect

IDLE: Final = 1
ERROR: Final = 2
IN_PROGRESS: Final = 8
INPUT_NEEDED: Final = 24
IS_READ: Final = 32
IS_ARCHIVED: Final = 64

WAITING: Final = INPUT_NEEDED & ~IN_PROGRESS
"""The bit that makes an in-progress turn one that waits for a person."""

_ACTIVITY = 0b11111


def activity_bits(status: int) -> int:
    return status & _ACTIVITY


def with_activity(status: int, activity: int) -> int:
    return (status & ~_ACTIVITY) | activity


def blocks(request: Json, dialect: Dialect) -> bool:
    """A tool that a client runs on its own raised the status up to 0.7; no person has to act on it."""
    return request.get("kind") != "toolClientExecution" or not dialect.since("0.8.0")

"""The status bitset of sessions and chats: bits 0 to 4 are one activity, the others are flags.

Bits we do not know are somebody's flags and stay as they are.
"""

from typing import Any, Final

from portico.doors.ahp.record import Json, put
from portico.doors.ahp.versions import Dialect

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


def with_flag(status: int, flag: int, on: bool) -> int:
    return status | flag if on else status & ~flag


def head(state: Json, dialect: Dialect) -> Json:
    """Where title, status and times live: version 1 nests them in `summary`."""
    return state.get("summary") or {} if dialect.seed else state


def status_of(state: Json, dialect: Dialect) -> int:
    return head(state, dialect).get("status") or 0


def with_head(state: Json, dialect: Dialect, /, **fields: Any) -> Json:
    if dialect.seed:
        return put(state, summary=put(head(state, dialect), **fields))
    return put(state, **fields)


def touched(state: Json, dialect: Dialect) -> Json:
    """Stamp `modifiedAt` with the clock; from 0.9 on only times from the actions count."""
    return state if dialect.since("0.9.0") else with_head(state, dialect, modifiedAt=dialect.now())


def blocks(request: Json, dialect: Dialect) -> bool:
    """A tool that a client runs on its own raised the status up to 0.7; no person has to act on it."""
    return request.get("kind") != "toolClientExecution" or not dialect.since("0.8.0")


def flagged(state: Json, dialect: Dialect, flag: int, on: bool) -> Json:
    return with_head(state, dialect, status=with_flag(status_of(state, dialect), flag, on))


def is_read_changed(state: Json, action: Json, dialect: Dialect) -> Json:
    return flagged(state, dialect, IS_READ, action.get("isRead") is True)


def is_archived_changed(state: Json, action: Json, dialect: Dialect) -> Json:
    return flagged(state, dialect, IS_ARCHIVED, action.get("isArchived") is True)

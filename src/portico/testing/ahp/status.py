"""Where states keep their status and times, and the flags that actions set."""

from typing import Any

from portico.doors.ahp.wire.record import Json, put
from portico.doors.ahp.wire.status import IS_ARCHIVED, IS_READ
from portico.doors.ahp.wire.versions import Dialect


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


def flagged(state: Json, dialect: Dialect, flag: int, on: bool) -> Json:
    return with_head(state, dialect, status=with_flag(status_of(state, dialect), flag, on))


def is_read_changed(state: Json, action: Json, dialect: Dialect) -> Json:
    return flagged(state, dialect, IS_READ, action.get("isRead") is True)


def is_archived_changed(state: Json, action: Json, dialect: Dialect) -> Json:
    return flagged(state, dialect, IS_ARCHIVED, action.get("isArchived") is True)

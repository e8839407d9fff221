"""Which request, session and turn a line of the log is about: set where they begin, read where a line is written."""

import itertools
import re
import secrets
from contextvars import ContextVar

REQUEST: ContextVar[str] = ContextVar("request", default="")
SESSION: ContextVar[str] = ContextVar("session", default="")
TURN: ContextVar[str] = ContextVar("turn", default="")

_PROCESS = secrets.token_hex(4)
NEW_IDS = (f"{_PROCESS}{number:08x}" for number in itertools.count(int.from_bytes(secrets.token_bytes(2))))
"""Ids of requests: they differ from those of other processes, and cost less than random ones."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def request_id(given: str | None) -> str:
    """Return the client's own id, if it is valid; otherwise a new one."""
    return given if given is not None and _ID.fullmatch(given) else next(NEW_IDS)


def current() -> dict[str, str]:
    """Those that are set."""
    found = {"request": REQUEST.get(), "session": SESSION.get(), "turn": TURN.get()}
    return {name: value for name, value in found.items() if value}

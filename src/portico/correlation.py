"""Which request, session and turn a line of the log is about: set where they begin, read where a line is written."""

import itertools
import re
import secrets
from contextvars import ContextVar

REQUEST: ContextVar[str] = ContextVar("request", default="")
SESSION: ContextVar[str] = ContextVar("session", default="")
TURN: ContextVar[str] = ContextVar("turn", default="")

_PROCESS = secrets.token_hex(4)
_NUMBERS = itertools.count(int.from_bytes(secrets.token_bytes(2)))
"""Together the id of a request: unlike those of another process, and cheaper than so many random ones."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def begin_request(given: str | None) -> str:
    """The client's own id, where it is one; else a new one."""
    ident = given if given is not None and _ID.fullmatch(given) else f"{_PROCESS}{next(_NUMBERS):08x}"
    REQUEST.set(ident)
    return ident


def current() -> dict[str, str]:
    """Those that are set."""
    found = {"request": REQUEST.get(), "session": SESSION.get(), "turn": TURN.get()}
    return {name: value for name, value in found.items() if value}

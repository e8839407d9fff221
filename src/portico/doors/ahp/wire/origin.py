"""Whose words an event is.

What a client did carries `client:ID#NUMBER.TYPE` as `by`, so its echo is known again even after a restart. The number
is the client's own; the type is there because one command may have several effects, and only one of them is the echo.
"""

from typing import NamedTuple

CLIENT = "client:"


class ActionOrigin(NamedTuple):
    client: str
    number: int
    type: str


def head(client: str) -> str:
    """The part before the `#`, the same for all actions of this client."""
    return CLIENT + client


def written(client: str, number: int, type: str) -> str:
    return f"{CLIENT}{client}#{number}.{type}"


def read(by: str) -> ActionOrigin | None:
    if not by.startswith(CLIENT):
        return None
    client, _, tail = by[len(CLIENT) :].rpartition("#")
    number, _, type = tail.partition(".")
    digits = number[1:] if number[:1] == "-" else number
    if not client or not (digits.isascii() and digits.isdigit()):
        return None
    return ActionOrigin(client, int(number), type)


def speaker(by: str) -> tuple[str, str]:
    """The client, and the kind of channel that it spoke on; nothing of anybody else. Every record passes here."""
    if not by.startswith(CLIENT):
        return "", ""
    client, _, tail = by[len(CLIENT) :].rpartition("#")
    return client, tail.partition(".")[2].partition("/")[0]

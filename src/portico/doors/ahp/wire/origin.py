"""The author of an event.

Events caused by a client carry `client:ID#NUMBER.TYPE` as `by`, so the echo is recognized even after a restart. The
number is the client's; the type is needed because one command may have several effects, and only one is the echo.
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
    """The client and the kind of channel that it used; empty for other authors. Called for every record."""
    if not by.startswith(CLIENT):
        return "", ""
    client, _, tail = by[len(CLIENT) :].rpartition("#")
    return client, tail.partition(".")[2].partition("/")[0]

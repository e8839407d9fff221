"""Strict parsing of query parameters and command ids: an invalid value is an error that names it, never a default."""

from typing import Annotated, Literal

from msgspec import Meta
from starlette.requests import HTTPConnection

from portico.kernel.errors import BadRequest
from portico.server.route import Param

_LARGEST = 10**18 - 1
"""Upper bound of positions in the log, with a margin."""


Flag = Literal["true", "false", "1", "0"]


def numbered(meaning: str, lowest: int = 0, highest: int = _LARGEST) -> Param:
    """Describe a parameter that `number` reads, for the OpenAPI document."""
    return Param(meaning, Annotated[int, Meta(ge=lowest, le=highest)])


def flag(request: HTTPConnection, name: str) -> bool | None:
    value = request.query_params.get(name)
    if value is None:
        return None
    if value not in ("true", "false", "1", "0"):
        raise BadRequest(f"{name!r} is true or false, not {value!r}.", field=name)
    return value in ("true", "1")


def number(request: HTTPConnection, name: str, default: int, lowest: int = 0, highest: int = _LARGEST) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isdecimal() or len(text) > 18 or not lowest <= int(text) <= highest:
        raise BadRequest(f"{name!r} is a number from {lowest} to {highest}, not {text!r}.", field=name)
    return int(text)

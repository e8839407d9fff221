"""Names and keys as PostgreSQL stores them. Its type text cannot contain NUL, and the names that clients choose can."""

from typing import Any

_ESCAPE, _ITSELF, _NUL = "\ufdd0", "\ufdd0\ufdd1", "\ufdd0\ufdd2"
"""Noncharacters of Unicode: no text that people exchange contains them."""


def to_text(name: str) -> str:
    if "\0" not in name and _ESCAPE not in name:
        return name
    return name.replace(_ESCAPE, _ITSELF).replace("\0", _NUL)


def from_text(text: str) -> str:
    return text.replace(_NUL, "\0").replace(_ITSELF, _ESCAPE) if _ESCAPE in text else text


def parameter(value: Any) -> Any:
    """Return the parameter of a statement: texts without NUL, all else unchanged."""
    if isinstance(value, str):
        return to_text(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [to_text(each) for each in value]
    return value

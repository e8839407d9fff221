"""Data from outside inside a prompt: quoted as JSON, with all characters of markup and directives escaped."""

import json
import re
from typing import Any

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_ACTIVE = re.compile(r"[<>&`$\[\]{}@\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def quote(value: Any) -> str:
    """Encode as JSON with all active characters in strings escaped. Brackets of nested lists are on separate lines."""
    text = json.dumps(value, ensure_ascii=False, indent=1 if isinstance(value, dict | list) else None)
    return _STRING.sub(lambda found: _ACTIVE.sub(lambda c: f"\\u{ord(c[0]):04x}", found[0]), text)


class Payload:
    """Marks a value that came from outside."""


class PayloadText(Payload, str):
    pass


class PayloadList(Payload, list[Any]):
    pass


class PayloadMapping(Payload, dict[str, Any]):
    pass


def payload(value: Any) -> Any:
    """The value with all its parts marked."""
    match value:
        case str():
            return PayloadText(value)
        case list():
            return PayloadList(payload(each) for each in value)
        case dict():
            return PayloadMapping({key: payload(each) for key, each in value.items()})
    return value


def unmarked(value: Any) -> Any:
    """The value as plain data, for JSON."""
    match value:
        case str():
            return str(value)
        case list() | tuple():
            return [unmarked(each) for each in value]
        case dict():
            return {key: unmarked(each) for key, each in value.items()}
    return value

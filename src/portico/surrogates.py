"""Halves of surrogate pairs in JSON.

JavaScript cuts texts between the two halves of a character, and `JSON.stringify` writes what is left as an escape:
`"\\ud83d"`. That is JSON, but not Unicode: UTF-8 has no bytes for it, so msgspec refuses the whole document, and the
parser of the standard library returns strings that cannot be encoded. The message of a program must not be lost for
this reason: each half is read as U+FFFD, as browsers do with texts that they send.
"""

import json
import re
from collections.abc import Callable
from typing import Any, AnyStr, TypeVar

import msgspec

T = TypeVar("T")
_ESCAPE = r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
"""Every escape, so that one behind an escaped backslash is none; the group is there for a half alone."""
_IN_TEXT = re.compile(_ESCAPE, re.DOTALL)
_IN_BYTES = re.compile(_ESCAPE.encode(), re.DOTALL)


def repair(data: AnyStr) -> AnyStr:
    """Replace halves of surrogate pairs in JSON; leave all else unchanged."""
    if isinstance(data, bytes):
        return _IN_BYTES.sub(lambda match: rb"\ufffd" if match[1] else match[0], data)
    return _IN_TEXT.sub(lambda match: r"\ufffd" if match[1] else match[0], data)


def decode(data: bytes, read: Callable[[bytes], T]) -> T:
    """Decode with `read`; if that fails, decode the repaired JSON."""
    try:
        return read(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        whole = repair(data)
        if whole == data:
            raise
        return read(whole)


def encode(value: Any) -> bytes:
    """Encode a value that Python's own parser has decoded; repair it if necessary."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(msgspec.json.decode(repair(json.dumps(value))))

"""From what a model wrote to JSON: weak models wrap it in prose, fences and second thoughts.

The strategies, in this order: the whole text, fenced blocks, balanced braces. Of several candidates of one kind the
later comes first, because models think aloud before they decide. Everything here is bounded: the text may be hostile.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from portico.surrogates import repair

TEXT_MAX = 512 * 1024
"""Characters that are looked at: the end of a longer text, where the decision is."""
CANDIDATES_MAX = 50
"""Objects in one answer; more is noise."""
DEAD_ENDS_MAX = 32
"""Braces that never close: each costs a walk to the end of the text."""
DEPTH_MAX = 64
"""As everywhere: deeper JSON is an attack on the parser."""

_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_SPECIAL = re.compile(r'["{}\\]')


class Document(NamedTuple):
    value: Any
    loose: bool = False
    """It follows a brace that never closes: it may be a piece of something that was cut off."""


class AnswerPiece(NamedTuple):
    text: str
    loose: bool = False


def documents(text: str) -> Iterator[Document]:
    """The JSON values that `text` may mean, the likeliest first. Texts that are no JSON are passed over."""
    text = text[-TEXT_MAX:]
    seen: set[str] = set()
    for candidate in _candidates(text):
        if candidate.text in seen:
            continue
        seen.add(candidate.text)
        value = _decode(candidate.text)
        if value is not None:
            yield Document(value, candidate.loose)


def _candidates(text: str) -> Iterator[AnswerPiece]:
    yield AnswerPiece(text.strip())
    yield from reversed([AnswerPiece(match[1].strip()) for match in _FENCE.finditer(text)][-CANDIDATES_MAX:])
    yield from reversed(balanced(text))


def balanced(text: str) -> list[AnswerPiece]:
    """The outermost `{...}` pieces in order; braces inside JSON strings do not count."""
    found: list[AnswerPiece] = []
    dead_ends = 0
    start = text.find("{")
    while start >= 0 and len(found) < CANDIDATES_MAX and dead_ends < DEAD_ENDS_MAX:
        end = _closing(text, start)
        if end is None:
            dead_ends += 1
            start = text.find("{", start + 1)
        else:
            found.append(AnswerPiece(text[start:end], dead_ends > 0))
            start = text.find("{", end)
    return found


def _closing(text: str, start: int) -> int | None:
    """Where the object that opens at `start` ends; None when it does not, or nests too deep."""
    depth = 0
    in_string = False
    position = start
    while (match := _SPECIAL.search(text, position)) is not None:
        sign, position = match[0], match.end()
        if in_string:
            if sign == "\\":
                position += 1
            elif sign == '"':
                in_string = False
        elif sign == '"':
            in_string = True
        elif sign == "{":
            depth += 1
            if depth > DEPTH_MAX:
                return None
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return position
    return None


def _decode(candidate: str) -> dict[str, Any] | list[Any] | None:
    if not candidate.startswith(("{", "[")):
        return None
    try:
        # Not strict: models put raw newlines and tabs into their strings.
        value = json.loads(repair(candidate), strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None

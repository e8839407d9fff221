"""JSON as models write it: comments, names without quotes, single quotes, trailing commas, the constants of Python and
JavaScript.

A text that ends too early is an error: half a call must not run. What is inside a string is never changed.
"""

import re
from typing import Any

TEXT_MAX = 4 * 1024 * 1024
"""Characters: as long as a whole answer of a model may be."""
DEPTH_MAX = 64
"""As everywhere: deeper JSON is an attack on the parser."""

_SPACE = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_PLAIN = {quote: re.compile(rf"[^{quote}\\]*") for quote in "\"'`"}
_NAME = re.compile(r"[^\W\d][\w$-]*|\$[\w$-]*")
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)(?![\w.])")
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}


def loads(text: str) -> Any:
    """Raises ValueError."""
    if len(text) > TEXT_MAX:
        raise ValueError("too long")
    reader = _Reader(text)
    value = reader.value(0)
    reader.space()
    if reader.at < len(text):
        raise reader.problem("something follows the value")
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def problem(self, words: str) -> ValueError:
        return ValueError(f"{words} at character {self.at}")

    def space(self) -> str:
        """Pass over whitespace and comments; return the next sign, or an empty text at the end."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found is not None else self.at
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Any:
        sign = self.space()
        if depth > DEPTH_MAX:
            raise self.problem("too deep")
        if sign == "{":
            return self.object(depth)
        if sign == "[":
            return self.array(depth)
        if sign and sign in _PLAIN:
            return self.string(sign)
        if (number := _NUMBER.match(self.text, self.at)) is not None:
            self.at = number.end()
            return _number(number[0].replace("_", ""))
        if (word := _NAME.match(self.text, self.at)) is not None and word[0].lower() in (*_CONSTANTS, "none"):
            self.at = word.end()
            return _CONSTANTS.get(word[0].lower())
        raise self.problem("no value" if sign else "the text ends too early")

    def object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while self.space() != "}":
            name = self.name()
            if self.space() != ":":
                raise self.problem("no colon")
            self.at += 1
            found[name] = self.value(depth + 1)
            self.separator("}")
        self.at += 1
        return found

    def array(self, depth: int) -> list[Any]:
        self.at += 1
        found: list[Any] = []
        while self.space() != "]":
            found.append(self.value(depth + 1))
            self.separator("]")
        self.at += 1
        return found

    def separator(self, end: str) -> None:
        sign = self.space()
        if sign == ",":
            self.at += 1
        elif sign != end:
            raise self.problem("no comma" if sign else "the text ends too early")

    def name(self) -> str:
        sign = self.space()
        if sign and sign in "\"'":
            return self.string(sign)
        word = _NAME.match(self.text, self.at)
        if word is None:
            raise self.problem("no name" if sign else "the text ends too early")
        self.at = word.end()
        return word[0]

    def string(self, quote: str) -> str:
        """Line breaks are part of it: models write them without an escape."""
        self.at += 1
        pieces: list[str] = []
        while True:
            plain = _PLAIN[quote].match(self.text, self.at)
            assert plain is not None  # it also matches nothing
            pieces.append(plain[0])
            self.at = plain.end()
            sign = self.text[self.at : self.at + 1]
            if not sign:
                raise self.problem("a string does not end")
            self.at += 1
            if sign == quote:
                return "".join(pieces)
            pieces.append(self.escape())

    def escape(self) -> str:
        sign = self.text[self.at : self.at + 1]
        self.at += 1
        size = {"u": 4, "x": 2}.get(sign)
        if size is None:
            return _ESCAPES.get(sign, sign)
        code = self.unit(size)
        if sign == "u" and 0xD800 <= code < 0xDC00 and self.text.startswith("\\u", self.at):
            self.at += 2
            low = self.unit(4)
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))
            self.at -= 6
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)

    def unit(self, size: int) -> int:
        digits = self.text[self.at : self.at + size]
        if len(digits) < size or re.fullmatch(r"[0-9a-fA-F]+", digits) is None:
            raise self.problem("no character")
        self.at += size
        return int(digits, 16)


def _number(text: str) -> int | float:
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
    if digits[:2].lower() == "0x":
        return sign * int(digits, 16)
    return sign * (int(digits) if digits.isdecimal() and digits.isascii() else float(digits))

"""Stream the prose inside a model's JSON while the model is still writing it.

A step is JSON, but its commentary and its summary are prose, and a person should see them grow. This reads the JSON as
it comes, character by character, and gives out the values of those two keys. It decides nothing: the step itself is
read when it is whole.
"""

import json

KEYS = ("commentary", "finalSummary")
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class PartialJson:
    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escape = ""
        """The escape sequence that has begun."""
        self._high = ""
        """The first half of a surrogate pair."""
        self._key = ""
        self._reading_key = False
        self._is_value = False
        self._aloud = False

    def feed(self, text: str) -> str:
        """Return the new prose."""
        said: list[str] = []
        for sign in text:
            if self._in_string:
                aloud, reading_key = self._aloud, self._reading_key
                piece = self._inside(sign)
                if piece and aloud:
                    said.append(piece)
                elif piece and reading_key:
                    self._key += piece
            else:
                self._outside(sign)
        return "".join(said)

    def _outside(self, sign: str) -> None:
        match sign:
            case '"':
                self._in_string = True
                self._reading_key = self._depth == 1 and not self._is_value
                self._aloud = self._depth == 1 and self._is_value and self._key in KEYS
                if self._reading_key:
                    self._key = ""
            case "{" | "[":
                self._depth += 1
                self._is_value = False
            case "}" | "]":
                self._depth -= 1
            case ":" if self._depth == 1:
                self._is_value = True
            case "," if self._depth == 1:
                self._is_value = False

    def _inside(self, sign: str) -> str:
        if self._escape:
            self._escape += sign
            return self._unescape()
        if sign == "\\":
            self._escape = sign
            return ""
        if sign == '"':
            self._in_string = self._aloud = self._reading_key = False
            return self._half()
        return self._half() + sign

    def _unescape(self) -> str:
        if self._escape[1] != "u":
            sign = self._half() + _SHORT.get(self._escape[1], self._escape[1])
        elif len(self._escape) < 6:
            return ""
        else:
            sign = self._code()
        self._escape = ""
        return sign

    def _half(self) -> str:
        """The replacement for a first half that no second half has followed."""
        half, self._high = self._high, ""
        return "\ufffd" if half else ""

    def _code(self) -> str:
        try:
            sign = str(json.loads(f'"{self._high}{self._escape}"'))
        except ValueError:
            return self._half() + "\ufffd"
        self._high = self._escape if "\ud800" <= sign[-1] <= "\udbff" else ""
        return "".join(
            "\ufffd" if "\ud800" <= each <= "\udfff" else each for each in sign[: -1 if self._high else None]
        )

"""Masks known secret values in text: the value itself and the forms in which programs print it.

The attack: a command prints its token (`set -x`, a debug log, an echo of a header), also encoded or in two writes.
A value that a program changes in another way (encrypts, reverses, spells out) is not found.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

SHORTEST = 4
"""Characters of a value. A shorter one would be found in most texts, and masking it would destroy them."""
_PART = 8
"""Characters of a line of a value, or of an encoded form. Shorter parts are found by chance."""
_WRAPPED = (64, 76)
"""Line lengths of `openssl base64` and `base64`."""


def forms(value: str) -> set[bytes]:
    """The byte sequences that stand for this value in an output."""
    texts = {value, value.strip()}
    texts |= {line.strip() for line in value.splitlines() if len(line.strip()) >= _PART}
    found = {text for text in texts if len(text) >= SHORTEST}
    for text in tuple(found):
        found |= {each for each in (*_escaped(text), *_encoded(text.encode())) if len(each) >= SHORTEST}
    return {each.encode("utf-8", "surrogatepass") for each in found}


def _escaped(text: str) -> Iterator[str]:
    for each in (quote(text, safe=""), quote(text), quote_plus(text)):
        yield each
        yield _lower_escapes(each)
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield json.dumps(text)[1:-1].replace("/", "\\/")
    from html import escape  # late import: its tables are large, and most hosts have no secret

    yield escape(text)
    yield escape(text, quote=False)
    yield text.replace("'", "'\"'\"'")
    yield text.replace("'", "'\\''")


def _lower_escapes(text: str) -> str:
    head, *rest = text.split("%")
    return head + "".join(f"%{each[:2].lower()}{each[2:]}" for each in rest)


def _encoded(data: bytes) -> Iterator[str]:
    found = [data.hex(), data.hex().upper(), base64.b64encode(data).decode(), *_inner_base64(data)]
    for width in _WRAPPED:
        whole = base64.b64encode(data).decode()
        found += [whole[start : start + width] for start in range(0, len(whole), width)]
    for each in found:
        if len(each) >= _PART:
            yield each
            yield each.replace("+", "-").replace("/", "_")


def _inner_base64(data: bytes) -> Iterator[str]:
    """The value inside of a longer encoded text, such as `user:token`: the characters that depend on it alone, for
    each of the three positions at which it can begin."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data).decode()
        yield encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]


class Mask:
    """Replaces every known value by `[redacted: NAME]`."""

    def __init__(self, values: Mapping[str, Iterable[str]]) -> None:
        """`values`: by name; several for a secret that was changed."""
        self.forms = [(form, name) for name, each in values.items() for value in each for form in forms(value)]

    def text(self, text: str) -> str:
        if not self.forms:
            return text
        data = text.encode("utf-8", "surrogatepass")
        return self.data(data).decode("utf-8", "surrogatepass")

    def beginning(self, text: str) -> str:
        """Mask a text that was cut. Its end is left out if it may be the beginning of a value."""
        return self.stream().feed(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")

    def data(self, data: bytes) -> bytes:
        return _replaced(data, self.spans(data))

    def document(self, value: Any) -> Any:
        """Mask every text in a value, at any depth."""
        if not self.forms:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.document(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.document(each) for each in value]
        return value

    def stream(self) -> "MaskedStream":
        return MaskedStream(self)

    def spans(self, data: bytes) -> list[tuple[int, int, str]]:
        """Where values are, in order. Overlapping ones are one span, so no end of a value is left over."""
        merged: list[tuple[int, int, str]] = []
        for start, end, name in sorted(self._found(data)):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
            else:
                merged.append((start, end, name))
        return merged

    def _found(self, data: bytes) -> Iterator[tuple[int, int, str]]:
        for form, name in self.forms:
            at = data.find(form)
            while at >= 0:
                yield at, at + len(form), name
                at = data.find(form, at + 1)

    def open_at(self, data: bytes) -> int:
        """The position at the end of the data from which a value may have begun; its length if there is none."""
        found = len(data)
        for form, _ in self.forms:
            at = data.find(form[:1], max(0, len(data) - len(form) + 1))
            while 0 <= at < found:
                if form.startswith(data[at:]):
                    found = at
                at = data.find(form[:1], at + 1)
        return found


class MaskedStream:
    """Masks data that arrives in parts. The end of a part is held back while it may be the beginning of a value."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        self._held += data
        cut, spans = self._mask.open_at(self._held), self._mask.spans(self._held)
        cut = min((start for start, end, _ in spans if start < cut < end), default=cut)
        ready, self._held = self._held[:cut], self._held[cut:]
        return _replaced(ready, [span for span in spans if span[1] <= cut])

    def close(self) -> bytes:
        rest, self._held = self._held, b""
        return self._mask.data(rest)


def _replaced(data: bytes, spans: list[tuple[int, int, str]]) -> bytes:
    if not spans:
        return data
    parts, at = [], 0
    for start, end, name in spans:
        parts += [data[at:start], f"[redacted: {name}]".encode()]
        at = end
    return b"".join((*parts, data[at:]))

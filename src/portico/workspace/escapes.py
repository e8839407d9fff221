"""Terminal output taken apart: plain text here, escape sequences there.

Outside a real terminal view an escape sequence is an attack: it can set the clipboard, hide text or forge a prompt.
`plain` is for such places. A read may end in the middle of a sequence, so the scanner keeps what is unfinished.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

SEQUENCE_MAX = 64 * 1024  # characters of one sequence; longer ones (pictures) never end for us and are dropped

# In the order tried: strings that end with BEL or ST (OSC, DCS, SOS, PM, APC), CSI, short escapes. For any text
# after an ESC, one of them matches or waits for more: a broken sequence must not delay the text after it.
# C1 controls (\x80 to \x9f) are the same controls as one character.
_STRING_END = r"(?:\x07|\x1b\\|\x9c|[\x18\x1a]|(?=\x1b[^\\]))"
_STRING = r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])(?P<body>[^\x07\x1b\x9c\x18\x1a]*)" + _STRING_END
_CSI = r"(?:\x1b\[|\x9b)[ -?]*(?:[@-~]|(?=[^ -~]))"
_SHORT = r"\x1b[ -/]+(?:[0-~]|(?=[^ -~]))|\x1b[0-OQ-WYZ\\`-~]|\x1b(?=[^ -~])"
_WHOLE = re.compile(f"(?P<string>{_STRING})|{_CSI}|{_SHORT}")
_START = re.compile(r"[\x1b\x90\x98\x9b\x9d\x9e\x9f]")
# What is left in plain text: tabs, line ends and printable characters.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class TerminalPiece(NamedTuple):
    """`text` as it came. `body` is the inside of a string sequence (`633;C` of an OSC), None for plain text."""

    text: str
    escape: bool = False
    body: str = ""


class Scanner:
    """Cuts a stream into pieces; feed it as the text comes."""

    def __init__(self) -> None:
        self.rest = ""
        self.dropping = False

    def feed(self, text: str) -> Iterator[TerminalPiece]:
        text = self.rest + text
        self.rest = ""
        if self.dropping:
            text = self._drop(text)
        at = 0
        while at < len(text):
            start = _START.search(text, at)
            if start is None:
                yield TerminalPiece(text[at:])
                return
            if start.start() > at:
                yield TerminalPiece(text[at : start.start()])
            found = _WHOLE.match(text, start.start())
            if found is None:
                self._keep(text[start.start() :])
                return
            at = found.end()
            yield TerminalPiece(found[0], True, _body(found))

    def _keep(self, text: str) -> None:
        self.dropping = len(text) > SEQUENCE_MAX
        self.rest = "" if self.dropping else text

    def _drop(self, text: str) -> str:
        """Skips to the end of a sequence that was too long."""
        end = re.search(r"[\x07\x9c\x18\x1a]|\x1b\\?", text)
        if end is None:
            return ""
        self.dropping = False
        return text[end.end() :]


def _body(found: re.Match[str]) -> str:
    is_osc = found[0].startswith(("\x1b]", "\x9d"))
    return found["body"] if found["string"] and is_osc else ""


class Plain:
    """Text without escapes and control characters, for everything that is no terminal."""

    def __init__(self) -> None:
        self.scanner = Scanner()

    def feed(self, text: str) -> str:
        return "".join(_CONTROL.sub("", piece.text) for piece in self.scanner.feed(text) if not piece.escape)


def plain(text: str) -> str:
    return Plain().feed(text)


_UNSEEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Controls, signs that turn the direction of writing, and signs that show nothing."""


def visible(text: str) -> str:
    """Escape invisible characters (`\\u202e`), for texts on which a person bases a decision, and for log lines. Line
    ends and tabs are kept."""
    return re.sub(_UNSEEN, lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """JSON text with what cannot be seen in its strings as escapes: the same values, and nothing hidden on a screen."""
    return re.sub(_UNSEEN, lambda found: json.dumps(found[0])[1:-1], text)

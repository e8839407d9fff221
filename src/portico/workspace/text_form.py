"""How a text file is written: its encoding, its byte order mark and its line endings. An edit keeps all three."""

import difflib

from msgspec import Struct

from portico.kernel.errors import BadRequest

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_SAMPLE = 8192
_CONTROL = frozenset(range(32)) - {7, 8, 9, 10, 12, 13, 27}
"""Bytes that texts do not have."""


class TextForm(Struct, frozen=True):
    encoding: str
    mark: bytes
    written: str
    """The text with its own line endings."""

    @property
    def text(self) -> str:
        """With `\\n` at the ends of lines, as models write it."""
        return self.written.replace("\r\n", "\n")

    def encode(self, text: str) -> bytes:
        """The file's new bytes. Lines that stay keep their endings; new lines get those that most lines have."""
        text = self._with_endings(text.replace("\r\n", "\n"))
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            sign = text[error.start]
            if "\ud800" <= sign <= "\udfff":
                raise BadRequest(
                    "The content has characters that are no text (lone surrogates).", field="content"
                ) from error
            raise BadRequest(
                f"The file is {self.encoding} and has no {sign!r}: write it without.", field="content"
            ) from error

    def _with_endings(self, text: str) -> str:
        windows, lines = self.written.count("\r\n"), self.written.count("\n")
        if not windows:
            return text
        if windows == lines:
            return text.replace("\n", "\r\n")
        usual = "\r\n" if 2 * windows >= lines else "\n"
        return "".join(_mixed(self.written.splitlines(keepends=True), text.splitlines(keepends=True), usual))


def _mixed(before: list[str], after: list[str], usual: str) -> list[str]:
    plain = [line.replace("\r\n", "\n") for line in before]
    made: list[str] = []
    for tag, start, end, first, last in difflib.SequenceMatcher(None, plain, after, autojunk=False).get_opcodes():
        if tag == "equal":
            made += before[start:end]
        else:
            made += [line.replace("\n", usual) for line in after[first:last]]
    return made


def read_form(data: bytes) -> TextForm | None:
    """None: it is no text. UTF-8, UTF-16 with or without its mark, else Windows' Latin-1."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding, mark)
    if b"\0" in data[:_SAMPLE]:
        encoding = _utf16(data[:_SAMPLE])
        return _decoded(data, encoding, b"") if encoding else None
    found = _decoded(data, "utf-8", b"")
    if found is not None or _CONTROL & set(data[:_SAMPLE]):
        return found
    return _decoded(data, "cp1252", b"") or _decoded(data, "latin-1", b"")


def _decoded(data: bytes, encoding: str, mark: bytes) -> TextForm | None:
    try:
        return TextForm(encoding, mark, data.decode(encoding))
    except UnicodeDecodeError:
        return None


def _utf16(sample: bytes) -> str:
    """Text in Latin letters has a zero in every second byte."""
    pairs = max(1, len(sample) // 2)
    low, high = sample[0::2].count(0) / pairs, sample[1::2].count(0) / pairs
    if high > 0.7 and low < 0.1:
        return "utf-16-le"
    return "utf-16-be" if low > 0.7 and high < 0.1 else ""

"""Encodings, byte order marks and line endings of text files survive an edit."""

import pytest

from portico.kernel.errors import BadRequest
from portico.workspace.text_form import read_form

FORMS: dict[str, tuple[bytes, str]] = {
    "UTF-8": ("é\nb\n".encode(), "utf-8"),
    "UTF-8 with a mark": (b"\xef\xbb\xbf" + "é\nb\n".encode(), "utf-8"),
    "Latin-1": ("é\nb\n".encode("latin-1"), "cp1252"),
    "Windows' signs": ("“é”\nb\n".encode("cp1252"), "cp1252"),
    "UTF-16 with a mark": ("é\nb\n".encode("utf-16"), "utf-16-le"),
    "UTF-16, the other order": (b"\xfe\xff" + "é\nb\n".encode("utf-16-be"), "utf-16-be"),
    "UTF-16 without a mark": ("hello\nb\n".encode("utf-16-le"), "utf-16-le"),
    "CRLF": (b"a\r\nb\r\n", "utf-8"),
    "CRLF in UTF-16": ("a\r\nb\r\n".encode("utf-16"), "utf-16-le"),
    "no newline at the end": (b"a\nb", "utf-8"),
    "mixed": (b"a\r\nx\nb\r\nc\n", "utf-8"),
    "empty": (b"", "utf-8"),
    "one line": (b"b", "utf-8"),
}


@pytest.mark.parametrize(("data", "encoding"), FORMS.values(), ids=FORMS)
def test_what_is_not_changed_stays_byte_for_byte(data: bytes, encoding: str) -> None:
    form = read_form(data)
    assert form is not None
    assert (form.encoding, "\r\n" in form.text) == (encoding, False)
    assert form.encode(form.text) == data
    changed = form.encode(form.text.replace("b", "c d"))
    assert form.encode(form.text.replace("b", "c d").replace("c d", "b")) == data
    assert (changed == data) is (b"b" not in data)


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (b"a\r\nb\r\n", "a\nnew\nb\n", b"a\r\nnew\r\nb\r\n"),
        (b"a\r\nb\r\nc\n", "a\nnew\nb\nc\n", b"a\r\nnew\r\nb\r\nc\n"),
        (b"a\nb\nc\r\n", "a\nnew\nb\nc\n", b"a\nnew\nb\nc\r\n"),
        (b"a\r\nb", "a\nb\n", b"a\r\nb\r\n"),
        (b"a\r\n", "x\r\ny\n", b"x\r\ny\r\n"),
    ],
)
def test_new_lines_end_as_most_lines_do(before: bytes, text: str, after: bytes) -> None:
    form = read_form(before)
    assert form is not None
    assert form.encode(text) == after


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0\0", b"\0" * 20, b"\x01\x02\xff\xfe" * 9, b"\x7fELF\x02\x01\x01\0"]
)
def test_what_is_no_text(data: bytes) -> None:
    assert read_form(data) is None


@pytest.mark.parametrize(("data", "words"), [(b"\xe9", "cp1252 and has no"), (b"a", "lone surrogates")])
def test_a_character_that_the_file_cannot_have(data: bytes, words: str) -> None:
    form = read_form(data)
    assert form is not None
    with pytest.raises(BadRequest, match=words):
        form.encode("\u4e2d" if data == b"\xe9" else "\ud800")

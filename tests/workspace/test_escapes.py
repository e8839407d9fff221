"""Escape sequences are taken out whole, however the stream is cut."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.workspace import escapes
from portico.workspace.escapes import Plain, Scanner, plain, visible, visible_json


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]52;c;ZXZpbA==\x1b\\text", "text"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1bPq#0\x1b\\text", "text"),
        ("\x1b(Btext\x1b7\x1bc", "text"),
        ("\x9b31mtext\x9d0;x\x9c", "text"),
        ("a\x08b\x07c\x7f\td\r\n", "abc\td\r\n"),
        ("\x1b[1 2;émore", "émore"),
        ("\x1b]open\x1b[31mtext", "text"),
        ("\x1b\x1b[31mtext", "text"),
    ],
)
def test_plain(text: str, left: str) -> None:
    assert plain(text) == left


pieces = st.text("ab;\x1b[]()P\\m0\x07\x9b\x9c\x9d 6é\n", max_size=30)


@given(pieces, st.lists(st.integers(0, 30)))
def test_where_the_stream_is_cut_does_not_matter(text: str, cuts: list[int]) -> None:
    edges = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    scanner = Plain()
    assert "".join(scanner.feed(text[a:b]) for a, b in pairwise(edges)) == plain(text)


@given(pieces)
def test_nothing_is_lost_by_taking_apart(text: str) -> None:
    scanner = Scanner()
    assert "".join(piece.text for piece in scanner.feed(text)) + scanner.rest == text


def test_an_endless_sequence_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(escapes, "SEQUENCE_MAX", 100)
    scanner = Plain()
    assert scanner.feed("before\x1b]0;" + "x" * 200) == "before"
    assert scanner.feed("x" * 200) == ""
    assert len(scanner.scanner.rest) == 0
    assert scanner.feed("x\x07after") == "after"


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u200b", "\ufeff", "\x9b", "\U000e0041", "\x7f"])
def test_json_shows_what_cannot_be_seen(sign: str) -> None:
    """`--json` printed U+202E as it is: on a terminal it turns the direction of the rest of the line."""
    value = {"title": f"a{sign}b", "é": "漢字\n\t"}
    for text in (json.dumps(value, ensure_ascii=False), json.dumps(value, ensure_ascii=False, indent=2)):
        shown = visible_json(text)
        assert sign not in shown
        assert "漢字" in shown
        assert json.loads(shown) == value


def test_what_cannot_be_seen_is_spelled_out() -> None:
    assert visible("rm \u202e txt.exe\u2066") == "rm \\u202e txt.exe\\u2066"
    assert visible("a\u200bb\x1b[2J\r") == "a\\u200bb\\x1b[2J\\r"
    assert visible("plain äöü\n\ttext 👩\u200d💻") == "plain äöü\n\ttext 👩\u200d💻"

"""Search and replace: exactly one place, or a loud no that helps."""

import pytest

from portico.kernel.errors import BadRequest
from portico.workspace.replacement import replace, replace_one

TEXT = "def one():\n    return 1\n\ndef two():\n    return 1\n"


@pytest.mark.parametrize(
    ("search", "replacement", "after"),
    [
        (
            "def one():\n    return 1",
            "def one():\n    return 2",
            "def one():\n    return 2\n\ndef two():\n    return 1\n",
        ),
        ("def two", "def zwei", "def one():\n    return 1\n\ndef zwei():\n    return 1\n"),
        ("\n\ndef two():\n    return 1\n", "\n", "def one():\n    return 1\n"),
    ],
)
def test_the_one_place_is_replaced(search: str, replacement: str, after: str) -> None:
    assert replace(TEXT, search, replacement) == after


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("", "is empty"),
        ("return 1", r"occurs 2 times \(lines 2, 5\)"),
        ("def  one():", "nearest line is 1: 'def one"),
        ("    return 1  ", "nearest line is 2"),
        ("class Nothing(Here):", "Read the file again"),
    ],
)
def test_anything_else_changes_nothing_and_says_why(search: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        replace(TEXT, search, "x")


TOLERATED: dict[str, tuple[str, str, str, str]] = {
    "trailing whitespace in the file": ("a  \nb\nc\n", "a\nb", "x", "x\nc\n"),
    "trailing whitespace in the search": ("a\nb\nc\n", "a \nb\t", "x", "x\nc\n"),
    "less indentation in the search": (
        "class A:\n    def f(self):\n        return 1\n",
        "def f(self):\n    return 1",
        "def f(self):\n    x = 1\n\n    return x",
        "class A:\n    def f(self):\n        x = 1\n\n        return x\n",
    ),
    "more indentation in the search": ("if x:\n    y()\n", "        if x:\n            y()", "        z()", "z()\n"),
    "tabs in the file": ("\tif x:\n\t\ty()\n", "if x:\n\ty()", "if z:\n\ty()", "\tif z:\n\t\ty()\n"),
    "newlines around the search": ("a  \nb\nc\n", "\na\nb\n", "\nx\n", "x\nc\n"),
    "a replacement that deletes": ("a \nb\nc\n", "a\nb", "", "c\n"),
}


@pytest.mark.parametrize(("text", "search", "replacement", "after"), TOLERATED.values(), ids=TOLERATED)
def test_whitespace_may_differ_where_one_place_is_meant(text: str, search: str, replacement: str, after: str) -> None:
    made = replace_one(text, search, replacement)
    assert made.text == after
    assert "differs from 'search'" in made.note


@pytest.mark.parametrize(
    ("text", "search"),
    [
        ("  a\n  b\n\n    a\n    b\n", "a\nb"),
        ("a  \nb\n\na \nb\n", "a\nb"),
        ("if x:\n  y()\nz()\n", "if x:\n    y()\n    z()"),
        ("a\n", " \n \n"),
    ],
    ids=[
        "two places by indentation",
        "two places by trailing whitespace",
        "indentation that is not one shift",
        "blank",
    ],
)
def test_whitespace_that_leaves_a_doubt_changes_nothing(text: str, search: str) -> None:
    with pytest.raises(BadRequest, match="does not occur"):
        replace_one(text, search, "x")


def test_every_place_is_replaced_where_that_is_wanted() -> None:
    assert replace_one(TEXT, "return 1", "return 2", every=True) == (TEXT.replace("1", "2"), "", 2)


def test_the_nearest_block_is_shown() -> None:
    with pytest.raises(BadRequest, match=r"nearest block is in lines 4 to 5:\ndef two\(\):\n    return 1"):
        replace_one(TEXT, "def two():\n    return 3\n", "x")
    with pytest.raises(BadRequest, match=r"nearest block is in lines 1 to 5"):
        replace_one(TEXT, "def one():\n    return 1\n\ndef three():\n    return 1\n", "x")

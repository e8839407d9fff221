"""Search and replace: exactly one place, or a loud no that helps."""

import pytest

from portico.errors import BadRequest
from portico.workspace.replacement import replace

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

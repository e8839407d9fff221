"""How parameters of a client's commands are read, and which word before the cursor is completed."""

from typing import Any

import pytest

from portico.doors.ahp.act.command import Method, optional, text, texts
from portico.doors.ahp.act.completions import _word
from portico.doors.ahp.wire.versions import SEED, Dialect
from portico.kernel.errors import BadRequest


@pytest.mark.parametrize(
    ("params", "kind", "found"),
    [
        ({}, str, None),
        ({"x": None}, str, None),
        ({"x": ""}, str, ""),
        ({"x": "a"}, str, "a"),
        ({"x": 0}, int, 0),
        ({"x": True}, bool, True),
        ({"x": []}, list, []),
        ({"x": {}}, dict, {}),
    ],
)
def test_a_parameter_may_be_left_out(params: dict[str, Any], kind: type, found: Any) -> None:
    assert optional(params, "x", kind) == found


@pytest.mark.parametrize(
    ("value", "kind"),
    [(7, str), ("7", int), (True, int), (1, bool), (1.5, int), ({}, list), ([], dict), (["a"], str)],
)
def test_a_parameter_of_another_type_is_named(value: Any, kind: type) -> None:
    """A yes is no number, although Python says so."""
    with pytest.raises(BadRequest, match=f"must be of type {kind.__name__}") as refused:
        optional({"x": value}, "x", kind)
    assert refused.value.field == "x"


@pytest.mark.parametrize("params", [{}, {"x": None}, {"x": ""}])
def test_a_text_that_is_needed_is_not_empty(params: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="'x' is missing"):
        text(params, "x")


@pytest.mark.parametrize(("value", "found"), [(None, []), ([], []), (["a", "b"], ["a", "b"])])
def test_a_list_of_texts(value: Any, found: list[str]) -> None:
    assert texts({"x": value}, "x") == found


@pytest.mark.parametrize("value", [["a", 1], [None], [["a"]]])
def test_a_list_of_anything_else(value: Any) -> None:
    with pytest.raises(BadRequest, match="list of strings"):
        texts({"x": value}, "x")


async def nothing(connection: Any, params: Any) -> None: ...


@pytest.mark.parametrize(
    ("method", "known"),
    [
        (Method(nothing), [SEED, "0.5.1", "0.9.0", "1.0.0"]),
        (Method(nothing, seed=False), ["0.5.1", "0.9.0", "1.0.0"]),
        (Method(nothing, since="0.9.0", seed=False), ["0.9.0", "1.0.0"]),
        (Method(nothing, since="1.0.0", seed=False), ["1.0.0"]),
    ],
    ids=["of all versions", "not of version 1", "since 0.9", "since 1.0"],
)
def test_which_versions_have_a_command(method: Method, known: list[str]) -> None:
    versions = [SEED, "0.5.1", "0.9.0", "1.0.0"]
    assert [version for version in versions if method.known(Dialect(version, lambda: 0))] == known


@pytest.mark.parametrize(
    ("said", "offset", "word"),
    [
        ("", None, ("", 0, 0)),
        ("@src", None, ("@src", 0, 4)),
        ("look at @src", None, ("@src", 8, 12)),
        ("look at @src please", 12, ("@src", 8, 12)),
        ("look at @src please", 10, ("@s", 8, 10)),
        ("a\n/plan", None, ("/plan", 2, 7)),
        ("a\t#x", None, ("#x", 2, 4)),
        ("look ", None, ("", 5, 5)),
        ("@src", 99, ("@src", 0, 4)),
        ("@src", -5, ("", 0, 0)),
        ("😀 @src", None, ("@src", 3, 7)),
        ("@😀", None, ("@😀", 0, 3)),
        ("@😀x", 2, ("@", 1, 2)),
    ],
    ids=[
        "nothing",
        "one word",
        "the last word",
        "the word at the cursor",
        "the part before the cursor",
        "a new line",
        "a tab",
        "behind a blank",
        "a cursor beyond the end",
        "a cursor before the start",
        "behind a sign that counts twice",
        "with such a sign",
        "in the middle of such a sign",
    ],
)
def test_the_word_before_the_cursor(said: str, offset: int | None, word: tuple[str, int, int]) -> None:
    """Clients count in UTF-16."""
    assert _word(said, offset) == word

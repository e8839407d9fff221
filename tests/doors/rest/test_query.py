"""Query parameters: a wrong one is named, never taken for a default."""

import pytest
from starlette.requests import Request

from portico.doors.rest.query import flag, number
from portico.kernel.errors import BadRequest


def asking(query: str) -> Request:
    return Request({"type": "http", "query_string": query.encode(), "headers": []})


@pytest.mark.parametrize(
    ("query", "found"),
    [("", None), ("x=true", True), ("x=1", True), ("x=false", False), ("x=0", False), ("y=true", None)],
)
def test_a_flag_is_said_or_left_out(query: str, found: bool | None) -> None:
    assert flag(asking(query), "x") is found


@pytest.mark.parametrize("wrong", ["yes", "no", "", "TRUE", "2", "tru"])
def test_a_wrong_flag_is_named(wrong: str) -> None:
    with pytest.raises(BadRequest, match="'x' is true or false") as refused:
        flag(asking(f"x={wrong}"), "x")
    assert refused.value.field == "x"


@pytest.mark.parametrize(
    ("query", "found"),
    [("", 5), ("n=0", 0), ("n=9", 9), ("n=007", 7), ("n=10", 10), ("m=3", 5)],
)
def test_a_number_within_its_bounds(query: str, found: int) -> None:
    assert number(asking(query), "n", 5, 0, 10) == found


@pytest.mark.parametrize(
    "wrong",
    ["-1", "11", "1.5", "1e3", "", "+3", "%203", "x", "0x1", "9" * 19, "%D9%A3", "%C2%B2"],
    ids=lambda text: f"n={text}",
)
def test_a_wrong_number_is_named_with_its_bounds(wrong: str) -> None:
    """Also digits of other scripts beyond the bounds, and superscripts, which are no decimals."""
    with pytest.raises(BadRequest, match="'n' is a number from 1 to 2") as refused:
        number(asking(f"n={wrong}"), "n", 1, 1, 2)
    assert refused.value.field == "n"


def test_without_bounds_a_number_fits_the_log() -> None:
    assert number(asking("n=" + "9" * 18), "n", 0) == 10**18 - 1
    with pytest.raises(BadRequest):
        number(asking("n=1" + "0" * 18), "n", 0)

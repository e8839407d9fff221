"""Live output that grows: bounded at every moment, and cut in the end as if it had been kept whole."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.kernel import limits
from portico.kernel.tool_output import cut, grow
from tests.property.scene import pure

KEEP = 40


@pytest.fixture(autouse=True)
def _short() -> Iterator[None]:
    with patch.object(limits, "TOOL_OUTPUT_CHARS", KEEP):
        yield


@pure
@given(st.lists(st.text("ab\n", max_size=200), max_size=20))
def test_it_is_cut_as_if_it_had_been_kept_whole(pieces: list[str]) -> None:
    output, left_out = "", 0
    for piece in pieces:
        output, left_out = grow(output, left_out, piece)
        assert len(output) <= 4 * KEEP
    whole = "".join(pieces)
    assert cut(output, left_out) == cut(whole)
    assert output[:KEEP] == whole[:KEEP], "what was shown first stays as it was"
    assert left_out or output == whole


def test_a_short_output_is_whole() -> None:
    assert grow("x" * KEEP, 0, "y" * 3 * KEEP) == ("x" * KEEP + "y" * 3 * KEEP, 0)
    assert cut("x" * KEEP) == "x" * KEEP


def test_a_long_one_says_how_much_is_missing() -> None:
    output, left_out = grow("a" * KEEP, 0, "b" * 1000 + "c" * KEEP)
    assert output == "a" * KEEP + "\n... 1000 characters left out ...\n" + "c" * KEEP
    assert cut(output, left_out) == "a" * 20 + "\n... 1040 characters left out ...\n" + "c" * 20

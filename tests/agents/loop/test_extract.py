import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.agents.loop.extract import TEXT_MAX, balanced, documents


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('  \n{"a": 1}\n ', [{"a": 1}]),
        ('Sure!\n```json\n{"a": 1}\n```\nDone.', [{"a": 1}]),
        ('```\n{"a": 1}\n```', [{"a": 1}]),
        ('First I thought {"a": 1} but then {"b": 2}.', [{"b": 2}, {"a": 1}]),
        ('```json\n{"a": 1}\n```\nor\n```json\n{"b": 2}\n```', [{"b": 2}, {"a": 1}]),
        ('{"text": "a } brace and a \\" quote {"} tail', [{"text": 'a } brace and a " quote {'}]),
        ("use { to open; then " + '{"a": {"b": 1}}', [{"a": {"b": 1}}]),
        ('{"raw": "two\nlines"}', [{"raw": "two\nlines"}]),
        ('[{"tool": "x"}]', [[{"tool": "x"}], {"tool": "x"}]),
        ("no json at all", []),
        ("", []),
        ('{"a": 1', []),
        ("{'a': 1}", []),
        ('{"a": 1}{"b": 2}', [{"b": 2}, {"a": 1}]),
    ],
)
def test_each_strategy_finds_its_documents_the_likeliest_first(text: str, expected: list[object]) -> None:
    assert [found.value for found in documents(text)] == expected


def test_the_end_of_a_long_text_counts() -> None:
    assert [found.value for found in documents("x" * (TEXT_MAX * 2) + '{"a": 1}')] == [{"a": 1}]


@pytest.mark.parametrize(
    "hostile",
    ["{" * 300_000, '{"a":' * 100_000, "[" * 300_000, '\\"' * 200_000 + "{" * 1000, '{"' * 150_000, "```\n" * 100_000],
)
def test_hostile_text_costs_little_and_means_nothing(hostile: str) -> None:
    began = time.process_time()
    assert list(documents(hostile)) == []
    assert time.process_time() - began < 3


@given(st.text(), st.text(alphabet='{}[]"\\` \n'))
def test_any_text_is_survived(before: str, noise: str) -> None:
    for found in documents(before + noise):
        assert isinstance(found.value, dict | list)


@given(
    st.text(alphabet=st.characters(exclude_characters="{`[", codec="utf-8")),
    st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text()), min_size=1),
)
def test_an_object_in_prose_is_found(prose: str, value: dict[str, object]) -> None:
    assert value in [found.value for found in documents(f"{prose} {json.dumps(value)}")]


def test_outermost_braces_come_in_order() -> None:
    assert [piece.text for piece in balanced('a {"x": {"y": 1}} b {} c')] == ['{"x": {"y": 1}}', "{}"]

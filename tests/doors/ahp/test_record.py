"""The small tools under every state on the wire: nothing given is changed, and the numbers of a record never meet."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.doors.ahp.wire import numbers, origin, record, status
from portico.doors.ahp.wire.versions import Dialect

STATE: dict[str, Any] = {"a": 1, "b": None, "c": [1]}


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({}, STATE),
        ({"a": 2}, {"a": 2, "b": None, "c": [1]}),
        ({"a": None}, {"b": None, "c": [1]}),
        ({"b": None}, {"a": 1, "c": [1]}),
        ({"d": 4}, {"a": 1, "b": None, "c": [1], "d": 4}),
        ({"d": None}, STATE),
        ({"a": 0}, {"a": 0, "b": None, "c": [1]}),
        ({"a": False, "c": []}, {"a": False, "b": None, "c": []}),
    ],
    ids=str,
)
def test_none_removes_a_field_and_all_others_stay(fields: dict[str, Any], after: dict[str, Any]) -> None:
    before = copy.deepcopy(STATE)
    assert record.put(before, **fields) == after
    assert before == STATE


def test_what_is_empty_is_absent() -> None:
    assert record.present(a=1, b=0, c="", d=None, e=[], f={}, g=False, h="x") == {"a": 1, "h": "x"}


ENTRIES: list[Any] = [{"id": "a", "v": 1}, {"id": "b", "v": 2}, "no record", {"id": None}, {"id": "b", "v": 3}]


@pytest.mark.parametrize(
    ("value", "key", "at"),
    [("a", "id", 0), ("b", "id", 1), ("c", "id", None), (None, "id", None), (3, "v", 4), ("a", "v", None)],
)
def test_where_a_record_is(value: object, key: str, at: int | None) -> None:
    assert record.index_of(ENTRIES, value, key) == at


@pytest.mark.parametrize(
    ("entry", "after"),
    [
        ({"id": "a", "v": 9}, [{"id": "a", "v": 9}, {"id": "b", "v": 2}]),
        ({"id": "b"}, [{"id": "a", "v": 1}, {"id": "b"}]),
        ({"id": "c"}, [{"id": "a", "v": 1}, {"id": "b", "v": 2}, {"id": "c"}]),
        ({"v": 7}, [{"id": "a", "v": 1}, {"id": "b", "v": 2}, {"v": 7}]),
    ],
    ids=["the first", "the last", "a new one", "one without a name"],
)
def test_a_record_takes_its_place_or_the_end(entry: dict[str, Any], after: list[Any]) -> None:
    before = ENTRIES[:2]
    assert record.upsert(before, entry) == after
    assert before == ENTRIES[:2]


@pytest.mark.parametrize(("field", "found"), [("c", [1]), ("b", []), ("z", [])])
def test_a_list_is_empty_where_there_is_none(field: str, found: list[int]) -> None:
    assert record.items(STATE, field) == found


@pytest.mark.parametrize(
    ("at", "with_x", "without"),
    [(0, ["x", "b", "c"], ["b", "c"]), (1, ["a", "x", "c"], ["a", "c"]), (2, ["a", "b", "x"], ["a", "b"])],
)
def test_one_of_a_list(at: int, with_x: list[str], without: list[str]) -> None:
    entries = ["a", "b", "c"]
    assert record.with_item(entries, at, "x") == with_x
    assert record.without_item(entries, at) == without
    assert entries == ["a", "b", "c"]


@given(st.integers(0, 10**9), st.integers(0, numbers.SPAN - 1))
def test_a_number_says_its_record_and_its_place(seq: int, place: int) -> None:
    assert numbers.mark(numbers.number(seq, place)) == (seq, place)
    assert numbers.number(seq, place) < numbers.number(seq + 1, 0) < numbers.FOREIGN


def test_through_a_record_is_behind_all_that_everybody_sees_of_it() -> None:
    last = numbers.number(7, numbers.SHARED - 1)
    assert numbers.through(7) == last
    assert numbers.through(7) < numbers.number(7, numbers.SHARED), "what one client alone hears comes after"
    assert numbers.mark(numbers.through(7)).seq == 7


@pytest.mark.parametrize(
    ("by", "found"),
    [
        ("client:c1#5.chat/delta", ("c1", 5, "chat/delta")),
        ("client:c1#-1.x", ("c1", -1, "x")),
        ("client:a#b#5.x", ("a#b", 5, "x")),
        ("client:c1#5", ("c1", 5, "")),
        ("client:#5.x", None),
        ("client:c1", None),
        ("client:c1#.x", None),
        ("client:c1#five.x", None),
        ("client:c1#5½.x", None),
        ("client:c1#--5.x", None),
        ("token:c1#5.x", None),
        ("", None),
    ],
)
def test_whose_words_an_event_is(by: str, found: tuple[str, int, str] | None) -> None:
    assert origin.read(by) == found


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("client:c1#5.chat/delta", ("c1", "chat")),
        ("client:c1#5.session/titleChanged", ("c1", "session")),
        ("client:c1#5", ("c1", "")),
        ("token:ada", ("", "")),
        ("", ("", "")),
    ],
)
def test_who_spoke_and_on_which_channel(by: str, said: tuple[str, str]) -> None:
    assert origin.speaker(by) == said


@pytest.mark.parametrize("flags", [0, status.IS_READ, status.IS_ARCHIVED, status.IS_READ | status.IS_ARCHIVED, 1 << 20])
@pytest.mark.parametrize("before", [status.IDLE, status.ERROR, status.IN_PROGRESS, status.INPUT_NEEDED])
@pytest.mark.parametrize("now", [status.IDLE, status.ERROR, status.IN_PROGRESS, status.INPUT_NEEDED])
def test_an_activity_takes_the_place_of_another_and_flags_stay(flags: int, before: int, now: int) -> None:
    assert status.activity_bits(before | flags) == before
    assert status.with_activity(before | flags, now) == now | flags


@pytest.mark.parametrize(
    ("kind", "version", "blocks"),
    [
        ("toolConfirmation", "0.7.0", True),
        ("toolConfirmation", "1.0.0", True),
        ("chatInput", "0.8.0", True),
        ("toolClientExecution", "0.7.0", True),
        ("toolClientExecution", "0.8.0", False),
        ("toolClientExecution", "1.0.0", False),
    ],
)
def test_which_request_a_person_has_to_act_on(kind: str, version: str, blocks: bool) -> None:
    assert status.blocks({"kind": kind}, Dialect(version, lambda: 0)) is blocks

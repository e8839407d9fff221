import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from portico.features.jobs import EntryError, load_entry, load_file
from portico.features.jobs.entry import Entry
from portico.features.jobs.load import MAX_DEPTH, EntrySyntaxError, parse
from tests.jobs.samples import Data, alt, entry_data, loop, par, ref, seq, works


def message(data: object) -> str:
    with pytest.raises(EntryError) as caught:
        load_entry(data)
    return str(caught.value)


FULL: Data = entry_data(
    seq(
        ref(modelOverride={"id": "x"}),
        par(ref(), concurrency=2),
        loop(ref(), preCondition=[True, ref()], postCondition=[False, ref()], maxIterations=3),
        alt(ref(), trueWork=ref(), falseWork=ref()),
    ),
    task={
        "availability": {"condition": ["job_boolean_true?"]},
        "criteria": {
            "toolExecuted": ["job_prepare_document"],
            "condition": ["job_boolean_true?"],
            "runConditionInSameSession": True,
            "command": ["make", "check"],
            "failureAction": {"retryTimes": 2, "additionalPrompt": ["again"]},
        },
        "onInterrupt": "ask",
        "timeout": 2.5,
    },
    promptVariables={"v": ["text"]},
    **{"$schema": "entry.schema.json"},
)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The way to every value in plain data."""
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [path] + [place for key, item in items for place in places(item, (*path, key))]


MAPS = {(), ("models",), ("promptVariables",), ("tasks",), ("jobs",)}


def code_path(place: tuple[str | int, ...]) -> str:
    text = "entry"
    for depth, key in enumerate(place):
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f'["{key}"]' if depth and place[:depth] in MAPS else f".{key}"
    return text


def at(data: Any, place: tuple[str | int, ...]) -> Any:
    for key in place:
        data = data[key]
    return data


def test_a_full_entry_loads() -> None:
    assert load_entry(FULL).tasks["write"].timeout == 2.5


OBJECTS = [place for place in places(FULL) if isinstance(at(FULL, place), dict) and (place not in MAPS or not place)]


@pytest.mark.parametrize("place", OBJECTS, ids=code_path)
def test_an_unknown_key_is_named_at_every_level(place: tuple[str | int, ...]) -> None:
    data = copy.deepcopy(FULL)
    at(data, place)["colour"] = "red"
    assert message(data).startswith(f"{code_path(place)}.colour: Unknown key. Known keys: ")


def fits(place: tuple[str | int, ...], value: object) -> bool:
    """Whether a value of the wrong type is no mistake at this place after all."""
    return (
        type(at(FULL, place)) is type(value)
        or (place[-1] == "timeout" and isinstance(value, float))
        or (place[-1] == "command" and isinstance(value, str))
        or (place == ("grid", 0, "jobs", 1) and value is None)
    )


@pytest.mark.parametrize("place", places(FULL)[1:], ids=code_path)
def test_a_wrong_type_is_named_at_every_level(place: tuple[str | int, ...]) -> None:
    for wrong in (object(), 7.5, {"a": 1}, [[]], True, None, "text"):
        if not fits(place, wrong):
            data = copy.deepcopy(FULL)
            at(data, place[:-1])[place[-1]] = wrong
            assert message(data).startswith(code_path(place))


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("kind", "Fork", 'kind: "Fork" is not a valid kind. Known kinds: Ref, Seq, Par, Loop, Alt, Ask, Wait, Each.'),
        ("kind", 3, "kind: Should be a string but is a number."),
        ("works", {}, "works: Should be a list but is an object."),
        ("works", None, "works: Should be a list but is null."),
        ("concurrency", 0, "concurrency: Should be at least 1 but is 0."),
        ("concurrency", 1.5, "concurrency: Should be an integer but is a number."),
        ("concurrency", True, "concurrency: Should be an integer but is a boolean."),
        ("concurrency", 2**60, "concurrency: Should be at most 9007199254740991."),
    ],
)
def test_words_about_works(place: str, value: object, expected: str) -> None:
    assert message(entry_data({**par(ref()), place: value})) == f'entry.jobs["main"].work.{expected}'


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ({"onInterrupt": "no"}, '.onInterrupt: Should be one of "ask", "fail", "retry".'),
        ({"timeout": 0}, ".timeout: Should be more than 0 but is 0."),
        ({"timeout": float("nan")}, ".timeout: Should be at most 9007199254740991."),
        ({"timeout": 10**400}, ".timeout: Should be at most 9007199254740991."),
        ({"model": {}}, ".model: Should have either category or id."),
        ({"model": {"id": "a", "category": "coding"}}, ".model: Should have either category or id."),
        ({"model": "coding"}, ".model: Should be an object but is a string."),
        ({"prompt": "text"}, ".prompt: Should be a list but is a string."),
        ({"prompt": ["a", 1]}, ".prompt[1]: Should be a string but is a number."),
        ({1: 2}, ": Keys should be strings but 1 is a number."),
        (
            {"criteria": {"command": 1, "failureAction": {"retryTimes": 1}}},
            ".criteria.command: Should be a string or a list but is a number.",
        ),
        (
            {"criteria": {"failureAction": {"retryTimes": -1}}},
            ".criteria.failureAction.retryTimes: Should be at least 0 but is -1.",
        ),
    ],
)
def test_words_about_tasks(task: Data, expected: str) -> None:
    assert message(entry_data(task=task)) == 'entry.tasks["write"]' + expected


def test_missing_parts_are_named() -> None:
    assert message(entry_data({"taskId": "write"})) == 'entry.jobs["main"].work.kind: Should exist.'
    assert message(entry_data({"kind": "Ref"})) == 'entry.jobs["main"].work.taskId: Should exist.'
    assert message(entry_data({"kind": "Loop"})) == 'entry.jobs["main"].work.body: Should exist.'
    assert message(entry_data(loop(ref(), preCondition=[True]))) == (
        'entry.jobs["main"].work.preCondition: Should have 2 elements but has 1.'
    )
    assert message([]) == "entry: Should be an object but is a list."


def test_a_yaml_file_may_share_parts_but_not_contain_itself() -> None:
    shared = yaml.dump(entry_data(seq(work := ref(), work)))
    assert "&id" in shared
    assert isinstance(load_entry(parse(shared, "yaml")), Entry)
    cycle = "&w {kind: Seq, works: [{kind: Ref, taskId: write}, *w]}"
    data = parse(yaml.dump(entry_data()).replace("work:", f"work: {cycle}\n    was:"), "yaml")
    at(data, ("jobs", "main")).pop("was")
    assert message(data) == 'entry.jobs["main"].work.works[1]: Contains itself.'


def test_half_a_character_in_yaml_is_refused() -> None:
    assert message(entry_data(task={"prompt": [parse('"\\ud800"', "yaml")]})) == (
        "entry.tasks[\"write\"].prompt[0]: Should be valid Unicode but contains '\\ud800'."
    )
    assert message(entry_data(promptVariables={"\ud800": []})).startswith("entry.promptVariables: Should be valid")


def test_a_yaml_file_that_unfolds_to_gigabytes_is_refused() -> None:
    work: Data = ref()
    for _ in range(40):
        work = seq(work, work)
    assert message(entry_data(work)).endswith("The entry has more than 200000 values.")


def test_deep_nesting_is_refused() -> None:
    work = ref()
    for _ in range(MAX_DEPTH):
        work = seq(work)
    assert message(entry_data(work)).endswith(f"Is nested more than {MAX_DEPTH} levels deep.")
    for text, syntax in (("[" * 100_000, "json"), ("[" * 5_000, "yaml")):
        with pytest.raises(EntrySyntaxError):
            parse(text, syntax)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", b"{"),
        ("a.json", b"\xff"),
        ("a.yaml", b"a: [1"),
        ("a.yml", b"a: 2024-99-99"),
        ("a.yml", b"!!python/x 1"),
    ],
)
def test_a_file_that_is_neither_names_the_file(tmp_path: Path, name: str, text: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    with pytest.raises(EntrySyntaxError) as caught:
        load_file(path)
    assert str(caught.value).startswith(f"{path}: Is not valid ")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EntrySyntaxError, match="Cannot be read: No such file or directory"):
        load_file(tmp_path / "none.json")


def test_json_and_yaml_give_the_same_entry(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.dump(FULL))
    (tmp_path / "a.json").write_text("\ufeff" + json.dumps(FULL))
    assert load_file(tmp_path / "a.yaml") == load_file(tmp_path / "a.json") == load_entry(FULL)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(data=st.data(), work=works(), junk=JSON)
def test_junk_anywhere_is_an_entry_or_an_entry_error(data: st.DataObject, work: Data, junk: object) -> None:
    entry = copy.deepcopy({**FULL, "jobs": {"main": {"work": work}}})
    place = data.draw(st.sampled_from(places(entry)[1:]))
    at(entry, place[:-1])[place[-1]] = junk
    with contextlib.suppress(EntryError):
        assert isinstance(load_entry(entry), Entry)

"""Schemas of tools: descriptions from the structs, no references, and results that are always objects."""

from typing import Any, Literal

import pytest
from msgspec import Struct

from portico.command_shapes import method_name
from portico.doors.mcp.schema import OPEN, as_object, field_docs, flat, input_schema, meanings, output_schema
from portico.doors.mcp.sets import annotations, shown
from portico.kernel.commands import COMMANDS, Caller


class Inner(Struct):
    depth: int
    """How deep."""
    again: "Inner | None" = None


class Outer(Struct):
    session: str
    inner: Inner
    kind: Literal["a", "b"] = "a"
    """Which of
    the two."""
    cwd: str = ""


class Longer(Outer):
    more: str = ""
    """Even more."""


def test_the_docstring_of_a_field_is_its_description() -> None:
    assert field_docs(Outer) == {"kind": "Which of the two."}
    assert field_docs(Longer) == {"kind": "Which of the two.", "more": "Even more."}
    shown = input_schema(Longer, "some_tool")["properties"]
    assert {name: each.get("description") for name, each in shown.items()} == {
        "session": "The id of the session.",
        "inner": None,
        "kind": "Which of the two.",
        "cwd": "The working directory: an absolute path on the host.",
        "more": "Even more.",
    }


def test_an_entry_for_one_tool_comes_first() -> None:
    class Body(Struct):
        turn: str = ""
        """Another text."""

    assert input_schema(Body, "cancel_turn")["properties"]["turn"]["description"] == meanings()["cancel_turn.turn"]


def test_a_shape_that_contains_itself_ends() -> None:
    schema = flat(Outer)
    assert "$ref" not in str(schema)
    inner = schema["properties"]["inner"]
    assert inner["properties"]["depth"] == {"type": "integer"}
    assert OPEN in inner["properties"]["again"]["anyOf"]


@pytest.mark.parametrize("given", [None, str, list[int], dict[str, Any], (Inner, str)])
def test_a_result_without_a_shape_is_an_open_object(given: Any) -> None:
    assert output_schema(given) == OPEN


def test_alternatives_are_an_object_too() -> None:
    schema = output_schema((Inner, Longer))
    assert schema["type"] == "object"
    assert [each["required"] for each in schema["anyOf"]] == [["depth"], ["session", "inner"]]


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (None, {}),
        ([], {"items": []}),
        ([Inner(1)], {"items": [{"depth": 1, "again": None}]}),
        ("x", {"value": "x"}),
        (7, {"value": 7}),
        ({"a": 1}, {"a": 1}),
        (Inner(2), {"depth": 2, "again": None}),
    ],
)
def test_a_result_becomes_an_object(result: Any, shown: dict[str, Any]) -> None:
    assert as_object(result) == shown


def test_the_table_of_meanings_names_tools_and_parameters() -> None:
    """An entry for a tool that was renamed would have no effect."""
    tools = {method_name(kind) for kind in COMMANDS.values()} | {"answer", "read_changes"}
    assert {key.partition(".")[0] for key in meanings() if "." in key} - tools == set()
    for text in meanings().values():
        assert text.endswith("."), text
        assert text[0].isupper() or text.startswith(("true", "false", "accept", "utf-8")), text


def test_hints_do_not_contradict_each_other() -> None:
    assert annotations("anything", reads=True) == {"readOnlyHint": True, "openWorldHint": False}
    for name in ("delete_session", "send_message", "rename_session"):
        hints = annotations(name, reads=False)
        assert hints["readOnlyHint"] is False
        assert hints["destructiveHint"] is (name == "delete_session")
        assert hints["openWorldHint"] is (name == "send_message")
        assert hints["idempotentHint"] is (name != "send_message")


@pytest.mark.parametrize("setting", ["ask", "work", "all"])
@pytest.mark.parametrize("named", ["ask", "work", "all", ""])
def test_a_token_comes_before_the_setting(setting: Any, named: str) -> None:
    who = Caller("", "", frozenset(), tools=frozenset({named} if named else ()))
    plain = Caller("", "", frozenset())
    assert shown(who, setting) == shown(plain, named or setting)  # type: ignore[arg-type]

"""Round trips of wire values, and the check of what clients dispatch, by the types that `tools/ahp_types.py` writes."""

import ast
import json
from functools import cache
from typing import Any, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools import ahp_types

from portico.doors.ahp.wire import types, types_v1
from portico.doors.ahp.wire.actions import dispatchable
from portico.doors.ahp.wire.check import check, check_action
from portico.kernel.errors import BadRequest
from tests.doors.ahp.fixtures import AHP, V1, dialect, load, needs_fixtures

MODERN = dialect("1.0.0")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


class JsonRpcMessage(TypedDict):
    """Not in the schemas."""

    jsonrpc: str
    id: NotRequired[Any]
    method: NotRequired[str]
    params: NotRequired[Any]
    result: NotRequired[Any]
    error: NotRequired[dict[str, Any]]


_ELSEWHERE: dict[str, Any] = {"JsonRpcMessage": JsonRpcMessage, "StateAction": dict, "SessionStatus": int}


@cache
def everything() -> dict[str, Any]:
    """All types that fixtures are about, not only those of what clients send."""
    schema = ahp_types.load(AHP, "v0.7.0")
    for name in ("StateAction", "ConfigPropertySchema"):  # all actions; a type inside itself
        schema.definitions[name] = {"type": "object"}
    names = {parameter.values[0]["type"].removeprefix("Partial") for parameter in load("v0.7.0/round-trips")}
    made: dict[str, Any] = {}
    exec(ahp_types.source(schema, sorted(names - set(_ELSEWHERE)), {}), made)
    return made | _ELSEWHERE


def kind_of(name: str) -> Any:
    if name.startswith("Partial"):
        whole = everything()[name.removeprefix("Partial")]
        return TypedDict(name, dict(whole.__annotations__), total=False)  # type: ignore[operator]
    return everything()[name]


@needs_fixtures
@pytest.mark.parametrize("version", ahp_types.WRITTEN)
def test_the_types_are_those_that_the_script_writes(version: str) -> None:
    """Formatting aside."""
    file = ahp_types.WRITTEN[version]
    written = (ahp_types.TARGET / file).read_text()
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(ahp_types.written(AHP)[file]))


@needs_fixtures
@pytest.mark.parametrize("fixture", load("v0.7.0/round-trips"))
def test_round_trip(fixture: dict[str, Any]) -> None:
    """Unknown keys are preserved here, which the fixtures call `preservedOutput` where it makes a difference."""
    output = json.loads(json.dumps(check(kind_of(fixture["type"]), fixture["input"])))
    preserved = fixture.get("preservedOutput")
    assert output in (fixture["acceptableOutputs"] if preserved is None else [preserved])


@given(
    kind=st.sampled_from(
        [
            *types.ACTIONS.values(),
            *types_v1.ACTIONS.values(),
            *(types.ChatSource, types.MessageAttachment, types.ChatInputAnswer, types.StringOrMarkdown),
            *(types.ModelSelection, list[types.Message]),
        ]
    ),
    value=JSON,
)
def test_a_check_answers_every_value(kind: Any, value: Any) -> None:
    try:
        once = check(kind, value)
    except BadRequest:
        return
    assert check(kind, once) == once


@given(
    st.dictionaries(
        st.text().filter(lambda key: key not in ("text", "attachments", "model", "agent", "origin", "_meta")), JSON
    )
)
def test_unknown_fields_of_a_known_shape_are_preserved(extra: dict[str, Any]) -> None:
    assert check(types.Message, {"text": "hi", **extra}) == {"text": "hi", **extra}


def test_unknown_enum_values_and_variants_are_preserved() -> None:
    message = {"text": "hi", "origin": {"kind": "oracle"}, "attachments": [{"type": "hologram", "beam": 1}]}
    assert check(types.Message, message) == message


def test_the_null_result_of_a_command_is_kept() -> None:
    assert check(JsonRpcMessage, {"jsonrpc": "2.0", "id": 1, "result": None})["result"] is None


def test_a_null_means_absent() -> None:
    assert check(types.Message, {"text": "hi", "attachments": None, "_meta": None}) == {"text": "hi"}
    with pytest.raises(BadRequest, match="'text' is missing"):
        check(types.Message, {"text": None})


@pytest.mark.parametrize(
    ("action", "field"),
    [
        (7, "action"),
        ({}, "action.type"),
        ({"type": 1}, "action.type"),
        ({"type": "chat/turnStarted", "message": {"text": "hi"}}, "action.turnId"),
        ({"type": "chat/turnStarted", "turnId": "t", "message": {"text": 5}}, "action.message.text"),
        ({"type": "chat/turnStarted", "turnId": "t", "message": "hi"}, "action.message"),
        (
            {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "", "attachments": [{"type": "resource"}]}},
            "action.message.attachments[0].label",
        ),
        ({"type": "chat/turnCancelled", "turnId": "t", "duration": "long"}, "action.duration"),
        ({"type": "chat/queuedMessagesReordered", "order": ["a", 1]}, "action.order[1]"),
        ({"type": "chat/toolCallComplete", "turnId": "t", "toolCallId": "c", "result": {}}, "action.result.success"),
        ({"type": "terminal/resized", "cols": True, "rows": 24}, "action.cols"),
        (
            {
                "type": "chat/inputCompleted",
                "requestId": "r",
                "response": "accept",
                "answers": {"q": {"state": "draft"}},
            },
            "action.answers.q.value",
        ),
    ],
)
def test_a_malformed_action_is_refused_with_its_field(action: Any, field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_action(MODERN, action)
    assert caught.value.field == field


def test_everything_a_client_may_dispatch_has_a_type() -> None:
    assert dispatchable(MODERN) == set(types.ACTIONS)
    assert dispatchable(V1) == set(types_v1.ACTIONS)


@needs_fixtures
@pytest.mark.parametrize(("folder", "spoken"), [("v1-seed", V1), ("v0.7.0", dialect("0.7.0"))])
def test_every_action_of_the_fixtures_has_the_right_shape(folder: str, spoken: Any) -> None:
    for parameter in load(f"{folder}/reducers"):
        for action in parameter.values[0]["actions"]:
            assert check_action(spoken, action)["type"] == action["type"]


@needs_fixtures
def test_required_fields_are_those_of_the_schema() -> None:
    """We may ask for less than the schema (older clients send less), never for more."""
    definitions = json.loads((AHP / "v0.7.0/schema/actions.schema.json").read_text())["$defs"]
    for definition in definitions.values():
        action = definition.get("properties", {}).get("type", {}).get("const")
        if action not in types.ACTIONS or action == "chat/toolCallConfirmed":
            continue
        assert types.ACTIONS[action].__required_keys__ <= set(definition["required"]), action

"""Round trips of wire values, and the check of what clients dispatch."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.doors.ahp.actions import dispatchable
from portico.doors.ahp.shapes import PAYLOADS, RECORDS, SEED_PAYLOADS, UNIONS, check, check_action, decode, encode
from portico.errors import BadRequest
from tests.doors.ahp.fixtures import AHP, V1, dialect, load, needs_fixtures

MODERN = dialect("1.0.0")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@needs_fixtures
@pytest.mark.parametrize("fixture", load("v0.7.0/round-trips"))
def test_round_trip(fixture: dict[str, Any]) -> None:
    """Unknown keys are preserved here, which the fixtures call `preservedOutput` where it makes a difference."""
    output = json.loads(encode(decode(fixture["type"], json.dumps(fixture["input"]))))
    preserved = fixture.get("preservedOutput")
    assert output in (fixture["acceptableOutputs"] if preserved is None else [preserved])


@given(
    name=st.sampled_from(sorted({*RECORDS, *UNIONS, "JsonRpcMessage", "PartialSessionSummary", "[Message]"})),
    value=JSON,
)
def test_a_check_answers_every_value(name: str, value: Any) -> None:
    try:
        once = check(name, value)
    except BadRequest:
        return
    assert check(name, once) == once


@given(
    st.dictionaries(
        st.text().filter(lambda key: key not in ("text", "attachments", "model", "agent", "origin", "_meta")), JSON
    )
)
def test_unknown_fields_of_a_known_shape_are_preserved(extra: dict[str, Any]) -> None:
    assert check("Message", {"text": "hi", **extra}) == {"text": "hi", **extra}


def test_unknown_enum_values_and_variants_are_preserved() -> None:
    message = {"text": "hi", "origin": {"kind": "oracle"}, "attachments": [{"type": "hologram", "beam": 1}]}
    assert check("Message", message) == message


def test_the_null_result_of_a_command_is_kept() -> None:
    assert check("JsonRpcMessage", {"jsonrpc": "2.0", "id": 1, "result": None})["result"] is None


def test_a_null_means_absent() -> None:
    assert check("ActionEnvelope", {"action": {"type": "x"}, "serverSeq": 1, "origin": None}) == {
        "action": {"type": "x"},
        "serverSeq": 1,
    }


@pytest.mark.parametrize("text", [b"{", b"\xff", b'{"a":', b"nul", b"[" * 100_000])
def test_what_is_not_json_is_a_bad_request(text: bytes) -> None:
    with pytest.raises(BadRequest, match="not JSON"):
        decode("StateAction", text)


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


def test_everything_a_client_may_dispatch_has_a_shape() -> None:
    assert dispatchable(MODERN) == set(PAYLOADS)
    assert dispatchable(V1) == set(SEED_PAYLOADS)


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
        if action not in PAYLOADS or action == "chat/toolCallConfirmed":
            continue
        required = {field for field in PAYLOADS[action] if not field.endswith("?")}
        assert required <= set(definition["required"]), action

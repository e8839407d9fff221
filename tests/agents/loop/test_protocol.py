import jsonschema
import pytest

from portico.agents.loop.prompt import system_message
from portico.agents.loop.protocol import (
    Invalid,
    ModelAction,
    ModelStep,
    correction,
    read_calls,
    read_text,
    step_schema,
)
from portico.agents.loop.reply import NativeCall
from portico.agents.loop.tools import TOOLS


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (
            '{"actions":[{"tool":"readFiles","files":["a"]}],"commentary":"look","done":false}',
            ModelStep([ModelAction("readFiles", {"files": ["a"]})], "look"),
        ),
        ('{"finalSummary":"did it","done":true}', ModelStep(summary="did it", done=True)),
        ('{"finalSummary":"","done":true}', ModelStep(summary="Done.", done=True)),  # a weak model without words
        ('{"finalSummary":"did it"}', ModelStep(summary="did it", done=True)),
        ('{"commentary":"did it","done":true}', ModelStep(summary="did it", done=True)),
        ('{"tool":"listFiles"}', ModelStep([ModelAction("listFiles", {})])),
        ('{"actions":{"tool":"listFiles"},"done":false}', ModelStep([ModelAction("listFiles", {})])),
        ('[{"tool":"a"},{"tool":"b"}]', ModelStep([ModelAction("a", {}), ModelAction("b", {})])),
        ('{"actions":[{"tool":"a"}],"done":true}', ModelStep([ModelAction("a", {})])),
        ('I try {"nonsense": 1} no: {"actions":[{"tool":"a"}]}', ModelStep([ModelAction("a", {})])),
        ('{"actions":[{"tool":"a"}]} and an example {"x": 1}', ModelStep([ModelAction("a", {})])),
    ],
)
def test_a_text_that_means_a_step(text: str, step: ModelStep) -> None:
    assert read_text(text) == step


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("I will do it.", "no JSON"),
        ('{"actions":[],"done":false}', "at least one action"),
        ('{"commentary":"thinking","done":false}', "at least one action"),
        ('{"done":true}', "finalSummary"),
        ('{"actions":"listFiles"}', "at least one action"),
        ('{"actions":[{"name":"listFiles"}]}', "'tool'"),
        ('{"actions":[{"tool":7}]}', "'tool'"),
        ('{"actions":[' + ",".join(['{"tool":"a"}'] * 51) + "]}", "at most 50"),
        ('{"actions":[{"tool":"readFiles","files":["a"]}', "not whole"),
    ],
)
def test_a_text_that_means_none_says_why(text: str, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        read_text(text)


def test_native_calls_are_a_step() -> None:
    calls = [NativeCall("1", "readFiles", '{"files":["a"]}'), NativeCall("2", "listFiles", "")]
    assert read_calls(calls, "look") == ModelStep(
        [ModelAction("readFiles", {"files": ["a"]}, "1"), ModelAction("listFiles", {}, "2")], "look"
    )
    assert read_calls([NativeCall("1", "finish", '{"finalSummary":"done"}')], "") == ModelStep(
        summary="done", done=True
    )


def test_a_bad_call_has_its_problem_and_the_others_run() -> None:
    bad = [NativeCall("1", "readFiles", '{"files":'), NativeCall("2", "readFiles", "[1]")]
    first, second, good = read_calls([*bad, NativeCall("3", "listFiles", "{}")], "").actions
    assert ("not JSON" in first.problem, "not a JSON object" in second.problem) == (True, True)
    assert good == ModelAction("listFiles", {}, "3")


def finish(ident: str) -> NativeCall:
    return NativeCall(ident, "finish", '{"finalSummary":"done"}')


@pytest.mark.parametrize(
    ("calls", "actions"),
    [
        ([finish("1"), NativeCall("2", "listFiles", "{}")], ["finish", "listFiles"]),
        ([NativeCall("1", "listFiles", "{}"), finish("2")], ["listFiles", "finish"]),
        ([NativeCall(str(n), "listFiles", "{}") for n in range(50)], ["listFiles"] * 50),
        ([finish("1"), finish("2")], []),
    ],
)
def test_a_finish_beside_actions_drops_none_of_them(calls: list[NativeCall], actions: list[str]) -> None:
    """Reported: what came in one reply with `finish` was not done, and the run counted as a success."""
    step = read_calls(calls, "")
    assert [action.tool for action in step.actions] == actions
    assert step.done is not bool(actions)


def test_more_calls_than_a_step_may_have_are_told_and_not_cut() -> None:
    step = read_calls([NativeCall(str(n), "listFiles", "{}") for n in range(51)], "")
    assert [bool(action.problem) for action in step.actions] == [False] * 50 + [True]
    assert "at most 50" in step.actions[50].problem


def test_a_text_step_whose_only_action_is_finish_is_final() -> None:
    assert read_text('{"actions": [{"tool": "finish", "finalSummary": "Yes."}]}') == ModelStep(
        summary="Yes.", done=True
    )


@pytest.mark.parametrize("bound", [None, 50])
def test_the_schema_takes_steps_and_nothing_else(bound: int | None) -> None:
    schema = step_schema(TOOLS, bound)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"commentary": "", "actions": [{"tool": "readFiles", "files": ["a"]}], "done": False}, schema)
    jsonschema.validate({"finalSummary": "x", "done": True}, schema)
    for wrong in (
        {"commentary": "", "actions": [], "done": False},
        {"commentary": "", "actions": [{"tool": "rm"}], "done": False},
        {"done": True},
        {"commentary": "", "actions": [{"tool": "readFiles"}], "done": False},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_what_a_model_is_told_names_every_tool() -> None:
    told = system_message("/srv/app", TOOLS, native=False)
    corrected = correction("no", TOOLS, native=False)
    for tool in TOOLS:
        assert tool.name in told
        assert tool.name in corrected

"""Finding a script in a prompt, loading one from a file, and rules."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.kernel.errors import BadRequest
from portico.testing.model import Error, ModelRule, Script, ScriptedCall, Step, load
from portico.testing.model.script import find

STEPS = '[{"say": "a ] [ {"}, {"error": 429}]'


@given(before=st.text(), after=st.text())
def test_a_script_is_found_anywhere(before: str, after: str) -> None:
    found = find(before.replace("[", "(") + STEPS + after)

    assert found.steps == [Step(say="a ] [ {"), Step(error=429)]
    assert found.rest == before.replace("[", "(") + after


@given(st.text(alphabet='[]{}":, asy\\n') | st.text())
def test_any_text_is_searched_without_harm(text: str) -> None:
    assert isinstance(find(text).steps, list)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.dictionaries(st.text(), x), max_leaves=5))
def test_other_json_is_no_script(value: object) -> None:
    assert find(json.dumps([{"other": value}])).steps == []


def test_other_arrays_before_the_script_are_skipped() -> None:
    assert find(f'items [1, 2], [{{}}], [{{"id": 7}}], [[{{"x": []}}]] and {STEPS}').steps[0].say == "a ] [ {"


def test_of_several_scripts_the_last_counts() -> None:
    """goose puts a prompt that was cancelled before the next one: the model server answered the old one again."""
    assert find(f'{STEPS}\n[{{"say": "new", "calls": [{{"kind": "read"}}]}}]').steps[0].say == "new"


def test_a_prompt_that_an_agent_quoted_is_understood() -> None:
    script = '[\n {"say": "a \\"b\\"\\n"}]'

    assert find(json.dumps(f"Please: {script}")).steps == find(script).steps == [Step(say='a "b"\n')]


def test_deep_nesting_is_not_a_crash() -> None:
    assert find('[{"say":' * 5000).steps == []


def test_a_mistake_in_a_script_is_named() -> None:
    assert "`colour`" in find('[{"say": "hi", "colour": "red"}]').problem
    assert "`name`, `match` or `kind`" in find('[{"calls": [{"args": {}}]}]').problem
    assert "not a regular expression" in find('[{"calls": [{"match": "("}]}]').problem


def test_a_step_says_what_fails() -> None:
    assert Step(error=429).failure == Error(status=429)
    assert Step(say="x").failure is None


def test_load_reads_yaml_and_json(tmp_path: Path) -> None:
    script = Script(
        rules=[
            ModelRule(match="build", tools=True, steps=[Step(calls=[ScriptedCall(kind="execute")]), Step(say="built")])
        ]
    )
    text = """
    rules:
      - match: build
        tools: true
        steps:
          - calls: [{kind: execute}]
          - say: built
    """
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.json").write_text('[{"say": "always"}]')

    assert load(tmp_path / "a.yaml") == script
    assert load(tmp_path / "b.json") == Script.of(Step(say="always"))


@pytest.mark.parametrize(
    ("text", "message"), [("rules: [", "'s.yaml'"), ("rules: 7", "Expected `array`"), ("[{say: x, nope: 1}]", "nope")]
)
def test_a_broken_file_is_refused_with_the_reason(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(text)

    with pytest.raises(BadRequest, match=message.replace("`", ".")):
        load(tmp_path / "s.yaml")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"Cannot read the script 'none\.yaml'"):
        load(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (ModelRule(steps=[Step()]), True),
        (ModelRule(steps=[Step()], match="^do"), True),
        (ModelRule(steps=[Step()], match="^undo"), False),
        (ModelRule(steps=[Step()], model="gpt-.*"), True),
        (ModelRule(steps=[Step()], model="gpt"), False),
        (ModelRule(steps=[Step()], tools=True), True),
        (ModelRule(steps=[Step()], tools=False), False),
    ],
)
def test_a_rule_fits_what_it_names(rule: ModelRule, fits: bool) -> None:
    assert rule.fits("do it", "gpt-5", has_tools=True) is fits

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.features.jobs import EntryError, load_entry
from portico.features.jobs.entry import Entry
from portico.features.jobs.prompt import expand_prompt_dynamic, expand_prompt_static, variables_of
from tests.jobs.samples import entry_data


def with_variables(**variables: list[str]) -> Entry:
    return load_entry(entry_data(promptVariables={name.replace("_", "-"): lines for name, lines in variables.items()}))


def test_lines_are_joined_and_variables_expanded_in_depth() -> None:
    entry = with_variables(a=["one $b-c", "two"], b_c=["deep"])
    assert expand_prompt_static(entry, "P", ["<$a>", "$user-input $check-output"]) == [
        "<one deep\ntwo>\n$user-input $check-output"
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("$a-b", ["a-b"]),
        ("$a1", ["a"]),
        ("$a_b", ["a"]),
        ("$a-", ["a"]),
        ("$a--b", ["a"]),
        ("$1 $ $-a $$a", ["a"]),
    ],
)
def test_what_counts_as_a_variable(text: str, names: list[str]) -> None:
    assert list(variables_of(text)) == names


@pytest.mark.parametrize(
    ("prompt", "variables", "message"),
    [
        ([], {}, "P: Prompt is empty."),
        (["$nope"], {}, "P: Cannot find prompt variable: $nope."),
        (["$a"], {"a": ["$nope"]}, "P/$a: Cannot find prompt variable: $nope."),
        (["$a"], {"a": ["$b"], "b": []}, "P/$a/$b: Prompt is empty."),
        (["$a"], {"a": ["$b"], "b": ["$a"]}, "P: Prompt variable cycle: $a -> $b -> $a."),
        (["$x"], {"x": ["$a"], "a": ["$a"]}, "P: Prompt variable cycle: $a -> $a."),
        (["$d$n"], {"d": ["$"], "n": ["late"]}, "P: Cannot find prompt variable: $late."),
    ],
)
def test_mistakes_in_static_prompts(prompt: list[str], variables: dict[str, list[str]], message: str) -> None:
    with pytest.raises(EntryError) as caught:
        expand_prompt_static(with_variables(**variables), "P", prompt)
    assert str(caught.value) == message


def test_the_boolean_tool_is_looked_for_in_the_expanded_text() -> None:
    entry = with_variables(tools=["Call job_boolean_false."], other=["Call something."])
    assert expand_prompt_static(entry, "P", ["$tools"], requires_boolean_tool=True) == ["Call job_boolean_false."]
    with pytest.raises(EntryError) as caught:
        expand_prompt_static(entry, "P", ["$other"], requires_boolean_tool=True)
    assert str(caught.value) == "P: Boolean tool (job_boolean_true or job_boolean_false) must be mentioned."


def test_variables_that_double_each_other_end_in_an_error_not_in_swap() -> None:
    names = [chr(ord("a") + i) for i in range(26)]
    variables = {name: [f"${after}" * 9] for name, after in pairwise(names)} | {"z": ["zzzz"]}
    with pytest.raises(EntryError, match="P: Prompt is too long"):
        expand_prompt_static(with_variables(**variables), "P", ["$a"])


def test_dynamic_expansion_is_one_pass_with_missing_marked() -> None:
    values = {"user-input": "$task-model", "task-model": "m"}
    assert expand_prompt_dynamic(["$user-input $task-model $reported-document"], values) == "$task-model m <MISSING>"


@pytest.mark.parametrize("prompt", [[], ["a", "b"]])
def test_dynamic_expansion_takes_exactly_one_item(prompt: list[str]) -> None:
    with pytest.raises(EntryError) as caught:
        expand_prompt_dynamic(prompt, {})
    assert str(caught.value) == f"expandPromptDynamic: Prompt must have exactly one item, got {len(prompt)}."


PIECES = st.sampled_from(["$a", "$b", "$c", "$user-input", "$", "a", "-", "b ", "1", "\n", "task-model"])
TEXTS = st.lists(PIECES, min_size=1, max_size=6).map("".join)


@given(prompt=TEXTS, a=TEXTS, b=TEXTS, c=TEXTS)
def test_static_expansion_always_ends_and_is_stable(prompt: str, a: str, b: str, c: str) -> None:
    entry = with_variables(a=[a], b=[b], c=[c])
    try:
        once = expand_prompt_static(entry, "P", [prompt])
    except EntryError:
        return
    assert expand_prompt_static(entry, "P", once) == once

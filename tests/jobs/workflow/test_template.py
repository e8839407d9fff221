"""Values never become code: not in a template, not in a shell, not in a prompt."""

import subprocess

import pytest

from portico.features.jobs.workflow.quote import payload, unmarked
from portico.features.jobs.workflow.template import (
    VALUE_BYTES,
    TemplateError,
    evaluate,
    render,
    render_prompt,
    shell,
    text_of,
)

HOSTILE = ("$(touch x)", "`touch x`", "'; touch x; '", '"; touch x; "', "a  b\nc", "{{ 7*7 }}", "\\", "$HOME", "-n")
LINES = (
    "printf %s {{ v }}",
    'printf %s "{{ v }}"',
    "printf %s '{{ v }}'",
    'printf %s "{{ v }}"{{ e }}',
    "printf %s \"$(printf %s '{{ v }}')\"",
    "cat <<END\n{{ v }}\nEND",
)


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("line", LINES)
def test_a_value_is_never_code_in_a_shell(line: str, value: str, tmp_path: object) -> None:
    text, env = shell(line, {"v": value, "e": ""})
    done = subprocess.run(["bash", "-c", text], env=env, capture_output=True, text=True, cwd=str(tmp_path), check=True)
    printed = done.stdout.strip("\"'\n") if "<<" in line else done.stdout
    assert printed == (value.strip("\"'\n") if "<<" in line else value)


def test_values_keep_their_types() -> None:
    context = {"list": [1, {"items": 2}], "none": None, "yes": True}
    assert evaluate("{{ list }}", context) == [1, {"items": 2}]
    assert evaluate("{{ list[1].items }}", context) == 2
    assert evaluate({"a": ["{{ yes }}", "x{{ yes }}"]}, context) == {"a": [True, "xtrue"]}
    assert render("{{ list }} {{ none }}.", context) == '[1, {"items": 2}] .'
    assert render("${#list[@]} {{ yes }}", context) == "${#list[@]} true"


@pytest.mark.parametrize("text", ["{{ no }}", "{{ list.no }}", "{{ list[9] }}", "{{ 1 / 0 }}", "{{ ''.__class__ }}"])
def test_what_cannot_be_resolved_is_an_error(text: str) -> None:
    for use in (render, evaluate):
        with pytest.raises(TemplateError):
            use(text, {"list": []})
    with pytest.raises(TemplateError):
        shell(text, {"list": []})


def test_a_payload_is_quoted_in_a_prompt_and_plain_elsewhere() -> None:
    context = {"run": {"payload": payload({"title": "Ignore <all> [[x]]", "tags": ["a"]})}}
    assert render("{{ run.payload.title }}", context) == "Ignore <all> [[x]]"
    assert (
        render_prompt("{{ run.payload.title }}", context) == '"Ignore \\u003call\\u003e \\u005b\\u005bx\\u005d\\u005d"'
    )
    assert evaluate("{{ run.payload.title }}", context) == "Ignore <all> [[x]]"
    assert shell("echo {{ run.payload.tags[0] }}", context)[1] == {"PORTICO_VALUE_0": "a"}


TEXTS: dict[str, tuple[object, str]] = {
    "text": ("a", "a"),
    "nothing": (None, ""),
    "yes": (True, "true"),
    "no": (False, "false"),
    "a number": (3, "3"),
    "a part": (0.5, "0.5"),
    "a list": (["ä", 1], '["ä", 1]'),
    "a mapping": ({"a": None}, '{"a": null}'),
}


@pytest.mark.parametrize(("value", "expected"), TEXTS.values(), ids=TEXTS)
def test_how_a_value_is_written_into_a_text(value: object, expected: str) -> None:
    assert text_of(value) == expected
    assert render("<{{ v }}>", {"v": value}) == f"<{expected}>"
    assert shell("echo {{ v }}", {"v": value}) == ('echo "${PORTICO_VALUE_0}"', {"PORTICO_VALUE_0": expected})


def test_a_value_that_is_too_long_for_a_command_is_refused() -> None:
    with pytest.raises(TemplateError, match="Pass it as 'stdin'"):
        shell("echo {{ v }}", {"v": "x" * (VALUE_BYTES + 1)})


def test_marked_values_are_plain_data_again() -> None:
    data = {"a": ["b", {"c": 1}], "d": None}
    found = unmarked(payload(data))
    assert found == data
    assert type(found["a"]) is list
    assert type(found["a"][0]) is str

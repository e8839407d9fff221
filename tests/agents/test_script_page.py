"""docs/reference/script.md tells the truth: its examples parse, and every directive, step and field is in it."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from portico.agents import script as s
from portico.kernel.errors import BadRequest

PAGE = (Path(__file__).parents[2] / "docs/reference/script.md").read_text()
EXAMPLES = re.findall(r"^```(yaml|json)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
PROMPTS = re.findall(r"^```prompt\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def section(heading: str) -> str:
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found, f"the page has no {heading!r}"
    return found[1]


def fields(text: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))


def names(kind: type[msgspec.Struct]) -> set[str]:
    return {field.name for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize(("language", "text"), EXAMPLES)
def test_examples_parse(language: str, text: str) -> None:
    script = s.parse(text, f"example.{language}")
    assert script.rules


@pytest.mark.parametrize("prompt", PROMPTS)
def test_example_prompts_have_directives(prompt: str) -> None:
    assert s.directives(prompt, s.Seen()) is not None


def test_every_directive_is_described() -> None:
    described = set(re.findall(r"^\| `\[\[(\w+)", section("## Directives"), flags=re.MULTILINE))
    understood = set()
    for name in [*described, "nonsense"]:
        for value in (":k|1|tool|arg", ":1", ":k|1", ""):
            result, plain = s.Directives(), s.Directives()
            try:
                s._direct(result, name, value.removeprefix(":"), s.Seen())
            except BadRequest:
                continue
            if result != plain:
                understood.add(name)
    # A second look at a key tells `after` from a word that is not ours.
    seen, later = s.Seen(), s.Directives()
    for _ in range(2):
        s._direct(later, "after", "k|1|tool|arg", seen)
    assert later.tools == [("tool", "arg")]
    assert understood | {"after"} == described
    assert len(described) == 13


@pytest.mark.parametrize("step", get_args(s.AnyStep))
def test_every_step_and_its_fields_are_described(step: type[msgspec.Struct]) -> None:
    tag = step.__struct_config__.tag
    assert fields(section(f"#### `{tag}`")) == names(step)


def test_no_other_step_is_described() -> None:
    tags = {str(step.__struct_config__.tag) for step in get_args(s.AnyStep)}
    assert set(re.findall(r"^#### `(\w+)`", PAGE, flags=re.MULTILINE)) == tags


def test_providers_and_rules_are_described() -> None:
    assert fields(section("### Providers")) == names(s.Provider)
    assert fields(section("### Rules")) == names(s.ScriptRule)
    for kind in (s.ScriptedPermission, s.SeedSession, s.SeedTurn):
        assert all(f"`{name}`" in PAGE for name in names(kind))
    for model in s.DEFAULT_MODELS:
        assert model.id in PAGE

"""docs/reference/events.md tells the truth about every event: its name, its fields and their types, and no others."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import msgspec
import pytest
from tools.reference import types_of

from portico.features import builtin  # noqa: F401  # registers the events of features
from portico.features.automations import events as ae
from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.events import record

PAGE = Path(__file__).parents[1] / "docs/reference/events.md"
SHAPES: list[type[msgspec.Struct]] = [e.Message, e.ErrorInfo, e.ToolSpec, e.Origin, e.Option, e.Grant, e.Budget]
SHAPES += [
    je.Artifact,
    ae.AutomationPlan,
    ae.Trigger,
    ae.Schedule,
    ae.Hook,
    ae.Match,
    ae.FilesTrigger,
    ae.After,
    ae.JobAction,
    ae.PromptAction,
]


def documented() -> dict[str, dict[str, str]]:
    """Heading -> field -> type, as the page has them."""
    found: dict[str, dict[str, str]] = {}
    for section in re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        name = section.split("\n", 1)[0].strip("`")
        assert name not in found, f"{name} is described twice"
        found[name] = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .+ \|$", section, flags=re.MULTILINE))
    return found


def kinds() -> dict[str, type[msgspec.Struct]]:
    known = (*get_args(e.AnyEvent), *record._registered)  # those of features, too
    events = {str(kind.__struct_config__.tag): kind for kind in known}
    return {**events, **{shape.__name__: shape for shape in SHAPES}}


def test_every_event_and_no_other_is_described() -> None:
    assert set(documented()) == set(kinds())


@pytest.mark.parametrize("name", list(kinds()))
def test_its_fields_are_described(name: str) -> None:
    assert documented()[name] == types_of(kinds()[name])


def test_every_event_says_what_it_means_and_where_it_stands() -> None:
    page = PAGE.read_text()
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        name, _, text = section.partition("\n")
        prose = text.split("|", 1)[0].strip()
        assert len(prose) > 10, f"{name} has no meaning"
    for group in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        if "### `" in group:
            assert re.search(r"^Channel: `", group, flags=re.MULTILINE), f"no channel in {group.splitlines()[0]!r}"


def test_tags_are_lower_case_and_unique() -> None:
    tags = [str(kind.__struct_config__.tag) for kind in get_args(e.AnyEvent)]
    assert len(set(tags)) == len(tags)
    assert all(re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", tag) for tag in tags)


def test_every_event_class_is_in_the_union() -> None:
    def leaves(kind: type[e.Event]) -> set[type[e.Event]]:
        below = kind.__subclasses__()
        return {leaf for each in below for leaf in leaves(each)} if below else {kind}

    ours = {kind for kind in leaves(e.Event) if kind.__module__.startswith("portico.kernel.events.")}
    assert ours - {e.Unknown} == set(get_args(e.AnyEvent))


class Short(msgspec.Struct):
    name: str
    size: int = 0


class Long(msgspec.Struct):
    name: str
    size: int = 0
    more: str = "default"


class Other(msgspec.Struct):
    name: int


@pytest.mark.parametrize(
    ("kind", "source", "others", "expected"),
    [
        (Long, Short("a", 1), {}, Long("a", 1)),
        (Long, Short("a", 1), {"more": "x", "size": 2}, Long("a", 2, "x")),
        (Short, Long("a", 1, "left out"), {}, Short("a", 1)),
        (Short, Other(7), {"name": "b"}, Short("b")),
        (je.JobDecided, Short("a"), {"path": "r", "reason": "x"}, je.JobDecided(path="r", reason="x")),
    ],
)
def test_a_struct_takes_from_another_what_it_has_under_the_same_names(
    kind: Any, source: Any, others: dict[str, Any], expected: object
) -> None:
    assert e.like(kind, source, **others) == expected


@pytest.mark.parametrize(("kind", "others"), [(Short, {}), (Short, {"size": "many", "name": "a"}), (je.JobDecided, {})])
def test_a_field_of_another_type_or_one_that_is_missing_is_a_mistake(kind: Any, others: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        e.like(kind, Other(7), **others)


def test_a_union_is_what_its_modules_define() -> None:
    module = ModuleType("room")
    for each in (Short, Long):
        setattr(module, each.__name__, type(each.__name__, (each,), {"__module__": "room"}))
    setattr(module, "Imported", Other)  # noqa: B010 - as an import leaves it
    found = get_args(e.union_of(msgspec.Struct, module))
    assert [each.__name__ for each in found] == ["Short", "Long"]

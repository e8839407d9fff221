"""Writes the tables of the reference: `python -m tools.reference`.

What the code declares comes from the structs: the commands with their scope, route, fields and types, the events with
their fields, the settings with their defaults, the routes with their scopes. The meaning of a field is its docstring in
the struct; without one, the text of the page is kept, and so is the prose around the tables. New entries are added.
`tests/test_reference.py` checks that the pages are current.
"""

import ast
import asyncio
import inspect
import json
import re
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from portico.features import builtin  # noqa: F401  # registers the commands and events of features
from portico.features.automations import events as ae
from portico.features.jobs import events as je
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.events import record
from portico.server.registry import OWN
from portico.server.settings_load import keys

DOCS = Path(__file__).parents[1] / "docs/reference"
COMMANDS, EVENTS, SETTINGS, REST = (DOCS / f"{name}.md" for name in ("commands", "events", "settings", "rest"))
SHAPES: tuple[type[msgspec.Struct], ...] = (
    *(e.Message, e.ErrorInfo, e.ToolSpec, e.Origin, e.Option, e.Grant, e.Budget, je.Artifact),
    *(
        ae.AutomationPlan,
        ae.Trigger,
        ae.Schedule,
        ae.Hook,
        ae.Match,
        ae.FilesTrigger,
        ae.After,
        ae.JobAction,
        ae.PromptAction,
    ),
)
"""The shapes that events.md describes besides the events."""
_WORDS = {str: "text", int: "number", float: "number", bool: "yes or no", NoneType: "null", Any: "any"}
_SECTION = re.compile(r"^### (`?)([\w.]+)`?\n(.*?)(?=^#{2,3} |\Z)", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


class ServedRoute(NamedTuple):
    name: str
    """`GET /v1/sessions`"""
    scope: str
    summary: str


# -- what the structs declare ------------------------------------------------------------------------------------


def label(kind: Any) -> str:
    """A type in the words of the pages."""
    if kind in _WORDS:
        return _WORDS[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return label(args[0])
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in args)
    if origin is list:
        return f"list of {label(args[0])}"
    if origin is dict:
        return "object" if args[1] is Any else f"object of {label(args[1])}"
    if origin in (Union, UnionType):
        return " or ".join(label(each) for each in args)
    return f"[{kind.__name__}](#{kind.__name__.lower()})"


def types_of(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {
        field.name: label(field.type) + ("" if field.required else ", optional")
        for field in msgspec.structs.fields(kind)
    }


def types_of_command(kind: type[c.Command]) -> dict[str, str]:
    return {
        field: re.sub(r"\[(?:Isolation|ClientServer)\]\(#\w+\)", "object", text).replace("](#", "](events.md#")
        + (", protocol" if field in kind.private else "")
        for field, text in types_of(kind).items()
    }


def docstrings_of(kind: type[msgspec.Struct]) -> dict[str, str]:
    """The docstrings of the fields, in one line each. A field whose docstring is for a group has it once."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if issubclass(each, msgspec.Struct) and each is not msgspec.Struct:
            found |= _docstrings(inspect.getsource(each))
    return found


def _docstrings(source: str) -> dict[str, str]:
    (body,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split()).replace("|", "\\|")
    return found


def described_events() -> dict[str, type[msgspec.Struct]]:
    known = (*get_args(e.AnyEvent), *record._registered)
    events = {str(kind.__struct_config__.tag): kind for kind in known}
    return {**events, **{shape.__name__: shape for shape in SHAPES}}


# -- the pages ---------------------------------------------------------------------------------------------------


def commands_page(text: str) -> str:
    return _sections(text, c.COMMANDS, _command, lambda kind: _command("", kind))


def _command(section: str, kind: type[c.Command]) -> str:
    route = f" `{kind.http.method} {kind.http.path}`." if kind.http is not None else ""
    first = f"{c.sentence(kind)} Scope `{kind.scope}`.{route}"
    prose = _TABLE.sub("", section).strip()
    more = re.sub(r"^.*? Scope `\w+`\.(?: `[A-Z]+ /[^`]*`\.)?", "", prose, count=1, flags=re.DOTALL)
    fields, meanings = types_of_command(kind), docstrings_of(kind)
    return _joined(first + more, _table(fields, {**_meanings(section), **meanings}))


def events_page(text: str) -> str:
    return _sections(text, described_events(), _event, _new_event)


def _event(section: str, kind: type[msgspec.Struct]) -> str:
    return _joined(
        _TABLE.sub("", section).strip(), _table(types_of(kind), {**docstrings_of(kind), **_meanings(section)})
    )


def _new_event(kind: type[msgspec.Struct]) -> str:
    return _event(" ".join((kind.__doc__ or "").split()), kind)


def _sections(
    text: str, kinds: Mapping[str, Any], write: Callable[[str, Any], str], create: Callable[[Any], str]
) -> str:
    """Write the section of each kind. One that is new comes after the last with the same first word."""
    found = {match[2]: match for match in _SECTION.finditer(text)}
    for name in [name for name in kinds if name not in found]:
        before = [match for other, match in found.items() if other.partition(".")[0] == name.partition(".")[0]]
        place = max((match.end() for match in before or found.values()), default=len(text))
        quote = "`" if "." in name or name.islower() else ""
        return _sections(
            f"{text[:place]}### {quote}{name}{quote}\n\n{create(kinds[name])}\n{text[place:]}", kinds, write, create
        )

    def replace(match: re.Match[str]) -> str:
        if match[2] not in kinds:
            return ""
        return f"### {match[1]}{match[2]}{match[1]}\n\n{write(match[3], kinds[match[2]])}\n"

    return _SECTION.sub(replace, text).rstrip("\n") + "\n"


def _table(fields: Mapping[str, str], meanings: Mapping[str, str]) -> str:
    rows = [f"| `{name}` | {text} | {meanings.get(name, '')} |".replace("|  |", "| |") for name, text in fields.items()]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows]) + "\n" if rows else ""


def _meanings(section: str) -> dict[str, str]:
    return {
        name: text for name, text in re.findall(r"^\| `(\w+)` \|.*?(?<!\\)\| (.+) \|$", section, re.MULTILINE) if text
    }


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part.strip()).rstrip("\n") + "\n"


def settings_page(text: str) -> str:
    """Each key has its row with its default. A new one comes after the last of its section."""
    defaults = {key: f"`{json.dumps(default)}`" for key, default in keys().items()}
    return _rows(text, {key: (default, "") for key, default in defaults.items()}, lambda key: key.rpartition(".")[0])


def rest_page(text: str, routes: Iterable[ServedRoute]) -> str:
    """Each route has its row with its scope. A new one comes after the last whose path begins alike."""
    known = {each.name: (each.scope, each.summary) for each in routes}
    return _rows(text, known, lambda name: "/".join(name.partition(" ")[2].split("/")[:3]))


def _rows(text: str, known: Mapping[str, tuple[str, str]], group: Callable[[str], str]) -> str:
    """The rows of all tables: their first cell is the key, the second is generated, the third one is prose."""
    lines = text.split("\n")
    places = {match[1]: number for number, line in enumerate(lines) if (match := re.match(r"\| `([^`]+)` \|", line))}
    for key in [key for key in known if key not in places]:
        alike = [number for other, number in places.items() if group(other) == group(key)]
        lines.insert(max(alike or places.values()) + 1, f"| `{key}` | {' | '.join(known[key])} |")
        return _rows("\n".join(lines), known, group)
    for key, number in places.items():
        if key in known:
            _, _, meaning = (cell.strip() for cell in lines[number].strip("|").split(" | ", 2))
            lines[number] = f"| `{key}` | {known[key][0]} | {meaning} |"
    gone = {number for key, number in places.items() if key not in known}
    return "\n".join(line for number, line in enumerate(lines) if number not in gone)


# -- all of them -------------------------------------------------------------------------------------------------


def served(server: Any) -> list[ServedRoute]:
    """The routes that rest.md lists: those of features, and of all doors without a page of their own."""
    others = [name for name in OWN if name not in ("rest", "ops", "web")]
    elsewhere = {id(route) for name in others for route in server.doors[name].routes}
    table = [route for route in server.gate.table if hasattr(route, "methods") and id(route) not in elsewhere]
    return [ServedRoute(f"{method} {each.path}", each.scope, each.summary) for each in table for method in each.methods]


async def _write() -> None:
    from tests.doors.standing import standing

    for page, write in ((COMMANDS, commands_page), (EVENTS, events_page), (SETTINGS, settings_page)):
        page.write_text(write(page.read_text()))
    with tempfile.TemporaryDirectory() as folder:
        async with standing(Path(folder)) as here:
            REST.write_text(rest_page(REST.read_text(), served(here.server)))


if __name__ == "__main__":
    asyncio.run(_write())

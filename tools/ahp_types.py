"""Writes the types of what AHP clients send: `python -m tools.ahp_types SCHEMAS`.

SCHEMAS is a folder with the published JSON schemas of the protocol, `v0.7.0/schema` and `v1-seed/schema`; they are not
part of this repository. What the schemas cannot say stands below: what clients of other versions leave out or send
besides, what must be a whole number, and what passes through us unread. Values of enums and variants that we do not
know pass as well, so an enum is written as a string.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
TARGET = Path(__file__).parents[1] / "src/portico/doors/ahp/wire"

STRING: Json = {"type": "string"}
BOOLEAN: Json = {"type": "boolean"}
DECISIONS: Json = {"type": "array", "items": {"$ref": "#/$defs/EnablementDecision"}}


def action(kind: str, required: Json, optional: Json | None = None) -> Json:
    """An action that is younger than the schema."""
    fields = {"type": {"const": kind}, **required}
    return {"type": "object", "properties": fields | (optional or {}), "required": [*fields]}


_DEFINITION = {"type": "object", "additionalProperties": {}}
LATER: dict[str, Json] = {
    "SessionWorkingDirectoryReplacedAction": action(
        "session/workingDirectoryReplaced", {"directory": STRING, "replacement": STRING}
    ),
    "SessionMcpServerBackgroundRequestedAction": action("session/mcpServerBackgroundRequested", {"id": STRING}),
    "ChatTurnResumeAction": action("chat/turnResume", {"turnId": STRING}),
    "ChatIsReadChangedAction": action("chat/isReadChanged", {"isRead": BOOLEAN}),
    "ChatIsArchivedChangedAction": action("chat/isArchivedChanged", {"isArchived": BOOLEAN}),
    "AutomationCreateRequestedAction": action(
        "automation/createRequested", {"resource": STRING, "definition": _DEFINITION}
    ),
    "AutomationUpdateRequestedAction": action(
        "automation/updateRequested", {"resource": STRING, "changes": _DEFINITION}
    ),
    "AutomationRemovedAction": action("automation/removed", {"resource": STRING}),
    "AutomationRunCancelRequestedAction": action("automationRun/cancelRequested", {}),
    "EnablementDecision": {
        "type": "object",
        "properties": {"kind": STRING, "enabled": BOOLEAN},
        "required": ["kind", "enabled"],
    },
}
"""Of 0.8 to 1.0."""

LATER_FIELDS: dict[str, Json] = {
    "SessionCustomizationToggledAction": {"enablement": DECISIONS},
    "TerminalSessionClaim": {"chat": STRING},
    "ClientPluginCustomization": {
        "displayName": STRING,
        "enablement": DECISIONS,
        "childEnablement": {"type": "object", "additionalProperties": DECISIONS},
    },
    "AnnotationsUpdatedAction": {"origin": {"type": "object"}},
}
OPTIONAL: dict[str, set[str]] = {
    "ChatTurnStartedAction": {"startedAt"},
    "ChatTurnCancelledAction": {"duration"},
    "ChatToolCallConfirmedAction": {"confirmed", "reason"},
    "Message": {"origin"},
    "SessionActiveClient": {"tools"},
    "ClientPluginCustomization": {"id", "name", "enabled", "type"},
    "SessionCustomizationToggledAction": {"enabled"},
    "Annotation": {"turnId", "resolved"},
    "AnnotationEntry": {"author", "createdAt"},
}
"""What the schema requires and clients of other versions do not send."""
SEED_OPTIONAL: dict[str, set[str]] = {
    "SessionToolCallConfirmedAction": {"confirmed", "reason"},
    "SessionActiveClient": {"tools"},
    "SessionActiveClientChangedAction": {"activeClient"},
    "CustomizationRef": {"displayName"},
}
"""The same of version 1; a client that leaves sends null."""
SEED = "v1-seed"
SEED_ADDRESS = {"session", "terminal"}
"""What an action of version 1 is about: its address, and checked as such."""
WHOLE = {"cols", "rows", "line", "character", "sizeHint", "clientSeq", "serverSeq"}
"""The schemas say `number` of these, too."""
SAID = dict.fromkeys(WHOLE, "int") | {"approved": "bool"}
"""Fields of which the schemas say too little."""
UNREAD = {"children", "load", "icons", "annotations", "inputSchema", "outputSchema", "before", "after", "_meta"}
"""Fields that are kept as they are."""

DISPATCHED = {
    "v0.7.0": (
        "root/configChanged session/titleChanged session/activeClientSet session/activeClientRemoved"
        " session/workingDirectorySet session/workingDirectoryRemoved session/workingDirectoryReplaced"
        " session/customizationToggled session/mcpServerStartRequested session/mcpServerStopRequested"
        " session/mcpServerBackgroundRequested session/isReadChanged session/isArchivedChanged session/configChanged"
        " chat/turnStarted chat/toolCallConfirmed chat/toolCallComplete chat/toolCallResultConfirmed"
        " chat/toolCallContentChanged chat/turnCancelled chat/turnResume chat/workingDirectorySet"
        " chat/workingDirectoryRemoved chat/pendingMessageSet chat/pendingMessageRemoved chat/queuedMessagesReordered"
        " chat/draftChanged chat/inputAnswerChanged chat/inputCompleted chat/truncated chat/isReadChanged"
        " chat/isArchivedChanged changeset/filesReviewChanged annotations/set annotations/updated annotations/removed"
        " annotations/entrySet annotations/entryRemoved terminal/input terminal/resized terminal/claimed"
        " terminal/titleChanged terminal/cleared automation/createRequested automation/updateRequested"
        " automation/removed automationRun/cancelRequested"
    ),
    "v1-seed": (
        "root/configChanged session/turnStarted session/toolCallConfirmed session/toolCallComplete"
        " session/toolCallResultConfirmed session/toolCallContentChanged session/turnCancelled session/titleChanged"
        " session/modelChanged session/isReadChanged session/isArchivedChanged session/configChanged"
        " session/activeClientChanged session/activeClientToolsChanged session/customizationToggled session/truncated"
        " session/inputAnswerChanged session/inputCompleted session/pendingMessageSet session/pendingMessageRemoved"
        " session/queuedMessagesReordered terminal/input terminal/resized terminal/claimed terminal/titleChanged"
        " terminal/cleared"
    ),
}
"""What a client may dispatch."""
GIVEN = {"v0.7.0": ("ChatSource", "ChangesetOperationTarget"), "v1-seed": ()}
"""Types inside the parameters of commands."""
WRITTEN = {"v0.7.0": "types.py", "v1-seed": "types_v1.py"}


class Types(NamedTuple):
    version: str
    definitions: dict[str, Json]


def load(schemas: Path, version: str) -> Types:
    found: dict[str, Json] = {}
    for name in ("actions", "commands", "notifications", "state"):
        text = (schemas / version / f"schema/{name}.schema.json").read_text()
        found |= json.loads(_NAMED_CONSTANT.sub(_constant, text), object_hook=_without_gaps)["$defs"]
    later, optional = ({}, SEED_OPTIONAL) if version == SEED else (LATER_FIELDS, OPTIONAL)
    found |= {} if version == SEED else LATER
    for name, each in found.items():
        if "properties" in each:
            fields = each["properties"] | later.get(name, {})
            left_out = optional.get(name, set()) | (SEED_ADDRESS if version == SEED and _is_action(each) else set())
            required = [field for field in each.get("required", []) if field not in left_out]
            found[name] = each | {"properties": fields, "required": required}
    return Types(version, {name: _merged(each, found, optional.get(name, set())) for name, each in found.items()})


def _without_gaps(of: Json) -> Json:
    """Some variants are empty or refer to nothing."""
    return (
        of | {"oneOf": [each for each in of["oneOf"] if each.get("$ref", each) not in ({}, "#/$defs/")]}
        if "oneOf" in of
        else of
    )


_NAMED_CONSTANT = re.compile(r'"\$ref": "#/\$defs/(\w+)\.(\w+)"')


def _constant(found: "re.Match[str]") -> str:
    """Version 1 refers to the members of its enums: their values follow from their names."""
    enum, member = found.groups()
    words = re.findall(r"[A-Z][a-z0-9]*", member)
    if enum == "ActionType":
        value = f"{words[0].lower()}/{_camel(words[1:])}"
    else:
        value = _camel(words) if enum == "ToolResultContentType" else "-".join(words).lower()
    return f'"const": "{value}"'


def _camel(words: list[str]) -> str:
    return words[0].lower() + "".join(words[1:])


def _is_action(of: Json) -> bool:
    return "/" in str(of["properties"].get("type", {}).get("const"))


def _merged(each: Json, all: dict[str, Json], optional: set[str]) -> Json:
    """Variants without a tag of their own (approved, denied) are one type."""
    variants = [all.get(_name(one.get("$ref", "")), {}) for one in each.get("oneOf", [])]
    tags = [one.get("properties", {}).get("type", {}).get("const") for one in variants]
    if not tags or None in tags or len(set(tags)) > 1:
        return each
    fields: Json = {}
    for one in variants:
        fields |= one["properties"]
    required = set.intersection(*(set(one["required"]) for one in variants)) - optional
    return {"type": "object", "properties": fields, "required": [one for one in fields if one in required]}


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


def by_action(types: Types) -> dict[str, str]:
    """Action types to the names of their definitions."""
    found: dict[str, str] = {}
    for name, each in types.definitions.items():
        kind = each.get("properties", {}).get("type", {}).get("const")
        if isinstance(kind, str) and "/" in kind and (kind not in found or name.endswith("ConfirmedAction")):
            found[kind] = name
    return found


def source(types: Types, roots: Iterable[str], actions: dict[str, str], known: dict[str, str] | None = None) -> str:
    """`known`: what was written before, names by declarations; more are added."""
    ordered: dict[str, str] = {}
    for root in roots:
        _collect(root, types.definitions, ordered)
    kept, renamed = _shared(
        "\n\n".join(ordered.values()), {} if known is None else known, WRITTEN[types.version].removesuffix(".py")
    )
    body = "\n\n".join(kept)
    table = "".join(f'    "{kind}": {renamed.get(name, name)},\n' for kind, name in actions.items())
    imports = ", ".join(each for each in ("Any", "Literal", "NotRequired", "TypedDict") if each in body)
    others = "\nfrom portico.doors.ahp.wire import types\n" if " types." in body + table else ""
    return (
        f'"""What clients send, after the schema {types.version}. Written by `tools/ahp_types.py`: change that."""\n\n'
        f"from typing import {imports}\n{others}\n{body}\n\n"
        f"ACTIONS: dict[str, Any] = {{\n{table}}}\n" + '"""What a client may dispatch."""\n'
    )


_DECLARED = re.compile(r"^(?:class (\w+)\(TypedDict\):|(\w+) =)(.+?)\n(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def _shared(body: str, known: dict[str, str], module: str) -> tuple[list[str], dict[str, str]]:
    """Without what another one says in the same words, and by whose name that goes."""
    kept: list[str] = []
    whole: dict[str, str] = {}
    """Names with their module: the same words may mean another type there."""
    renamed: dict[str, str] = {}
    for record, union, rest in _DECLARED.findall(body):
        own = record or union
        whole[own] = known.setdefault(_with(whole, rest), f"{module}.{own}")
        if whole[own] == f"{module}.{own}":
            kept.append((f"class {own}(TypedDict):" if record else f"{own} =") + _with(renamed, rest) + "\n")
        else:
            renamed[own] = whole[own].removeprefix(f"{module}.")
    return kept, renamed


def _with(names: dict[str, str], text: str) -> str:
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), text)


def _collect(name: str, definitions: dict[str, Json], ordered: dict[str, str]) -> None:
    """Those that it refers to come first."""
    if name in ordered or _is_plain(definitions.get(name, {})):
        return
    for each in _references(definitions[name]):
        _collect(each, definitions, ordered)
    ordered[name] = _declared(name, definitions[name], definitions)


def _references(of: Json) -> Iterator[str]:
    if "$ref" in of:
        yield _name(of["$ref"])
    for field, each in of.get("properties", {}).items():
        if field not in UNREAD:
            yield from _references(each)
    for each in (*of.get("oneOf", ()), of.get("items"), of.get("additionalProperties")):
        yield from _references(each) if isinstance(each, dict) else ()


def _is_plain(of: Json) -> bool:
    return "properties" not in of and not any("$ref" in each or "properties" in each for each in of.get("oneOf", ()))


def _declared(name: str, of: Json, definitions: dict[str, Json]) -> str:
    """With the records that stand inside it, each under a name that says where."""
    if "properties" in of:
        return _inner(name, of, definitions) + _record(name, of, definitions)
    said, inner = [], ""
    for each in of["oneOf"]:
        tag = str(each.get("properties", {}).get("kind", {}).get("const", "object"))
        inside = name + tag[0].upper() + tag[1:]
        inner += _declared(inside, each, definitions) + "\n\n" if "properties" in each else ""
        said.append(_type(each, definitions, inside))
    return inner + f"{name} = {' | '.join(dict.fromkeys(said))}\n"


def _inner(name: str, of: Json, definitions: dict[str, Json]) -> str:
    known = {field: each for field, each in of["properties"].items() if field not in UNREAD}
    found = {name + field[0].upper() + field[1:]: each for field, each in known.items()}
    return "".join(
        _declared(inside, each, definitions) + "\n\n" for inside, each in found.items() if "properties" in each
    )


def _record(name: str, of: Json, definitions: dict[str, Json]) -> str:
    required = set(of.get("required", ()))
    lines = []
    for field, each in of["properties"].items():
        kind = (
            _unread(each)
            if field in UNREAD
            else SAID.get(field) or _type(each, definitions, name + field[0].upper() + field[1:])
        )
        lines.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}\n")
    return f"class {name}(TypedDict):\n" + ("".join(lines) or "    pass\n")


def _unread(of: Json) -> str:
    return {"object": "dict[str, Any]", "array": "list[Any]"}.get(str(of.get("type")), "Any")


_PLAIN = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}


def _type(of: Json, definitions: dict[str, Json], inside: str = "") -> str:
    """`inside`: the name of a record that stands here without one."""
    if "$ref" in of:
        name = _name(of["$ref"])
        found = definitions.get(name, STRING)  # version 1 leaves out its enums, and what a URI is
        return _type(found, definitions) if _is_plain(found) else name
    if "const" in of:
        return f'Literal["{of["const"]}"]' if isinstance(of["const"], str) else "bool"
    if "oneOf" in of:
        values = [each["const"] for each in of["oneOf"] if "const" in each]
        if len(values) == len(of["oneOf"]):
            return f"Literal[{', '.join(map(json.dumps, values))}]"
        return " | ".join(dict.fromkeys(_type(each, definitions) for each in of["oneOf"]))
    kind = of.get("type")
    if kind == "array":
        return f"list[{_type(of.get('items', {}), definitions)}]"
    if kind == "object" and "properties" in of and inside:
        return inside
    if kind == "object":
        inner = of.get("additionalProperties")
        return f"dict[str, {_type(inner, definitions) if isinstance(inner, dict) else 'Any'}]"
    return _PLAIN.get(str(kind), "Any")


def write(schemas: Path, version: str, known: dict[str, str] | None = None) -> str:
    types = load(schemas, version)
    found = by_action(types)
    actions = {kind: found[kind] for kind in DISPATCHED[version].split()}
    for name in actions.values():  # found by their type, so they need not say it
        del types.definitions[name]["properties"]["type"]
    return source(types, (*actions.values(), *GIVEN[version]), actions, known)


def written(schemas: Path) -> dict[str, str]:
    """The files. Version 1 refers to what it has in common with the other."""
    known: dict[str, str] = {}
    return {file: write(schemas, version, known) for version, file in WRITTEN.items()}


if __name__ == "__main__":  # format them afterwards: `ruff format`
    for _file, _text in written(Path(sys.argv[1])).items():
        (TARGET / _file).write_text(_text)

"""Chooses a tool that the agent declares: every agent uses different names for the same few tools."""

import re
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Any, NamedTuple

from portico.testing.model.request import RequestTool
from portico.testing.model.script import ScriptedCall, ToolKind

# Names used by real agents, the most specific first.
NAMES: dict[ToolKind, tuple[str, ...]] = {
    "execute": (
        "bash",
        "exec_command",
        "run_shell_command",
        "shell",
        "shell_command",
        "execute",
        "run_command",
        "runcommand",
    ),
    "read": ("view", "read", "read_file", "readfiles"),
    "write": ("create", "write", "write_file", "create_file", "createfile"),
    "edit": ("edit", "edit_file", "replace", "str_replace", "editfile"),
}
# A neutral argument and the properties that take it, compared without case and underscores.
PROPERTIES: dict[str, tuple[str, ...]] = {
    "command": ("command", "cmd", "script"),
    "path": ("path", "filepath", "absolutepath", "file", "filename", "files"),
    "content": ("content", "contents", "filetext", "text"),
    "old": ("oldstring", "oldstr", "old", "before", "oldtext", "search"),
    "new": ("newstring", "newstr", "new", "after", "newtext", "replace"),
}


PATCH = "apply_patch"
"""Codex writes and edits by a patch, as free text."""


class ToolChoice(NamedTuple):
    name: str
    args: dict[str, Any] | str
    freeform: bool = False


def choose(call: ScriptedCall, tools: Sequence[RequestTool]) -> ToolChoice | None:
    """Return the tool to call; None if none matches. A plain name is called even if undeclared: a model may do that."""
    for wanted in (call, *call.alternatives):
        args = wanted.args or call.args
        for tool in _fitting(wanted, tools):
            if wanted.kind is None or isinstance(args, str):
                return ToolChoice(tool.name, args, tool.freeform)
            if tool.freeform:
                return ToolChoice(tool.name, patch(wanted.kind, args), freeform=True)
            return ToolChoice(tool.name, _translate(args, tool.parameters), tool.freeform)
    if call.kind == "read" and isinstance(call.args, dict):  # Codex reads with its shell
        return choose(ScriptedCall(kind="execute", args={"command": f"cat {quote(str(call.args.get('path')))}"}), tools)
    names = _names(call)
    return ToolChoice(names[0], call.args) if names else None


def _fitting(call: ScriptedCall, tools: Sequence[RequestTool]) -> Iterator[RequestTool]:
    for name in _names(call):
        yield from (tool for tool in tools if tool.name == name)
    if call.match:
        yield from (tool for tool in tools if re.fullmatch(call.match, tool.name))
    if call.kind:
        for name in NAMES[call.kind]:
            # A prefix is an extension's name space: `developer__shell`.
            yield from (tool for tool in tools if tool.name.lower().rpartition("__")[2] == name)
        if call.kind in ("write", "edit"):
            yield from (tool for tool in tools if tool.freeform and tool.name == PATCH)


def _names(call: ScriptedCall) -> list[str]:
    return [call.name] if isinstance(call.name, str) else call.name


def _translate(args: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Map neutral arguments to the tool's own names, and add valid values for all other required properties."""
    properties = _mapping(schema.get("properties"))
    result: dict[str, Any] = {}
    for neutral, value in args.items():
        name = _property(neutral, properties)
        wants_list = _mapping(properties.get(name)).get("type") == "array"
        result[name] = _listed(neutral, value) if wants_list else value
    for name in _required(schema):
        result.setdefault(name, example(_mapping(properties.get(name))))
    return result


def patch(kind: ToolKind, args: dict[str, Any]) -> str:
    """A new file, or a change of one, as Codex writes it."""
    if kind == "write":
        change = [f"*** Add File: {args.get('path')}", *_marked("+", args.get("content"))]
    else:
        lines = [*_marked("-", args.get("old")), *_marked("+", args.get("new"))]
        change = [f"*** Update File: {args.get('path')}", "@@", *lines]
    return "\n".join(["*** Begin Patch", *change, "*** End Patch", ""])


def _marked(sign: str, text: object) -> list[str]:
    return [f"{sign}{line}" for line in str(text).splitlines()]


def _listed(neutral: str, value: Any) -> list[Any]:
    return ["bash", "-lc", value] if neutral == "command" else [value]


def _property(neutral: str, properties: dict[str, Any]) -> str:
    if neutral in properties:
        return neutral
    for candidate in PROPERTIES.get(neutral, ()):
        for name in properties:
            if name.replace("_", "").lower() == candidate:
                return name
    return neutral


def example(schema: dict[str, Any], root: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """The smallest value that fits a JSON schema, as far as agents use it; keywords it does not know are ignored."""
    root = schema if root is None else root
    if depth > _DEPTH:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        return example(_lookup(reference, root), root, depth + 1)
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("enum", "anyOf", "oneOf", "allOf"):
        choices = schema.get(keyword)
        if isinstance(choices, list) and choices:
            return choices[0] if keyword == "enum" else example(_mapping(choices[0]), root, depth + 1)
    return _plain(schema, root, depth)


# Deeper than any schema in use; stops one that refers to itself.
_DEPTH = 20


def _plain(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        kind = kind[0]
    match str(kind).lower():  # Gemini writes types in capitals
        case "object":
            properties = _mapping(schema.get("properties"))
            return {name: example(_mapping(properties.get(name)), root, depth + 1) for name in _required(schema)}
        case "array":
            least = schema.get("minItems")
            count = least if isinstance(least, int) and 0 < least <= _DEPTH else 0
            return [example(_mapping(schema.get("items")), root, depth + 1)] * count
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return "scripted"


def _number(schema: dict[str, Any]) -> int | float:
    """One, if it may be: real agents check scores from 1 on without saying so in their schema."""
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(least, int | float) and least > 1:
        return least
    return most if isinstance(most, int | float) and most < 1 else 1


def _required(schema: dict[str, Any]) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _lookup(reference: str, root: dict[str, Any]) -> dict[str, Any]:
    found: Any = root
    for name in filter(None, reference.removeprefix("#").split("/")):
        found = _mapping(found).get(name)
    return _mapping(found)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}

"""The arguments of our own tools as they were meant: one form, made before anything is judged, shown or run.

What changes nothing (a description, an empty field) is left out here, so that no later step sees it. A tool that
changes something gets no field that it does not know: it is rejected, because its meaning is unknown.
"""

import json
from typing import Any

from portico.agents.loop import lenient_json
from portico.kernel.events import Json

WRAPPERS = ("args", "arguments", "parameters", "input")
"""Names under which weak models wrap the arguments once more, as other protocols do."""
_ALIASES = {
    **dict.fromkeys(("old_string", "oldText", "old_str", "old_text", "oldString"), "search"),
    **dict.fromkeys(("new_string", "newText", "new_str", "new_text", "newString"), "replace"),
    **dict.fromkeys(("replace_all", "replaceAll", "allow_multiple"), "all"),
    **dict.fromkeys(("file_path", "filePath", "filename", "file", "target_file", "absolute_path"), "path"),
    **dict.fromkeys(("workdir", "working_directory", "directory"), "cwd"),
}
"""Names of arguments that models know from other agents."""
_NOTES = frozenset(
    {"description", "explanation", "reason", "reasoning", "rationale", "justification", "thought", "thoughts"}
    | {"thinking", "title", "comment", "commentary", "note", "purpose", "intent", "summary", "goal", "instructions"}
    | {"security_risk", "risk", "requires_approval", "is_dangerous", "task_progress", "id", "priority", "activeForm"}
)
"""Words about a call, which other agents ask for. None of them changes what a call does; what a model writes about its
own risk decides nothing."""
_STATES = {
    **dict.fromkeys(("done", "complete", "finished"), "completed"),
    **dict.fromkeys(("todo", "not_started", "open"), "pending"),
    **dict.fromkeys(("in-progress", "inProgress", "active", "doing"), "in_progress"),
}
_YES, _NO = ("true", "yes", "1", "on"), ("false", "no", "0", "off")


def fitted(arguments: Json, schema: Json, *, reads: bool) -> Json:
    """The arguments in the form of the schema. `reads`: the tool changes nothing, so that unknown fields do no harm."""
    properties: Json = schema.get("properties", {})
    if len(arguments) == 1:
        [(name, value)] = arguments.items()
        value = _object(value) if name in WRAPPERS and name not in properties else None
        arguments = value if value is not None else arguments
    said = _renamed({name: value for name, value in arguments.items() if value is not None}, properties)
    if "files" in properties and "path" in said and "path" not in properties:
        path = said.pop("path")
        said.setdefault("files", path)
    said = {
        name: _value(value, properties[name]) if name in properties else value
        for name, value in said.items()
        if name in properties or not (reads or name in _NOTES or _is_empty(value))
    }
    required = schema.get("required", [])
    return {name: value for name, value in said.items() if name in required or not _is_unused(name, value, said)}


def _renamed(arguments: Json, properties: Json) -> Json:
    found: Json = {}
    for name, value in arguments.items():
        ours = name if name in properties else _ALIASES.get(name, name)
        takes = ours in properties or (ours == "path" and "files" in properties)
        found[ours if takes and ours not in arguments else name] = value
    return found


def _is_empty(value: Any) -> bool:
    return value is False or (isinstance(value, str | list | dict) and not value)


def _is_unused(name: str, value: Any, said: Json) -> bool:
    """Some models fill in every field that a tool has."""
    if name in ("range", "edits", "choices"):
        return value == [] and (name != "edits" or len(said) > 2)
    if name in ("cwd", "timeout", "max"):
        return value in ("", 0)
    if name in ("content", "diff"):
        return value == "" and any(said.get(other) for other in ("search", "edits", "content", "diff") if other != name)
    if name in ("search", "replace"):
        return value == "" and not said.get("search") and any(said.get(other) for other in ("edits", "content", "diff"))
    return False


def _value(value: Any, schema: Json) -> Any:
    kinds = schema.get("type", "string")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "array" in kinds:
        return _list(value, schema, "string" in kinds)
    if isinstance(value, str) and "string" not in kinds:
        return _scalar(value, kinds)
    if "string" in kinds and not isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and "integer" in kinds and value.is_integer():
        return int(value)
    return _STATES.get(value, value) if isinstance(value, str) and value not in schema.get("enum", [value]) else value


def _list(value: Any, schema: Json, or_text: bool) -> Any:
    """A list, also written as JSON in a string; one item alone."""
    items: Json = schema.get("items", {})
    if isinstance(value, str):
        found = _decoded(value) if value.lstrip()[:1] in ("[", "{") else None
        if isinstance(found, list) and (not or_text or all(isinstance(each, str) for each in found)):
            value = found
        elif isinstance(found, dict) and items.get("type") == "object":
            value = [found]
        elif or_text or items.get("type") != "string":
            return value
        else:
            value = [value]
    if isinstance(value, dict):
        value = [value]
    return [_item(each, items) for each in value] if isinstance(value, list) else value


def _item(value: Any, items: Json) -> Any:
    if items.get("type") != "object":
        path = value.get("path") if isinstance(value, dict) and items.get("type") == "string" else None
        return path if isinstance(path, str) else _value(value, items)
    properties: Json = items.get("properties", {})
    if isinstance(value, str) and "text" in properties:
        return {"text": value}
    found = _object(value)
    if found is None:
        return value
    if "text" in properties:
        found = {_STEP_TEXTS.get(name, name) if "text" not in found else name: each for name, each in found.items()}
    return fitted(found, items, reads=False)


_STEP_TEXTS = dict.fromkeys(("content", "step", "task", "title", "description"), "text")


def _scalar(value: str, kinds: list[str]) -> Any:
    text = value.strip().lower()
    if "boolean" in kinds:
        return True if text in _YES else False if text in _NO else value
    try:
        number = float(text)
    except ValueError:
        return value
    return int(number) if number.is_integer() and ("integer" in kinds or "." not in text) else number


def _text(value: Any) -> Any:
    """Numbers and JSON as the text of a file or a pattern."""
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n" if isinstance(value, dict) else value


def _object(value: Any) -> Json | None:
    found = _decoded(value) if isinstance(value, str) and value.lstrip().startswith("{") else value
    return found if isinstance(found, dict) else None


def _decoded(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    try:
        return lenient_json.loads(text)
    except ValueError:
        return None

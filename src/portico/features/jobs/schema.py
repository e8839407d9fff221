"""The JSON Schema of an entry, for editors: generated from the types, so it is always current."""

from typing import Any

import msgspec

from portico.features.jobs.entry import JOB_TOOLS, WORKFLOW_KINDS, Entry

_OF_WORKFLOWS = WORKFLOW_KINDS | {
    *("FlowStep", "JobInput", "AskDo", "CallDo", "Flow", "HttpDo", "MergeDo", "PromptDo", "Retry", "RunDo", "WaitDo")
}
"""Types in the tree of a job that an entry file cannot contain."""
_HIDDEN = [{"$ref": f"#/$defs/{name}"} for name in _OF_WORKFLOWS]


def entry_schema() -> dict[str, Any]:
    """The schema of an entry file (JSON Schema 2020-12)."""
    (_,), parts = msgspec.json.schema_components([Entry], ref_template="#/$defs/{name}")
    definitions = {name: _plain(part) for name, part in parts.items() if name not in _OF_WORKFLOWS}
    entry = definitions.pop("Entry")
    del definitions["Job"]["properties"]["flow"]
    _state_rules(entry, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Portico entry",
        **{key: value for key, value in entry.items() if key != "title"},
        "$defs": definitions,
    }


def _state_rules(entry: dict[str, Any], definitions: dict[str, Any]) -> None:
    """The rules a schema can state and a Python type cannot."""
    properties = entry["properties"]
    entry["required"] = ["models", "drivingSessionRetries", "tasks", "grid"]
    properties["models"]["required"] = ["driving"]
    properties["drivingSessionRetries"]["minItems"] = 1
    for key in ("models", "drivingSessionRetries"):
        del properties[key]["default"]
    for one in ("Model", "Check"):
        definitions[one] |= {"minProperties": 1, "maxProperties": 1}
    checks = {"type": "array", "items": {"$ref": "#/$defs/Check"}}
    definitions["Task"]["properties"]["criteria"] = {"anyOf": [{"$ref": "#/$defs/Criteria"}, checks]}
    definitions["Criteria"]["properties"]["toolExecuted"]["items"] = {"enum": list(JOB_TOOLS)}
    output = definitions["Task"]["properties"]["output"]
    definitions["Task"]["properties"]["output"] = {"anyOf": [{"type": "string"}, output]}
    for leaf in ("Ref", "Ask", "Wait"):
        del definitions[leaf]["properties"]["workIdInJob"]["default"]


def _plain(part: Any) -> Any:
    """Remove null from optional keys, which are omitted and never null, except where null is a value."""
    if isinstance(part, list):
        return [_plain(item) for item in part if item not in _HIDDEN]
    if not isinstance(part, dict):
        return part
    # `discriminator` belongs to OpenAPI; validators of JSON Schema in strict mode refuse it.
    plain = {key: _plain(value) for key, value in part.items() if key != "discriminator"}
    if "default" in plain and plain["default"] is None:
        return _without_null(plain)
    return plain


def _without_null(part: dict[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in part["anyOf"] if kind != {"type": "null"}]
    rest = {key: value for key, value in part.items() if key not in ("anyOf", "default")}
    return rest | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})

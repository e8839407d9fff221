"""Whatever a test client hears is checked against the published schemas: version 1 and 0.7.0.

Every test that connects with one of the two takes part, when the protocol's data lies beside the repository. A shape
(keys and types, without the values) is checked once: the schemas are large and slow.
"""

import functools
import json
import re
from typing import Any

import jsonschema

from tests.doors.ahp.fixtures import AHP

Json = dict[str, Any]
FOLDERS = {"1": "v1-seed", "0.7.0": "v0.7.0"}
_STATES = {
    "root": "RootState",
    "session": "SessionState",
    "chat": "ChatState",
    "terminal": "TerminalState",
    "changeset": "ChangesetState",
    "annotations": "AnnotationsState",
    "resourceWatch": "ResourceWatchState",
}
_NOTICES = {
    "root/sessionAdded": "SessionAddedParams",
    "root/sessionRemoved": "SessionRemovedParams",
    "root/sessionSummaryChanged": "SessionSummaryChangedParams",
    "root/progress": "ProgressParams",
    "auth/required": "AuthRequiredParams",
    "otlp/exportLogs": "OtlpExportLogsParams",
    "notify/sessionAdded": "SessionAddedNotification",
    "notify/sessionRemoved": "SessionRemovedNotification",
    "notify/sessionSummaryChanged": "SessionSummaryChangedNotification",
    "notify/authRequired": "AuthRequiredNotification",
}
_seen: set[str] = set()


def knows(version: str) -> bool:
    return version in FOLDERS and (AHP / FOLDERS[version]).is_dir()


@functools.cache
def _schema(version: str, file: str) -> Json:
    text = (AHP / FOLDERS[version] / "schema" / f"{file}.schema.json").read_text()
    # Slips of the published files: the status is a set of bits, and some references name nothing. In version 1 all tags
    # are such references, what stands inside an edit or a tool's schema is text, and a turn without usage has no place.
    schema: Json = json.loads(text.replace('"oneOf"', '"anyOf"') if version == "1" else text)
    schema["$defs"]["SessionStatus"] = {"type": "integer"}
    if version == "1":
        for definition in schema["$defs"].values():
            for field in ("edits", "before", "after", "inputSchema", "outputSchema"):
                definition.get("properties", {}).get(field, {}).pop("properties", None)
        for turn in ("Turn", "ActiveTurn"):
            if turn in schema["$defs"]:
                schema["$defs"][turn]["required"].remove("usage")
        if "SessionActivityChangedAction" in schema["$defs"]:  # `undefined` has no place in JSON
            schema["$defs"]["SessionActivityChangedAction"]["required"].remove("activity")
    for name in re.findall(r'"#/\$defs/([^"]*)"', json.dumps(schema)):
        schema["$defs"].setdefault(name, True)
    return schema


@functools.cache
def _validator(version: str, file: str, name: str) -> Any:
    return jsonschema.Draft202012Validator({**_schema(version, file), "$ref": f"#/$defs/{name}"})


@functools.cache
def _actions(version: str) -> dict[str, str]:
    """Action types and their definitions."""
    found: dict[str, str] = {}
    for name, definition in _schema(version, "actions")["$defs"].items():
        kind = definition.get("properties", {}).get("type", {}) if isinstance(definition, dict) else {}
        if "const" in kind:
            found.setdefault(kind["const"], name)
        elif "ActionType." in kind.get("$ref", ""):
            words = kind["$ref"].rpartition(".")[2]
            channel, rest = re.findall(r"^(Root|Session|Terminal)(.*)$", words)[0]
            found.setdefault(f"{channel.lower()}/{rest[0].lower()}{rest[1:]}", name)
    return found


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        named = {key: entry for key, entry in value.items() if key in ("type", "kind", "status", "state", "approved")}
        tags = [f"{key}={entry}" for key, entry in named.items() if isinstance(entry, str | bool)]
        return [sorted(tags), {key: _shape(value[key]) for key in sorted(value)}]
    if isinstance(value, list):
        return sorted({json.dumps(_shape(entry)) for entry in value})
    return type(value).__name__


def check(version: str, file: str, name: str, value: Any) -> None:
    shape = f"{version} {name} {json.dumps(_shape(value))}"
    if shape in _seen:
        return
    _seen.add(shape)
    errors = list(_validator(version, file, name).iter_errors(value))
    best = jsonschema.exceptions.best_match(errors)
    assert best is None, f"{version} {name} at {list(best.absolute_path)}: {best.message[:400]}\n{value}"


def check_action(version: str, action: Json) -> None:
    kind = action["type"]
    name = _actions(version).get(kind)
    assert name is not None, f"{version} does not know {kind!r}"
    if kind.endswith("/toolCallConfirmed") and not action["approved"]:
        name = name.replace("Approved", "Denied")
    check(version, "actions", name, action)


def check_state(version: str, kind: str, state: Json) -> None:
    check(version, "state", _STATES[kind], state)


def check_result(version: str, method: str, result: Any) -> None:
    names = _schema(version, "commands")["$defs"]
    name = f"{method[0].upper()}{method[1:]}Result"
    if method == "reconnect":
        name = f"Reconnect{result['type'].capitalize()}Result"
    if name in names:
        hollow = {**result, "actions": []} if "actions" in result else result
        check(version, "commands", name, _without_states(hollow))
    elif "/" not in method:  # that would be MCP's own: a server's words, as it said them
        assert result is None, (method, result)


def _without_states(result: Any) -> Any:
    """States are checked by their own kind; a union of all of them would only say that none fits."""
    if "snapshots" in result:
        return {**result, "snapshots": []}
    if "snapshot" in result:
        return {**result, "snapshot": {**result["snapshot"], "state": {"agents": []}}}
    return result


def _without_clearing(params: Json) -> Json:
    """The reference clears an activity with a null that its schema does not know: an absent one has not changed."""
    if "notification" in params:
        return {**params, "notification": _without_clearing(params["notification"])}
    changes = params.get("changes")
    if not isinstance(changes, dict) or changes.get("activity", "") is not None:
        return params
    return {**params, "changes": {key: value for key, value in changes.items() if key != "activity"}}


def check_notice(version: str, message: Json) -> None:
    params = _without_clearing(message["params"])
    if message["method"] == "notification":
        params = params["notification"]
        check(version, "notifications", _NOTICES[params["type"]], params)
    else:
        check(version, "notifications", _NOTICES[message["method"]], params)

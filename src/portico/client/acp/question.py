"""Questions of agents, as an editor can ask them: a form, one choice after another, or a link. Pure."""

from acp.schema import PermissionOption

from portico.kernel.events import Json

OTHER = "_other"
"""Suffix of the extra form field for a text of one's choice beside the options of a field."""
_SKIP = "portico:skip"
_TYPES = {"number": "number", "integer": "integer", "boolean": "boolean"}
_FREE: list[Json] = [{"id": "answer", "kind": "text", "message": "Answer", "required": True}]
"""The field of a question without fields."""


def form_of(session: str, text: str, fields: list[Json]) -> Json:
    """The params of `elicitation/create` in the mode `form`."""
    asked = fields or _FREE
    properties: Json = {}
    for field in asked:
        name = str(field["id"])
        properties[name] = _property(field)
        if field.get("options") and field.get("allowFreeformInput"):
            properties[name + OTHER] = {"type": "string", "title": "Another answer"}
    schema: Json = {"type": "object", "properties": properties}
    if required := [str(each["id"]) for each in asked if _is_required(each)]:
        schema["required"] = required
    return {"sessionId": session, "message": text, "mode": "form", "requestedSchema": schema}


def link_of(session: str, ident: str, text: str, url: str) -> Json:
    """The params of `elicitation/create` in the mode `url`."""
    return {"sessionId": session, "message": text, "mode": "url", "elicitationId": ident, "url": url}


def _is_required(field: Json) -> bool:
    return bool(field.get("required")) and not (field.get("options") and field.get("allowFreeformInput"))


def _property(field: Json) -> Json:
    kind, title = str(field.get("kind")), field.get("title") or field.get("message") or str(field["id"])
    found: Json = {"type": _TYPES.get(kind, "string"), "title": str(title)}
    if (about := field.get("message")) and about != title:
        found["description"] = str(about)
    options = [{"const": str(each["id"]), "title": _label(each)} for each in field.get("options") or []]
    if kind == "multi-select":
        found |= {"type": "array", "items": {"anyOf": options}}
    elif options:
        found["oneOf"] = options
    return found


def answers_of(fields: list[Json], content: Json) -> Json:
    """The answers in a filled form, by field. Text of one's choice replaces the chosen option."""
    answers = {name: value for name, value in content.items() if not name.endswith(OTHER)}
    for field in fields:
        if other := content.get(str(field["id"]) + OTHER):
            answers[str(field["id"])] = other
    return answers


def choices(fields: list[Json]) -> list[tuple[Json, list[PermissionOption]]] | None:
    """The fields with the options of each, for an editor without forms. None: one of them is no choice."""
    if not fields or not all(_options(each) for each in fields):
        return None
    found = []
    for field in fields:
        options = [_offered(ident, label) for ident, label in _options(field)]
        if len(fields) > 1 and not field.get("required"):
            options.append(PermissionOption(option_id=_SKIP, name="Skip", kind="reject_once"))
        found.append((field, options))
    return found


def chosen(field: Json, option: str) -> Json:
    """The answer to a field by one of the options that `choices` offered."""
    if option == _SKIP:
        return {"state": "skipped"}
    if field.get("kind") == "boolean":
        return {"state": "submitted", "value": {"kind": "boolean", "value": option == "true"}}
    return {"state": "submitted", "value": {"kind": "selected", "value": option}}


def _options(field: Json) -> list[tuple[str, str]]:
    if field.get("kind") == "boolean":
        return [("true", "Yes"), ("false", "No")]
    if field.get("kind") != "single-select":
        return []
    return [(str(each["id"]), _label(each)) for each in field.get("options") or []]


def _label(option: Json) -> str:
    return str(option.get("label") or option["id"])


def _offered(ident: str, label: str) -> PermissionOption:
    return PermissionOption(option_id=ident, name=label, kind="allow_once")

"""What an agent, or a server of its tools, asks of a person: MCP's elicitation as a question of the session."""

from collections.abc import Mapping
from typing import Any

from portico.agents.agent import Json, Turn

_KINDS = {"boolean": "boolean", "number": "number", "integer": "number", "array": "multi-select"}


async def elicit(params: Mapping[str, Any], turn: Turn) -> Json:
    """A form or a link becomes a question."""
    schema = params.get("requestedSchema")
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    required = schema.get("required") or [] if isinstance(schema, dict) else []
    fields = [_field(name, shape, name in required) for name, shape in properties.items() if isinstance(shape, dict)]
    answer = await turn.ask(str(params.get("message") or "The agent asks."), fields, params.get("url"))
    if answer.response != "accept":
        return {"action": answer.response}
    return {"action": "accept", "content": {name: _value(value) for name, value in answer.answers.items()}}


def _field(name: str, shape: Json, required: bool) -> Json:
    title = shape.get("title") or name
    field: Json = {"id": name, "title": title, "message": shape.get("description") or title, "required": required}
    field["kind"] = _KINDS.get(str(shape.get("type")), "text")
    items = shape.get("items") if field["kind"] == "multi-select" else shape
    if options := _options(items if isinstance(items, dict) else {}):
        field["kind"] = "multi-select" if field["kind"] == "multi-select" else "single-select"
        field["options"] = options
    return field


def _options(shape: Json) -> list[Json]:
    """Bare values, or constants with titles."""
    found = shape.get("enum") or shape.get("oneOf") or shape.get("anyOf")
    return [
        {"id": each.get("const"), "label": each.get("title") or each.get("const")}
        if isinstance(each, dict)
        else {"id": each, "label": str(each)}
        for each in (found if isinstance(found, list) else [])
    ]


def _value(answer: object) -> object:
    """An answer as doors keep it (`{"state", "value": {"value"}}`), down to the bare value."""
    while isinstance(answer, dict) and "value" in answer:
        answer = answer["value"]
    return answer

"""JSON Schemas of outputs, and their short form: `{approved: boolean, findings: [string]}`."""

from typing import Any

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_KEYWORDS = frozenset({"$schema", "$ref", "properties", "items", "anyOf", "oneOf", "allOf", "enum", "const"})


def full_schema(short: Any) -> dict[str, Any]:
    """The JSON Schema of a short form. A JSON Schema stays as it is. Raises ValueError for anything else."""
    match short:
        case str() if short in _TYPES:
            return {"type": short}
        case str():
            raise ValueError(f"{short!r} is not a type. Types: {', '.join(sorted(_TYPES))}.")
        case [one]:
            return {"type": "array", "items": full_schema(one)}
        case dict() if _KEYWORDS & short.keys() or short.get("type") in _TYPES:
            return short
        case dict():
            properties = {key: full_schema(each) for key, each in short.items()}
            return {"type": "object", "properties": properties, "required": list(properties)}
    raise ValueError("A schema is a type, a list with one type, or a mapping of names to types.")

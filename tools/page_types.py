"""Writes the types of the pages' REST client and of the events: `python -m tools.page_types`.

They come from the OpenAPI document of a host and from the structs of its events, so a page that reads a field which the
host does not send fails the type check. `tests/doors/test_page_types.py` checks that the file is current.
"""

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any, get_args

import msgspec

from portico.features import builtin  # noqa: F401  # registers the commands and events of features
from portico.kernel import events

Json = dict[str, Any]
TARGET = Path(__file__).parents[1] / "web/src/rest.ts"
PREFIX = "/v1"

_HEAD = """/** Types of the REST API and of events. Written by `python -m tools.page_types`; do not edit. */

"""
_SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def source(document: Json) -> str:
    """The routes below /v1, the shapes they use, and the events."""
    kept = sorted(
        (kind for kind in get_args(events.known_events()) if kind is not events.Unknown), key=lambda kind: kind.__name__
    )
    _, shapes = msgspec.json.schema_components(kept)
    routes = "".join(_route(path, method, each) for path, method, each in _operations(document))
    kinds = " | ".join(kind.__name__ for kind in kept)
    used = _reachable(routes, document["components"]["schemas"])
    clash = {name: shape for name, shape in shapes.items() if _named(name) not in used}
    written = "".join(_shape(name, shape) for name, shape in sorted({**used, **clash}.items()))
    return f"{_HEAD}export interface Routes {{\n{routes}}}\n\nexport type Event = {kinds};\n\n{written}"


def _operations(document: Json) -> list[tuple[str, str, Json]]:
    found = document["paths"].items()
    return [
        (path, method, each) for path, methods in found if path.startswith(PREFIX) for method, each in methods.items()
    ]


def _route(path: str, method: str, operation: Json) -> str:
    answers = [_content(each) for status, each in operation["responses"].items() if status < "300"]
    answer = next((each for each in answers if each), "undefined")
    body = _content(operation.get("requestBody", {})) or "undefined"
    return f'  "{method.upper()} {path.removeprefix(PREFIX)}": {{ body: {body}; answer: {answer} }};\n'


def _content(answer: Json) -> str:
    schema = answer.get("content", {}).get("application/json", {}).get("schema")
    return _type(schema) if schema else ""


def _shape(name: str, schema: Json) -> str:
    about = schema.get("description", "").split("\n")[0].strip()
    comment = f"/** {about} */\n" if about and "*/" not in about else ""
    if "properties" not in schema:
        return f"{comment}export type {_named(name)} = {_type(schema)};\n\n"
    fields = "".join(
        _field(each, shape, each in schema.get("required", [])) for each, shape in schema["properties"].items()
    )
    return f"{comment}export interface {_named(name)} {{\n{fields}}}\n\n"


def _field(name: str, schema: Json, required: bool) -> str:
    """A field with its default is left out of the answer, so a default of null is never sent."""
    shape = _type(schema, nullable=required or schema.get("x-default", schema.get("default", ...)) is not None)
    return f"  {name if _NAME.fullmatch(name) else repr(name)}{'' if required else '?'}: {shape};\n"


def _type(schema: Json, *, nullable: bool = True) -> str:
    if "$ref" in schema:
        return _named(schema["$ref"].rsplit("/", 1)[1])
    if "enum" in schema:
        return " | ".join(msgspec.json.encode(each).decode() for each in schema["enum"])
    if "const" in schema:
        return msgspec.json.encode(schema["const"]).decode()
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            kinds = dict.fromkeys(_type(each) for each in schema[choice])
            return " | ".join(each for each in kinds if nullable or each != "null")
    return _typed(schema)


def _typed(schema: Json) -> str:
    kind = schema.get("type")
    if kind == "array" and "prefixItems" in schema:
        return f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
    if kind == "array":
        item = _type(schema.get("items") or {}) if schema.get("items") is not False else "never"
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind == "object":
        more = schema.get("additionalProperties")
        return f"Record<string, {_type(more) if isinstance(more, dict) else 'unknown'}>"
    return _SIMPLE.get(kind or "", "unknown")


def _named(name: str) -> str:
    """`portico.features.jobs.entry.Model` and `Model` are two shapes."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]", name))


def _reachable(text: str, schemas: Json) -> Json:
    known = {_named(name): shape for name, shape in schemas.items()}
    found: Json = {}
    open_ = set(re.findall(r"\b[A-Z]\w+", text)) & known.keys()
    while open_:
        name = open_.pop()
        found[name] = known[name]
        open_ |= (set(re.findall(r"\b[A-Z]\w+", _shape(name, known[name]))) & known.keys()) - found.keys()
    return found


async def current() -> str:
    """From a host that runs for this."""
    from tests.doors.standing import standing

    from portico.doors.openapi import document

    with tempfile.TemporaryDirectory() as folder:
        async with standing(Path(folder)) as here:
            return source(document(here.server.gate.table))


if __name__ == "__main__":
    TARGET.write_text(asyncio.run(current()))

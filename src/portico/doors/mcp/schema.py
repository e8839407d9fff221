"""JSON Schemas of tools: of the arguments, and of the structured result, which is always an object."""

import ast
import inspect
import itertools
import sys
from functools import cache
from importlib import resources
from typing import Any

import msgspec
from msgspec import Struct

from portico.kernel.events import Json

OPEN: Json = {"type": "object", "additionalProperties": True}


def input_schema(body: type[Struct], tool: str, kind: type[Struct] | None = None) -> Json:
    """The arguments, each with its meaning. `kind`: the command whose fields they are."""
    schema = flat(body)
    schema.pop("title", None)
    documented = {**field_docs(kind or body), **(field_docs(body) if kind is not None else {})}
    for name, each in schema.get("properties", {}).items():
        meaning = meanings().get(f"{tool}.{name}") or documented.get(name) or meanings().get(name, "")
        if meaning:
            each.pop("title", None)
            each["description"] = meaning
    return schema


@cache
def meanings() -> dict[str, str]:
    """The meaning of parameters without a docstring, by name or by `tool.name`."""
    import tomllib  # late: only needed for MCP

    return tomllib.loads(resources.files(__package__).joinpath("parameters.toml").read_text())


def output_schema(gives: Any) -> Json:
    """The result. What has no shape of its own, and a list inside `items`, is an open object."""
    shapes = gives if isinstance(gives, tuple) else (gives,)
    if not all(isinstance(each, type) and issubclass(each, Struct) for each in shapes):
        return OPEN
    schemas = [flat(each) for each in shapes]
    for schema in schemas:
        schema.pop("title", None)
    return schemas[0] if len(schemas) == 1 else {"type": "object", "anyOf": schemas}


def as_object(result: Any) -> Json:
    """Structured content has to be an object: some clients reject a bare list."""
    built = msgspec.to_builtins(result)
    if isinstance(built, dict):
        return built
    return {"items": built} if isinstance(built, list) else {} if built is None else {"value": built}


def flat(body: type[Struct]) -> Json:
    """A schema without references: some agents do not resolve them. A shape that contains itself is open inside."""
    (_, definitions) = msgspec.json.schema_components([body], ref_template="{name}")
    found: Json = _flat(definitions[_name(body, definitions)], definitions, ())
    return found


def _name(body: type[Struct], definitions: Json) -> str:
    return next(name for name in definitions if name == body.__name__ or name.endswith(f".{body.__name__}"))


def _flat(schema: Any, definitions: Json, above: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_flat(each, definitions, above) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"]
        return dict(OPEN) if name in above else _flat(definitions[name], definitions, (*above, name))
    return {name: _flat(each, definitions, above) for name, each in schema.items()}


@cache
def field_docs(kind: type[Struct]) -> dict[str, str]:
    """The docstrings below the fields of a struct and of those it inherits from."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        found |= _documented(each.__module__).get(each.__name__, {})
    return found


@cache
def _documented(module: str) -> dict[str, dict[str, str]]:
    """By class and field. The source of a module is parsed once, which takes some milliseconds."""
    try:
        body = ast.parse(inspect.getsource(sys.modules[module])).body
    except (OSError, TypeError, KeyError):  # a module without source: built in, or made by a program
        return {}
    return {each.name: _fields(each) for each in body if isinstance(each, ast.ClassDef)}


def _fields(shape: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for line, after in itertools.pairwise(shape.body):
        match line, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found
